"""Steps are called after the functions of the library that make their nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.step_names import step_names
from autodiff_gen.model.loader import load_model

W, B = (6,), (6,)
NAMES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], list[str]]] = {
    "an op": (F.tanh, [(4, 6)], ["tanh"]),
    "operators": (lambda a, b: a + a * b, [(4, 6), (4, 6)], ["mul_add"]),
    "the same twice": (lambda a: F.relu(a - F.relu(-a)), [(4, 6)], ["neg_relu_sub"]),
    "a composite op": (lambda a: F.softmax(a, 1), [(4, 6)], ["softmax"]),
    "a function of several ops": (lambda a: F.log_softmax(a, 1), [(4, 6)], ["log_softmax"]),
    "a function around a composite op": (
        lambda a, w, b: F.relu(F.layer_norm(a, (6,), w, b)),
        [(4, 6), W, B],
        ["layer_norm_relu"],
    ),
    "the last of many": (
        lambda a: F.sin(F.log_softmax(F.tanh(F.relu(F.sigmoid(a))), 1)),
        [(4, 6)],
        ["tanh_log_softmax_sin"],
    ),
    "its gradient": (lambda a, d: ag.grad(F.relu(a), [a], d), [(4, 6), (4, 6)], ["relu_backward"]),
    "a gradient of several": (
        lambda a, d: ag.grad(F.relu(F.tanh(a)), [a], d),
        [(4, 6), (4, 6)],
        ["tanh_relu_backward"],
    ),
    "a gradient of operators": (lambda a, b, d: ag.grad(a / b, [a], d), [(4, 6)] * 3, ["div_backward"]),
    "zeros": (lambda a: F.zeros((4, 6)), [(4, 6)], ["fill"]),
    "a transpose": (lambda a: F.relu(a).T, [(4, 6)], ["relu"]),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_of_steps(case: str) -> None:
    make, shapes, names = NAMES[case]
    xs = [ag.Input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    made = make(*xs)
    program = compile_function(ag.function(xs, made if isinstance(made, list) else [made]), "f")
    assert [step.name for step in step_names(program.entries[0].plan).values()] == names


def test_names_of_the_steps_of_a_model() -> None:
    net = nn.Sequential(nn.Linear(24, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 24))
    model = ag.Model.supervised(
        net, input=(16, 24), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(), clip_grad_value=1.0
    )
    train, predict = (step_names(entry.plan) for entry in compile_model(model, "m").entries)
    names = {(step.name, step.is_part) for step in train.values()}
    assert {
        ("linear", False),  # the kernel call
        ("batch_norm_relu", False),
        ("batch_norm", True),  # the running mean
        ("cross_entropy_backward", False),
        ("clip_grad_value_adam_update", False),
    } <= names
    assert {step.name for step in predict.values()} == {"batch_norm", "linear", "relu"}


def test_the_rest_of_a_function_with_a_kernel() -> None:
    """It is called after its ops, with the parameters that they read; a function that is computed in loops is not."""
    attention = {
        step.name
        for step in step_names(compile_model(load_model("attention")[0], "m").entries[1].plan).values()
    }
    assert {"matmul", "mul_softmax", "layer_norm", "bias_add_gelu", "bias_add_add"} <= attention
    gesture = step_names(compile_model(load_model("gesture")[0], "m").entries[0].plan)
    assert {"2.4": "gru_cell", "7.3": "gru_cell_backward", "3": "linear", "13": "sum"}.items() <= {
        number: step.name for number, step in gesture.items()
    }.items()
