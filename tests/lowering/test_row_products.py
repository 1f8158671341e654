"""Products that are completed inside the loops of an update rule: by rows or in blocks, and how their operands are
read."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.passes.costs import block_of_a_product, divisors
from autodiff_gen.targets import board

GATHERED = "d_layer0_out_row[j] = d_layer0_out[i + j * 61];"


def network(inputs: int, outputs: int, batch: int) -> ag.Model:
    layers = nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, 8))
    return ag.Model.supervised(layers, input=(batch, inputs), loss=nn.MSELoss(), optimizer=optim.Adam())


def generated(model: ag.Model) -> str:
    return " ".join(emit(compile_model(model, "net"))["net.c"].split())


def test_products_that_are_not_alive_at_the_peak_are_whole() -> None:
    layers = (nn.Linear(96, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))
    model = ag.Model.supervised(
        nn.Sequential(*layers), input=(16, 96), loss=nn.MSELoss(), optimizer=optim.Adam()
    )
    program = compile_model(model, "net")
    text = " ".join(emit(program)["net.c"].split())
    assert "ag_gemm_tn_f32_ref(d_layer2_out, 16, layer1_out, 16, d_layer2_weight, 16, 16, 16, n" in text
    assert "d_layer0_weight_row" in text and program.struct_bytes - program.state_bytes == 3848


@pytest.mark.parametrize(
    "batch, has, has_not",
    [
        (
            16,
            [
                GATHERED,
                "ag_gemv_t_f32_ref(x, 499, d_layer0_out_row, d_layer0_weight_row, n, 499, 1.0f, 0.0f, NULL);",
            ],
            "gemm_tn_f32_ref(d_layer0_out",
        ),
        (
            1,
            [
                "ag_ger_f32_ref(d_weight_row, count_2, d_out + i, x, 1, count_2, 1.0f, 0.0f);",
                "adam_update(step_size, root_correction, d_layer0_out, x, d_layer0_weight_row, "
                "t->layer0_weight_exp_avg, t->layer0_weight_exp_avg_sq, t->layer0_weight, 61, 499);",
            ],
            "d_layer0_out_row",
        ),
    ],
)
def test_a_row_that_is_stored_as_a_column_is_gathered_first(batch: int, has: list[str], has_not: str) -> None:
    text = generated(network(499, 61, batch))  # primes: no blocks
    assert all(part in text for part in has), text
    assert has_not not in text


def test_blocks_of_short_rows_are_one_product() -> None:
    text = generated(network(6, 64, 16))
    assert "for (int32_t i = 0; i < 64; i += 16) { ag_gemm_tn_f32_ref(d_layer0_out + i, 64, x, 6," in text
    assert "d_layer0_weight_row[j * 6 + k]" in text and "d_layer0_out_row" not in text


def test_blocks_are_for_short_rows_of_several_terms() -> None:
    cost = board.load("mps2_an386").cost
    assert block_of_a_product(cost, 160, 32, 6, True) is not None
    assert block_of_a_product(cost, 160, 1, 6, True) is None  # an outer product: no sums to keep in registers
    assert block_of_a_product(cost, 32, 16, 784, True) is None  # as fast by rows
    assert block_of_a_product(cost, 61, 16, 499, True) is None  # prime


def test_rows_of_a_kernel_of_tiles_are_a_tile_or_more() -> None:
    """The kernel of a convolution's gradient computes a row by terms, unlike the kernel of a matrix and a vector."""
    assert block_of_a_product(board.load("mps2_an386").cost, 48, 18, 288, False, divisors(48)) == (4, 288)


@pytest.mark.cc
@pytest.mark.parametrize("inputs, outputs", [(6, 64), (24, 20), (7, 12), (64, 6), (13, 11)])
@pytest.mark.parametrize("batch", [3, 16])
def test_blocks_give_the_bits_of_rows_and_of_whole_products(
    inputs: int, outputs: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained() -> bytes:
        rng = np.random.default_rng(5)
        trainer = network(inputs, outputs, batch).on_host(kernels="ref")
        for _ in range(3):
            x, t = rng.normal(size=(batch, inputs)), rng.normal(size=(batch, 8))
            trainer.train_step(x.astype(np.float32), t.astype(np.float32))
        return b"".join(np.asarray(v).tobytes() for v in trainer.state_dict().values())

    blocks = trained()
    monkeypatch.setattr("autodiff_gen.passes.loops.product_blocks.block_of_a_product", lambda *_: None)
    assert blocks == trained()
    monkeypatch.setattr("autodiff_gen.passes.calls.gradient_rows.updates_of", lambda *_: [])
    assert blocks == trained()
