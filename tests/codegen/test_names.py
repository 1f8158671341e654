"""Names in generated C: after modules, roles and gradients, never after ops; and steps that belong to one phase."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiled_examples import EXAMPLES, compiled, files

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.identifiers import identifier
from autodiff_gen.ir.names import abbreviations, name_of, with_role
from autodiff_gen.ir.node import OPS, Value
from autodiff_gen.ir.origin import BACKWARD, FORWARD, LOSS, UPDATE
from autodiff_gen.lowering.phases import Phases
from autodiff_gen.model.loader import load_model
from autodiff_gen.report.collect import collect
from autodiff_gen.targets import board

ROOT = Path(__file__).resolve().parents[2]


@cache
def code(example: str) -> str:
    """The generated C without comments."""
    return re.sub(r"/\*.*?\*/", "", files(example)[f"{example}.c"], flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_name_is_an_op_with_a_number(example: str) -> None:
    functions = re.findall(r"^static (?:AG_NOINLINE )?void (\w+)\(", code(example), re.MULTILINE)
    names = set(re.findall(r"[A-Za-z_]\w*", code(example))) - {example, *functions}
    assert not {name for name in names if re.sub(r"_?\d+$", "", name) in OPS and name not in OPS}


# Names that a reader looks for: outputs of layers, gates, statistics, their gradients.
NAMES = {
    "mnist": "layer0_out layer1_out layer2_out layer3_out d_layer2_out d_layer1_out d_layer0_out exp_sum log_sum",
    "lenet": "layer2_pooled layer2_pooled_index layer8_out layer11_out loss_exp_shifted d_layer11_out "
    "d_layer9_out d_layer5_pooled",
    "gesture": "gru_x_gates gru_h_gates gru_h gru_h_before gru_n gru_z gru_hw gru_r_z_n d_gru_h_carry "
    "d_gru_h_from_hw d_gru_difference d_head_bias_squares root_correction head_out d_head_out d_head_weight "
    "d_gru_weight_hh_l0 d_gru_bias_ih_l0 grad_scale step_size clipped_grad exp_avg exp_avg_sq",
    "attention": "embed_out block_norm1_centered block_norm1_inv_std block_norm1_out self_attn_qkv "
    "self_attn_weights self_attn_context block_residual d_self_attn_weights "
    "d_self_attn_q d_self_attn_out d_block_norm2_out mean inv_std scores",
    "autoencoder": "layer1_mean layer1_var layer1_inv_std layer2_out d_layer20_out layer1_scale layer1_shift",
    "keywords": "conv_relu block1_depthwise_relu block1_out d_classifier_out momentum_buffer",
}  # fmt: skip


@pytest.mark.parametrize("example", NAMES)
def test_names_of_values(example: str) -> None:
    declared = set(re.findall(r"\b(\w+) =\s", code(example)))
    assert set(NAMES[example].split()) - declared == set()


def test_long_paths_are_shortened_to_what_tells_modules_apart() -> None:
    assert abbreviations(["encoder.blocks.0.attention", "encoder.blocks.0.mlp", "decoder.attention.mlp", "fc"]) == {
        "encoder.blocks.0.attention": "attention",
        "encoder.blocks.0.mlp": "blocks.0.mlp",
        "decoder.attention.mlp": "attention.mlp",
    }  # fmt: skip


class Net(nn.Module):
    """Functions between layers, a layer that is applied twice, and a parameter without a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(24, 24)
        self.scale = nn.Parameter([1.0] * 24)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return F.tanh(self.fc(F.relu(self.fc(x))) * self.scale)


def test_functions_between_layers_are_named_after_the_layer() -> None:
    model = ag.Model.supervised(Net(), (16, 24), nn.MSELoss(), optim.SGD(lr=0.1))
    text = emit(compile_model(model, "net"))["net.c"]
    declared = set(re.findall(r"\*const (\w+) = ", text))
    assert {"fc_xw", "fc_relu", "d_fc_relu", "d_fc_out"} <= declared, declared


# Where a large value would have to be stored: the gradient of a squared error is stored instead of the error, and which
# elements ReLU passes instead of its operand.
STORED = {
    "autoencoder": {f"{LOSS} and {BACKWARD}"},
    "import_onnx": {f"{FORWARD} and {BACKWARD}"},
    "import_torch": {f"{FORWARD} and {BACKWARD}"},
    "keywords": {f"{FORWARD} and {BACKWARD}"},
}

# Tiny networks keep the fastest loops: in one of them are all phases of a sample.
FUSED = {"xor", "tanh4"}


def test_an_activation_whose_function_its_gradient_shares_keeps_its_name() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(40, 40), nn.Linear(40, 40)

        def forward(self, x: ag.Input) -> ag.Input:
            return self.fc2(F.gelu(self.fc1(x)))

    model = ag.Model.supervised(Net(), input=(4, 40), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.1))
    declared = re.findall(r"float \*const (\w+) = ", emit(compile_model(model, "m"))["m.c"])
    assert "fc1_gelu" in declared and "d_fc1_out" in declared


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e not in FUSED])
def test_steps_belong_to_one_phase(example: str) -> None:
    entry = compiled(example).entries[0]
    found = Phases(entry.plan)
    phases = {found.phase(step) for step in entry.plan.steps}
    allowed = {FORWARD, LOSS, BACKWARD, UPDATE, f"{BACKWARD} and {UPDATE}"}
    assert phases - allowed == STORED.get(example, set())


@pytest.mark.parametrize("example", sorted(FUSED))
def test_a_step_of_several_phases_says_so(example: str) -> None:
    text = files(example)[f"{example}.c"]
    assert re.search(r"/\* ---- forward, loss and backward: \w+ ---- \*/", text)


@pytest.mark.parametrize("name", ["ag", "ag_net"])
def test_names_of_the_runtime_are_not_a_models(name):
    with pytest.raises(ModelError, match=f"'{name}': names that begin with ag_ belong to the runtime"):
        compile_model(load_model("xor")[0], name)


def test_names_that_c_reserves() -> None:
    """<ctype.h> of newlib has a macro _B."""
    names = ["_B", "__x.weight", "_conv.weight", "0.weight", "float"]
    assert [identifier(n) for n in names] == [
        "layer_B",
        "layer__x_weight",
        "_conv_weight",
        "layer0_weight",
        "float_",
    ]


def test_a_geometry_of_several_layers_is_named_after_its_extents() -> None:
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Flatten()
    )
    model = ag.Model.supervised(
        net, input=(1, 2, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01)
    )
    text = emit(compile_model(model, "net"))["net.c"]
    names = re.findall(r"^static const ag_conv2d_shape (\w+)", text, re.MULTILINE)
    assert names == ["layer0_shape", "conv2d_3x3_6x6x4_to_6x6x4"]


class Sequence(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Value) -> Value:
        return self.rnn(x)[0]


def recurrent(rnn: nn.Module) -> str:
    """The C of a network that is one recurrent layer, on one line."""
    x = ag.Input("x", (2, 5, 3))
    loss = F.sum(F.square(Sequence(rnn)(x)))
    model = ag.Model(inputs=[x], targets=[], outputs={}, loss=loss, optimizer=optim.SGD(lr=0.01))
    return " ".join(emit(compile_model(model, "net"))["net.c"].split())


def test_what_a_loop_over_time_overwrites_keeps_its_name_until_then() -> None:
    text = recurrent(nn.GRU(3, 4, batch_first=True))
    pointers = re.findall(r"const float \*const (\w+) = (\w+); /\* read before it is overwritten", text)
    assert ("rnn_r_z_n_t", "d_rnn_h_gates_t") in pointers
    assert not any("old " in comment for comment in re.findall(r"/\*.*?\*/", text))


def test_elements_of_what_is_overwritten_have_its_role() -> None:
    """The gates of the LSTM, the old values of optimizer states; of an array at several places the place."""
    locals_ = dict(
        re.findall(r"const float (\w+) = ([\w>-]+\[[^\]]+\]);", recurrent(nn.LSTM(3, 4, batch_first=True)))
    )
    assert {n: locals_.get(n) for n in ("rnn_f", "rnn_g", "rnn_o")} == {
        "rnn_f": "rnn_i_f_g_o_t[i * 80 + j + 4]",
        "rnn_g": "rnn_i_f_g_o_t[i * 80 + j + 8]",
        "rnn_o": "rnn_i_f_g_o_t[i * 80 + j + 12]",
    }
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    model = ag.Model.supervised(net, (4, 2), nn.MSELoss(), optim.Adam())
    locals_ = dict(
        re.findall(r"const float (\w+) = ([\w>-]+\[[^\]]+\]);", emit(compile_model(model, "net"))["net.c"])
    )
    assert locals_["x_0"] == "x[i * 2 + 0]" and locals_["x_1"] == "x[i * 2 + 1]"
    assert "old_exp_avg" in locals_
    assert not [name for name in locals_ if re.fullmatch(r"old(_\d+)?", name)]


def test_values_without_a_role_are_named_after_what_they_are() -> None:
    """A term of a gradient, a joined value, a product, the number of steps that drew bits."""
    text = recurrent(nn.GRU(3, 4, batch_first=True))
    assert all(f"d_{name}" in text for name in ("h_from_hw", "rnn_difference", "x_r", "x_z", "x_n"))
    x, w = ag.Input("x", (2, 4)), ag.Param("w", np.ones((4, 8), np.float32))
    joined = F.cat([F.tanh(x), F.sigmoid(x)], 1)
    values = joined, F.matmul(joined, w.T), F.pad(F.tanh(x), (1, 1))
    assert [name_of(v) for v in values] == ["joined", "w_product", "padded"]
    net = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(192, 4))
    model = ag.Model.supervised(net, (2, 12, 8), nn.CrossEntropyLoss(), optim.AdamW())
    text = emit(compile_model(model, "net"))["net.c"]
    assert all(name in text for name in ("random_count", "slope", "change"))
    assert not re.search(r"\b\w+_(add|mul)\b", text)


def test_layers_of_a_recurrent_network_have_names() -> None:
    text = recurrent(nn.LSTM(3, 4, num_layers=2, batch_first=True))
    assert all(f"const rnn_{name} = " in text for name in ("bias_l1", "out_l0", "out_l0_t"))


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Value) -> Value:
        q = with_role(F.tanh(self.q(x)), "q")
        return with_role(q * self.k(x), "qk") + 1.0


def test_what_is_computed_of_several_modules_belongs_to_the_one_around_them() -> None:
    x, net = ag.Input("x", (2, 4)), nn.Sequential(Products())
    y = net(x)
    products = y.node.operands[0].node
    assert products.origin.scope == "0" and products.operands[0].node.origin.scope == "0.q"


class Tables(nn.Module):
    """Layers, each with a constant array."""

    def __init__(self, *arrays: Any) -> None:
        super().__init__()
        self.fc = nn.ModuleList(nn.Linear(6, 6) for _ in arrays)
        self.part = nn.ModuleList(Table(np.asarray(array, np.float32)) for array in arrays)

    def forward(self, x: Value) -> Value:
        for fc, part in zip(self.fc, self.part, strict=True):
            x = part(F.tanh(fc(x)))
        return x


class Table(nn.Module):
    def __init__(self, array: Any) -> None:
        super().__init__()
        self.table = nn.Buffer(array)

    def forward(self, x: Value) -> Value:
        return F.tanh(x.view(-1, *self.table.shape) + self.table).view(-1, 6)


def statistics(trained: int) -> nn.Module:
    """Normalisations with the same statistics; the first ones train."""
    net = nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh()) for _ in range(3)))
    for k in range(trained, 3):
        net[k][1].requires_grad_(False).eval()
    return net


ZEROS, ONES, ROW = [0.0] * 6, [1.0] * 6, [0.0, 1, 2, 3, 4, 5]
CONSTANTS = {  # network, constants of its C
    "one": (Tables(ROW), ["part_0_table"]),
    "one_of_zeros": (Tables(ZEROS), ["part_0_table"]),
    "equal": (Tables(ROW, ROW), ["table"]),
    "equal_and_another": (Tables(ROW, ROW, ROW[::-1]), ["table", "part_2_table"]),
    "zeros": (Tables(ZEROS, ROW, ZEROS), ["zeros_6", "part_1_table"]),
    "ones_of_two_shapes": (Tables(ONES, np.ones((2, 3)), ONES), ["ones_6"]),
    "another_shape": (Tables(ROW, np.array(ROW).reshape(2, 3)), ["table"]),
    "folded": (statistics(0), ["scale", "zeros_6"]),
    "folded_of_one_layer": (statistics(2), ["layer2_1_scale", "layer2_1_shift"]),
}


@pytest.mark.parametrize("network", CONSTANTS)
def test_a_constant_of_several_layers_is_named_after_its_value(network: str) -> None:
    net, expected = CONSTANTS[network]
    model = ag.Model.supervised(net, (2, 6), nn.MSELoss(), optim.SGD(lr=0.1))
    program = compile_model(model, "net")
    found = re.findall(r"^static const float (\w+)\[\d+\] = ", emit(program)["net.c"], re.MULTILINE)
    assert found == expected
    report = collect(program, board.load("stm32"), None)
    operands = {o.name for entry in report.entries for s in entry.steps for o in s.reads}
    assert {*expected} <= operands
