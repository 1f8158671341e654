"""RNN, LSTM, GRU and their cells beside torch.nn, with the same weights: values and every gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.types import Type, f32

T, B, N, H = 5, 3, 4, 6
Make = Callable[[Any], Any]

# name -> (the layer, the shape of x, whether first states are given)
LAYERS: dict[str, tuple[Make, tuple[int, ...], bool]] = {
    "rnn": (lambda nn: nn.RNN(N, H), (T, B, N), False),
    "rnn relu, no bias": (lambda nn: nn.RNN(N, H, nonlinearity="relu", bias=False), (T, B, N), True),
    "rnn, two directions": (lambda nn: nn.RNN(N, H, 2, bidirectional=True), (T, B, N), True),
    "lstm": (lambda nn: nn.LSTM(N, H, batch_first=True), (B, T, N), False),
    "lstm, two layers": (lambda nn: nn.LSTM(N, H, num_layers=2), (T, B, N), True),
    "lstm, two directions": (
        lambda nn: nn.LSTM(N, H, batch_first=True, bidirectional=True),
        (B, T, N),
        True,
    ),
    "gru": (lambda nn: nn.GRU(N, H, batch_first=True), (B, T, N), True),
    "gru, all of it": (lambda nn: nn.GRU(N, H, 2, bidirectional=True, batch_first=True), (B, T, N), False),
    "gru without bias": (lambda nn: nn.GRU(N, H, bias=False), (T, B, N), False),
    "gru, one step": (lambda nn: nn.GRU(N, H), (1, B, N), True),
    "gru, many steps": (lambda nn: nn.GRU(N, H), (60, 2, N), True),
    "lstm, one sample": (lambda nn: nn.LSTM(N, H, 2), (T, N), True),
    "gru, one sample": (lambda nn: nn.GRU(N, H, batch_first=True), (T, N), False),
    "rnn cell": (lambda nn: nn.RNNCell(N, H, nonlinearity="relu"), (B, N), True),
    "lstm cell": (lambda nn: nn.LSTMCell(N, H), (B, N), True),
    "lstm cell, one sample": (lambda nn: nn.LSTMCell(N, H), (N,), False),
    "gru cell": (lambda nn: nn.GRUCell(N, H, bias=False), (B, N), True),
}


def flat(out: Any) -> list[Any]:
    return [v for part in out for v in flat(part)] if isinstance(out, tuple | list) else [out]


def state_arrays(layer: Any, shape: tuple[int, ...], rng: np.random.Generator) -> list[Any]:
    """First states as the layer takes them."""
    if hasattr(layer, "num_layers"):
        samples = () if len(shape) == 2 else (shape[0] if layer.batch_first else shape[1],)
        whole: tuple[int, ...] = (layer.num_layers * (2 if layer.bidirectional else 1), *samples, H)
    else:
        whole = (*shape[:-1], H)
    count = 2 if type(layer).__name__.startswith("LSTM") else 1
    return [rng.normal(size=whole).astype(np.float32) for _ in range(count)]


def given(states: list[Any]) -> Any:
    return None if not states else states[0] if len(states) == 1 else tuple(states)


def case(name: str) -> tuple[list[Any], list[Any], list[Any], dict[str, Any]]:
    """Inputs and parameters, arrays, results with the gradients of sum(y * (1, 2, ...)), parameters by name."""
    make, shape, with_states = LAYERS[name]
    layer, rng = make(nn), np.random.default_rng(2)
    arrays = [rng.normal(size=shape).astype(np.float32)]
    arrays += state_arrays(layer, shape, rng) if with_states else []
    inputs = [make_input("xhc"[i], Type(f32, a.shape)) for i, a in enumerate(arrays)]
    ys = flat(layer(inputs[0], given(inputs[1:])))
    parameters = dict(layer.named_parameters())
    arrays += [v.node.attrs["state"].init.array() for v in parameters.values()]
    inputs += parameters.values()
    terms = [F.sum(y * (1.0 + np.arange(np.prod(y.shape)).reshape(y.shape).astype(np.float32))) for y in ys]
    return inputs, arrays, [*ys, *ag.grad(sum(terms[1:], terms[0]), inputs)], parameters


def torch_outputs(name: str, arrays: list[Any], parameters: dict[str, Any], kind: str) -> list[Any]:
    import torch

    make = LAYERS[name][0]
    twin = make(torch.nn).to(getattr(torch, kind))
    count = len(arrays) - len(parameters)
    assert list(twin.state_dict()) == list(parameters)
    twin.load_state_dict({k: torch.tensor(a) for k, a in zip(parameters, arrays[count:], strict=True)})
    leaves = [torch.tensor(a.astype(kind), requires_grad=True) for a in arrays[:count]]
    ys = flat(twin(leaves[0], given(leaves[1:])))
    total = sum((y * (1.0 + torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape))).sum() for y in ys)
    found = torch.autograd.grad(total, [*leaves, *twin.parameters()])
    return [v.detach().numpy() for v in (*ys, *found)]


def assert_close(got: list[Any], want: list[Any], tolerance: float) -> None:
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(b)))))


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_in_float64(name: str) -> None:
    inputs, arrays, outs, parameters = case(name)
    got = evaluate(outs, dict(zip(inputs, arrays, strict=True)), float_dtype="float64")
    assert_close(got, torch_outputs(name, arrays, parameters, "float64"), 1e-9)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize(
    "name",
    ["rnn, two directions", "lstm, two layers", "lstm, two directions", "gru, all of it", "gru, one step",
     "gru, many steps", "lstm, one sample"],
)  # fmt: skip
def test_values_and_gradients_in_c(name: str) -> None:
    inputs, arrays, outs, parameters = case(name)
    got = ag.function(inputs, outs).on_host()(*arrays)
    assert_close(got, torch_outputs(name, arrays, parameters, "float32"), 1e-5)


def reset_before(torch: Any, x: Any, h: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
    """Cho et al. 2014: the reset gate multiplies the state before the product."""
    ys = []
    for row in x:
        x_r, x_z, x_n = (row @ w.T + b).chunk(3, -1)
        h_r, h_z = (h @ u[: 2 * H].T + c[: 2 * H]).chunk(2, -1)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + (r * h) @ u[2 * H :].T + c[2 * H :])
        h = n + z * (h - n)
        ys.append(h)
    return torch.stack(ys), h


@pytest.mark.cc
@pytest.mark.torch
def test_reset_before_the_product_in_layer_and_cell() -> None:
    """Values and all gradients of sum(y * (1, 2, ...)), by the interpreter in float64 and by C."""
    import torch

    layer, cell = nn.GRU(N, H, reset_after=False), nn.GRUCell(N, H, reset_after=False)
    rng = np.random.default_rng(4)
    arrays = [rng.normal(size=s).astype(np.float32) for s in ((T, B, N), (B, H))]
    x, h = (make_input(name, Type(f32, a.shape)) for name, a in zip("xh", arrays, strict=True))
    weights = list(layer.parameters())
    arrays += [v.node.attrs["state"].init.array() for v in weights]
    y, last = layer(x, F.unsqueeze(h, 0))
    total = F.sum(y * (1.0 + np.arange(T * B * H).reshape(T, B, H).astype(np.float32)))
    inputs = [x, h, *weights]
    outs = [y, last, *ag.grad(total, inputs)]
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    ty, tlast = reset_before(torch, *leaves)
    ttotal = (ty * (1.0 + torch.arange(T * B * H).reshape(T, B, H))).sum()
    wanted = [v.detach().numpy() for v in (ty, tlast[None], *torch.autograd.grad(ttotal, leaves))]
    assert_close(evaluate(outs, dict(zip(inputs, arrays, strict=True)), float_dtype="float64"), wanted, 1e-9)
    assert_close(ag.function(inputs, outs).on_host()(*arrays), wanted, 1e-5)

    own = list(cell.parameters())
    feeds = dict(zip([x, h, *own], arrays, strict=True))
    found = evaluate([cell(F.select(x, 0, 0), h)], feeds, float_dtype="float64")
    assert_close(found, [wanted[0][0]], 1e-9)


@pytest.mark.cc
def test_dropout_between_layers_is_that_of_a_dropout_layer() -> None:
    """Two layers in training, and one layer after the other with a dropout between them, by the generated C."""
    array = np.random.default_rng(3).normal(size=(T, B, N)).astype(np.float32)
    x = make_input("x", Type(f32, array.shape))
    whole = nn.LSTM(N, H, 2, dropout=0.5)
    first, second = nn.LSTM(N, H), nn.LSTM(H, H)
    own = dict(whole.named_parameters())
    for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
        setattr(first, name, own[name])
        setattr(second, name, own[name.replace("l0", "l1")])
    results = []
    for y in (whole(x)[0], second(nn.Dropout(0.5)(first(x)[0]))[0]):
        weights = {v: v.node.attrs["state"].init.array() for v in own.values()}
        f = ag.function([x, F.random_step(), *weights], [y], training=True)
        results.append(f.on_host()(array, np.uint32(4), *weights.values())[0])
    np.testing.assert_array_equal(*results)
    plain = ag.function([x, *weights], [whole(x)[0]]).on_host()(array, *weights.values())[0]
    assert not np.allclose(results[0], plain, atol=1e-3)


def test_parameters_begin_within_the_bound_of_torch() -> None:
    for name, value in nn.LSTM(3, 16).named_parameters():
        first = value.node.attrs["state"].init
        assert isinstance(first, init.Uniform) and first.bound == 0.25, name


class Classifier(nn.Module):
    """The last state of a GRU over x[n, T, N], and a linear layer."""

    def __init__(self, hidden: int = H) -> None:
        super().__init__()
        self.gru = nn.GRU(N, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x: Any) -> Any:
        _, h = self.gru(x)
        return self.out(F.squeeze(h, 0))


@pytest.mark.cc
@pytest.mark.torch
def test_training_of_a_classifier_equals_pytorchs() -> None:
    import torch

    model = ag.Model.supervised(Classifier(), (4, 12, N), nn.CrossEntropyLoss(), optim.Adam(lr=0.01))
    trainer = model.on_host()
    gru, out = torch.nn.GRU(N, H, batch_first=True), torch.nn.Linear(H, 3)
    twin = torch.nn.ModuleDict({"gru": gru, "out": out})
    state = trainer.state_dict()
    twin.load_state_dict({k: torch.tensor(state[k]) for k in twin.state_dict()})
    adam = torch.optim.Adam(twin.parameters(), lr=0.01)
    rng = np.random.default_rng(5)
    for k in range(20):
        rows = 1 + k % 4  # any number of rows up to the batch
        x = rng.normal(size=(rows, 12, N)).astype(np.float32)
        label = rng.integers(0, 3, rows)
        scores = out(gru(torch.tensor(x))[1][0])
        np.testing.assert_allclose(trainer.predict(x), scores.detach().numpy(), atol=2e-5)
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(label))
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), abs=1e-5)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.numpy(), atol=2e-5)


def test_no_weight_gradient_of_a_recurrent_layer_takes_memory() -> None:
    model = ag.Model.supervised(Classifier(), (2, 3, N), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    from autodiff_gen.codegen.compiler import compile_model

    program = compile_model(model, "gru")
    shapes = [v.type.shape for e in program.entries for b in e.plan.placed for v in b.values]
    assert (3 * H, H) not in shapes and (3 * H, N) not in shapes


X = make_input("x", Type(f32, (T, B, N)))
ROWS = ag.Input("rows", (3, 5, N), batch_axis=0)
REJECTED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: nn.GRU(0, 3), ModelError, r"^GRU: input_size=0 must be an integer of at least 1$"),
    (lambda: nn.RNN(3, 3, nonlinearity="sin"), ModelError, r"^RNN: nonlinearity='sin'; known: \"tanh\", \"relu\"$"),
    (lambda: nn.LSTM(3, 3, dropout=2), ModelError, r"^LSTM: p=2 must be a probability, from 0 to 1$"),
    (lambda: nn.LSTM(3, 3, proj_size=2), ShapeError, r"^LSTM: the argument 'proj_size' is not supported$"),
    (lambda: nn.GRU(N + 1, 3)(X), ShapeError, r"^GRU\(f32\[5,3,4\]\): the input must be \[time, n, 5\]"),
    (lambda: nn.GRU(N, 3)(X, X), ShapeError, r"^GRU: the initial state must be h_0, \[1, 3, 3\], not f32\[5,3,4\]$"),
    (lambda: nn.LSTM(N, 3)(X, X), ShapeError, r"^LSTM: the initial state must be \(h_0, c_0\), each \[1, 3, 3\]"),
    (lambda: nn.GRU(N, 3)(ROWS), ShapeError, r"^GRU\(f32\[n,5,4\]\): the time cannot be the axis of the batch n; give"),
    (lambda: nn.LSTM(N, 3)(ROWS[:, 0]), ShapeError, r"^LSTM\(f32\[n,4\]\): .*; the input must be \[n, time, 4\]$"),
    (lambda: nn.RNN(N, 3, batch_first=True)(F.transpose(ROWS, 0, 1)), ShapeError, "leave out batch_first=True$"),
    (lambda: nn.GRUCell(N, 3)(X), ShapeError, r"^GRUCell\(f32\[5,3,4\]\): the input must be \[n, 4\]"),
    (lambda: nn.LSTMCell(N, 3)(F.reshape(X, (15, N)), X), ShapeError, r"^LSTMCell: the state must be \(h, c\), each"),
]  # fmt: skip


@pytest.mark.parametrize("build, kind, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        build()


def test_explain_and_header_tell_the_steps_inside_a_loop() -> None:
    from autodiff_gen.codegen.compiler import compile_model
    from autodiff_gen.codegen.files import emit
    from autodiff_gen.report.explain import explain
    from autodiff_gen.targets.board import load as load_board

    model = ag.Model.supervised(Classifier(24), (2, 7, N), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    program = compile_model(model, "gru")
    text = explain(program, load_board("host"), None, full=True)
    assert "a loop of 7 iterations with its own steps" in text
    (loop,) = [s for s in program.entries[1].plan.steps if s.inner is not None]
    inner = [
        number for number, _ in program.entries[1].plan.all_steps() if number.startswith(f"{loop.number}.")
    ]
    assert len(inner) >= 3 and all(f" {number} " in text for number in inner)
    header = emit(program)["gru.h"]
    assert f"predict step {loop.number}." in header
    scratch = [b for e in program.entries for b in e.plan.placed if not b.values]
    assert scratch and all(
        b.bytes == max(p.plan.plans[b.pool].peak for p in b.owner.inner.parts) for b in scratch if b.owner
    )
