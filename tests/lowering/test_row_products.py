"""Products that are completed row by row inside the loop of an update rule: how a row of the first factor is read."""

from __future__ import annotations

import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit

GATHERED = "d_layer0_out_row[j] = d_layer0_out[i + j * 64];"


@pytest.mark.parametrize(
    "batch, has, has_not",
    [
        (
            16,
            [GATHERED, "ag_gemv_t_f32_ref(x, 6, d_layer0_out_row, d_layer0_weight_row, n, 6, 1.0f, 0.0f);"],
            "gemm_tn",
        ),
        (
            1,
            ["ag_ger_f32_ref(d_layer0_weight_row, 6, d_layer0_out + i, x, 1, 6, 1.0f, 0.0f);"],
            "d_layer0_out_row",
        ),
    ],
)
def test_a_row_that_is_stored_as_a_column_is_gathered_first(batch: int, has: list[str], has_not: str) -> None:
    layers = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 8))
    model = ag.Model.supervised(layers, input=(batch, 6), loss=nn.MSELoss(), optimizer=optim.Adam())
    text = " ".join(emit(compile_model(model, "net"))["net.c"].split())
    assert all(part in text for part in has), text
    assert has_not not in text
