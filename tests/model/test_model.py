"""The text of model files: optimizers, Model and function; wrong arguments of each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from rejections import all_rejected
from small_models import mlp, small_model

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.ir.printer import show
from autodiff_gen.ir.types import Dim

# Optimizers


def test_plain_sgd_is_one_subtraction() -> None:
    """The form that the passes recognise: no gradient buffer exists for it."""
    model = small_model("SGD", {"lr": 0.1})
    for state, new in model.entries()[0].updates.items():
        assert new.node.op.name == "sub"
        old, change = new.node.operands
        assert old.node.attrs["state"] is state
        assert change.node.op.name == "mul" and change.node.operands[0] is model.lr


def test_the_state_of_the_optimizer_comes_after_the_parameters() -> None:
    names = [s.name for s in small_model("Adam", {}).states]
    assert names[:5] == ["0.weight", "0.bias", "2.weight", "2.bias", "optimizer.step"]
    assert names[5:7] == ["0.weight.exp_avg", "0.weight.exp_avg_sq"]


# Models


def test_supervised_with_classes() -> None:
    model = ag.Model.supervised(mlp(6, 3), (8, 6), nn.CrossEntropyLoss(), optim.SGD(lr=0.5))
    step, predict = model.entries()
    n = Dim(1, 8)
    assert [(v.name, v.shape, v.dtype.name) for v in step.inputs] == [
        ("x", (n, 6), "f32"), ("label", (n,), "u8"), ("lr", (), "f32"),
    ]  # fmt: skip
    assert [(v.name, v.shape) for v in predict.inputs] == [("x", (n, 6))]
    assert (list(step.outputs), list(predict.outputs), model.batch, model.default_lr) == (
        ["loss"],
        ["scores"],
        8,
        0.5,
    )
    assert step.inputs[1].node.attrs["classes"] == 3
    assert not predict.updates and list(step.updates) == list(model.states)


def test_supervised_with_many_classes_and_with_values() -> None:
    many = ag.Model.supervised(mlp(2, 257), (1, 2), nn.CrossEntropyLoss(), optim.SGD())
    assert many.targets[0].dtype.name == "s32" and many.batch == 1
    pixels = ag.Model.supervised(nn.Conv2d(1, 5, 1), (2, 1, 4, 3), nn.CrossEntropyLoss(), optim.SGD())
    assert pixels.targets[0].shape == (Dim(1, 2), 4, 3) and pixels.targets[0].node.attrs["classes"] == 5
    values = ag.Model.supervised(mlp(2, 3), (4, 2), nn.MSELoss(), optim.SGD())
    assert (values.targets[0].name, values.targets[0].shape) == ("target", (Dim(1, 4), 3))


@pytest.mark.cc
def test_predict_takes_the_inputs_that_outputs_depend_on() -> None:
    """On the host, and over the link, where the others are sent for training only."""
    x, other = ag.Input("x", (4, 3), batch_axis=0), ag.Input("other", (4, 2), batch_axis=0)
    rate, noise = ag.Input("rate", ()), ag.Input("noise", (4, 2), batch_axis=0)
    net = nn.Linear(3, 2)
    y = net(x)
    outputs = {"y": F.by_mode(y + noise, y * rate)}
    loss = F.mean(F.square(y + noise - other))
    model = ag.Model([other, noise, x, rate], [], outputs, loss, optim.SGD(lr=0.1))
    assert [v.name for v in model.entries()[0].inputs] == ["other", "noise", "x", "rate", "lr"]
    assert [v.name for v in model.entries()[1].inputs] == ["x", "rate"]
    trainer = model.on_host()
    a = np.ones((2, 3), np.float32)
    weights = trainer.state_dict()
    want = 3.0 * (a @ weights["weight"].T + weights["bias"])
    np.testing.assert_allclose(trainer.predict(a, 3.0), want, rtol=1e-6)
    trainer.train_step(np.ones((2, 2)), np.zeros((2, 2)), a, 3.0)
    link = link_layout(trainer.program)
    assert [(v.name, v.is_target) for v in link.inputs] == [
        ("x", False), ("rate", False), ("other", True), ("noise", True),
    ]  # fmt: skip


def test_predict_takes_an_input_that_tells_the_number_of_samples() -> None:
    x, w = ag.Input("x", (4, 3), batch_axis=0), ag.Param("w", np.ones(3))
    rows = F.broadcast_to(w, x.shape)
    model = ag.Model([x], [], {"rows": rows, "twice": w * 2.0}, F.mean(F.square(x - rows)), optim.SGD(lr=0.1))
    assert [v.name for v in model.entries()[1].inputs] == ["x"]
    model = ag.Model([x], [], {"twice": w * 2.0}, F.mean(F.square(x - rows)), optim.SGD(lr=0.1))
    assert not model.entries()[1].inputs
    np.testing.assert_array_equal(model.on_host().predict(), [2.0] * 3)


def test_two_models_do_not_disturb_each_other() -> None:
    def text() -> str:
        return "".join(show(g) for g in small_model("Adam", {}).entries())

    assert text() == text()


def test_names_do_not_depend_on_hashing() -> None:
    code = "from small_models import small_model; print(*small_model('Adam', {}).entries())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}",
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1


def called_then_loaded() -> None:
    net = nn.Linear(1, 1, bias=False)
    net(ag.Input("x", (1, 1)))
    net.load_state_dict({"weight": [[1.0]]})


def model_of(**changes: Any) -> Callable[[], ag.Model]:
    """A model of one matrix with some of its parts replaced."""

    def build() -> ag.Model:
        x, t = ag.Input("x", (2, 3), batch_axis=0), ag.Input("t", (2, 1), batch_axis=0)
        w = ag.Param("w", init.ones((3, 1)))
        parts: dict[str, Any] = {"x": x, "t": t, "w": w, "y": x @ w}
        made = {k: f(**parts) for k, f in changes.items()}
        y = made.get("y", parts["y"])
        given = {
            "inputs": [x],
            "targets": [t],
            "outputs": {"y": y},
            "loss": F.mse_loss(y, t),
            "optimizer": optim.SGD(),
        }
        return ag.Model(**{**given, **{k: v for k, v in made.items() if k in given}})

    return build


def supervised(net: Any, shape: tuple[int, ...]) -> ag.Model:
    return ag.Model.supervised(net, shape, nn.CrossEntropyLoss(), optim.SGD())


class ListOfModules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(3, 4), nn.Linear(4, 2)]

    def forward(self, x: Any) -> Any:
        return self.layers[1](self.layers[0](x))


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.used(x)


REJECTED: list[tuple[Callable[[], Any], str]] = [
    (model_of(), ""),
    (model_of(loss=lambda y, t, **_: F.square(y - t)), r"the loss is f32\[n,1\], not a scalar f32\[\]; reduce it"),
    (model_of(loss=lambda **_: 1.0), "the loss is float, expected a graph value"),
    (model_of(loss=lambda t, **_: F.mean(t)), "the loss does not reach the parameter 'w'"),
    (
        model_of(loss=lambda y, **_: F.mean(F.detach(y))),
        "no gradient .* 'w': it ends at w -> matmul -> detach; set requires_grad=False if it shall not learn$",
    ),
    (
        model_of(loss=lambda y, **_: F.mean(F.to(F.argmax(F.exp(y), 1), "f32"))),
        "no gradient reaches the parameter 'w': it ends at w -> matmul -> exp -> max_with_index; set requires_grad=F",
    ),
    (model_of(y=lambda x, w, **_: x @ w + ag.Param("w", init.ones((1,)))), "parameter 'w': something else has"),
    (
        lambda: supervised(ListOfModules(), (1, 3)),
        "parameter 'weight': something else has this name already; rename one; modules in a list are named by nn.Mod",
    ),
    (model_of(y=lambda x, w, **_: x @ w + ag.Param("x", init.ones((1,)))), "parameter 'x': something else has"),
    (model_of(y=lambda x, w, **_: x @ w + ag.Param("lr", init.ones((1,)))), "parameter 'lr': the learning rate has"),
    (model_of(inputs=lambda **_: [ag.Input("u", (2,), batch_axis=0)]), "'y' depends on 'x', which is not among"),
    (model_of(targets=lambda **_: []), "the loss depends on 't', which is neither input nor target"),
    (model_of(inputs=lambda w, x, **_: [x, w]), "input <w: .*> is not an ag.Input"),
    (model_of(outputs=lambda y, **_: {"int": y}), "output 'int': this is a keyword.*; call it 'int_'"),
    (model_of(outputs=lambda y, **_: {"x": y}), "output 'x': something else has this name already; rename one"),
    (model_of(outputs=lambda **_: {"y": 3}), "output 'y' is int, not a graph value"),
    (model_of(outputs=lambda x, **_: {"y": x.T}), "output 'y': the batch axis must come first"),
    (model_of(optimizer=lambda **_: "SGD"), "optimizer: expected one of ag.optim, got 'SGD'"),
    (lambda: supervised(Unused(), (1, 3)), "the loss does not reach the parameter 'unused.weight'"),
    (lambda: supervised(nn.Flatten(), (1, 3)), "depends on no trainable parameter"),
    (lambda: supervised(mlp(3, 2), (1, 4)), r"^linear\(x: f32\[1,4\], 0.weight: f32\[2,3\]\)"),
    (
        lambda: supervised(lambda x: F.sum(x * ag.Param("w", [1.0]), 1), (2, 3)),
        r"loss over classes needs \[batch, classes\] or",
    ),
    (lambda: supervised(lambda x: (x, x), (1, 3)), "the network returned tuple"),
    (lambda: ag.Input("while", (1,)), "input 'while': this is a keyword or a macro of C or C.*; call it 'while_'"),
    (lambda: ag.Input("_B", (1,)), "input '_B': C reserves names that begin with __, .*; call it 'x_B'$"),
    (lambda: ag.Input("INT32_MAX", (1,)), "C reserves .*, and macros such as .*; call it 'xINT32_MAX'$"),
    (lambda: ag.Input("class", (1,)), "input 'class': this is a keyword"),
    (lambda: ag.Input("2x", (1,)), "a name is a string of letters, digits and _, which does not begin with a digit"),
    (lambda: ag.Input(3, (1,)), "input 3: a name is a string of letters"),
    (lambda: ag.Param(1j, [1.0]), "parameter 1j: a name is made of letters"),
    (lambda: ag.Input("x", (1,), dtype=[]), "unknown dtype"),
    (lambda: ag.Input("x", (0, 3)), r"input 'x': shape \[0, 3\] must be made of integers of at least 1"),
    (lambda: ag.Input("x", (2, 3), batch_axis=2), "batch_axis=2 is out of range"),
    (lambda: ag.Input("x", (2, 3), batch_axis=1), "the batch axis must come first"),
    (lambda: ag.Param("register", [1.0]), "parameter 'register': this is a keyword or a macro of C"),
    (lambda: ag.Param("a b", [1.0]), "parameter 'a b': a name is made of letters"),
    (lambda: ag.Param("w", [1.0, np.nan]), r"parameter 'w': the initial value at \[1\] is nan, not finite in float32"),
    (lambda: ag.Param("w", [[1.0], [1e39]]), r"parameter 'w': the initial value at \[1, 0\] is inf, not finite"),
    (lambda: ag.Param("w", "zeros"), "parameter 'w': expected an initialiser .* not str"),
    (lambda: ag.Param("w", np.zeros((0, 3))), r"parameter 'w': shape \[0, 3\] holds no elements"),
    (lambda: init.uniform((2, 0)), r"shape \[2, 0\] must be made of integers"),
    (lambda: init.uniform(2, bound=float("inf")), "init.uniform: inf is no finite number"),
    (lambda: init.uniform(2, 1.0, low=0.0), "give either bound, or low and high"),
    (lambda: init.uniform(2, seed=-1), "seed -1 is no integer in 0"),
    (lambda: init.uniform(2, bound="a"), "init.uniform: 'a' is no finite number"),
    (lambda: init.uniform(2, seed=()), r"seed \(\) is no integer in 0"),
    (lambda: nn.Conv2d(1, 4, 3, stride=1.5), "Conv2d: stride=1.5 must be an integer of at least 1, or 2 of them"),
    (lambda: nn.Conv2d(1, 4, None), "Conv2d: kernel_size=None must be an integer of at least 1, or 2 of them"),
    (lambda: init.kaiming_uniform((3,)), "needs at least two axes"),
    (lambda: init.kaiming_uniform((3, 3), mode="fan"), "mode='fan'"),
    (lambda: nn.Linear(0, 3), "Linear: in_features=0 must be an integer"),
    (lambda: nn.Linear(2, 3, device="cuda"), "Linear: the argument 'device' is not supported"),
    (lambda: nn.MSELoss("avg"), "MSELoss: reduction='avg'"),
    (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU), "Sequential: '1' is .*, not a module; did you"),
    (lambda: nn.Linear(2, 3).load_state_dict({"weight": np.ones((3, 2))}), "missing: bias; the module has weight"),
    (lambda: nn.ReLU().load_state_dict({"weight": 1.0}), "load_state_dict: unknown: weight; the module has nothing"),
    (lambda: nn.Linear(2, 3, False).load_state_dict({"weight": np.ones((2, 3))}), r"has shape \[3, 2\], got \[2, 3\]"),
    (lambda: nn.Linear(1, 1, False).load_state_dict({"weight": [[np.nan]]}), "'weight': the initial value at .* nan"),
    (lambda: (net := nn.ReLU(), net.load_state_dict({}, assign=True)), "argument 'assign' is not supported"),
    (lambda: called_then_loaded(), "load_state_dict: 'weight' is part of a graph already; call load_state_dict before"),
    (lambda: nn.Module()(1), "Module defines no forward method"),
    (
        lambda: setattr(nn.Linear(2, 3), "requires_grad", False),
        r"^Linear: requires_grad of a module freezes nothing; call requires_grad_\(False\)$",
    ),
    (
        lambda: ag.Input("x", (2,)) * nn.Parameter([1.0, 2.0]),
        r"^a Parameter of shape \[2\] that no module holds cannot be an operand; assign it to an attribute",
    ),
    (lambda: optim.SGD(lr=-1.0), "optim.SGD: lr=-1.0 must be a number of at least 0"),
    (lambda: optim.SGD(nesterov=True), "nesterov=True needs a momentum"),
    (lambda: optim.SGD(foreach=True), "SGD: the argument 'foreach' is not supported"),
    (lambda: optim.Adam(betas=(0.9, 1.0)), r"betas\[1\]=1.0 must be a number of at least 0 and below 1"),
    (lambda: optim.Adam(fused=True), "Adam: the argument 'fused' is not supported"),
    (lambda: ag.function([1.0], []), "1.0 is neither an ag.Input nor an ag.Param"),
    (lambda: ag.function([], [ag.Input("x", ())]), "function 'f': 'x' is used, but not among the inputs"),
    (lambda: ag.function([ag.Input("x", ()), ag.Input("x", ())], []), "two inputs are called 'x'"),
    (lambda: ag.function([], {}, name="for"), "function 'for': this is a keyword"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED[1:])


def test_the_model_of_those_rows_is_accepted() -> None:
    REJECTED[0][0]()
