"""batch_norm and instance_norm with running statistics, and their layers, beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch_changes import older_than_needed

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.check.gradcheck import check
from autodiff_gen.errors import AutodiffError, ModelError, ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.passes.training.resolve_mode import resolved

# function, shape, whether there are a weight and a bias, further arguments
ROWS: list[tuple[str, tuple[int, ...], bool, dict[str, Any]]] = [
    ("batch_norm", (4, 3), True, {"training": True}),
    ("batch_norm", (2, 1), False, {"training": True, "momentum": 1.0}),
    ("batch_norm", (1, 3, 5), True, {"training": True, "momentum": 0.3, "eps": 1e-3}),
    ("batch_norm", (3, 2, 4, 2), True, {"training": True, "momentum": 0.0}),
    ("batch_norm", (4, 3), True, {}),
    ("batch_norm", (2, 3, 2, 2), False, {"eps": 1e-2}),
    ("instance_norm", (2, 3, 4), True, {"momentum": 0.3}),
    ("instance_norm", (3, 2, 2, 3), False, {"eps": 1e-3}),
    ("instance_norm", (2, 3, 4), True, {"use_input_stats": False}),
]


class Operands:
    """Values and arrays: input, running statistics, weight, bias, and the gradient of the result."""

    def __init__(self, shape: tuple[int, ...], affine: bool, batch: bool = False) -> None:
        rng = np.random.default_rng(3)
        drawn = [rng.normal(1.0, 2.0, shape), rng.normal(size=shape[1]), rng.uniform(0.5, 2.0, shape[1])]
        drawn += [rng.normal(size=shape[1]), rng.normal(size=shape[1])] if affine else []
        self.arrays = [np.asarray(a, dtype=np.float32) for a in (*drawn, rng.normal(size=shape))]
        running = [ag.Buffer(n, a) for n, a in zip(("mean", "var"), drawn[1:3], strict=True)]
        weights = [ag.Input(n, (shape[1],)) for n in ("weight", "bias")] if affine else []
        x, dy = (ag.Input(n, shape, batch_axis=0 if batch else None) for n in ("x", "dy"))
        self.values = [x, *running, *weights, dy]

    def roots(self, name: str, options: dict[str, Any]) -> list[Any]:
        """The result, and the gradients of input, weight and bias."""
        x, mean, var, *weights, dy = self.values
        y = getattr(F, name)(x, mean, var, *weights, **options)
        return [y, *grad(F.sum(y * dy), [x, *weights])]

    def torch(self, name: str, options: dict[str, Any], kind: str, n: int | None = None) -> list[Any]:
        """The same by PyTorch, then the running statistics."""
        import torch

        x, mean, var, *weights, dy = (torch.tensor(a.astype(kind)) for a in self.arrays)
        x, dy = x[:n], dy[:n]
        leaves = [t.requires_grad_() for t in (x, *weights)]
        y = getattr(torch.nn.functional, name)(x, mean, var, *weights, **options)
        return [
            y.detach().numpy(),
            *(g.numpy() for g in torch.autograd.grad((y * dy).sum(), leaves)),
            mean,
            var,
        ]


@pytest.mark.torch
@pytest.mark.parametrize("name, shape, affine, options", ROWS)
def test_equals_pytorch_in_float64(
    name: str, shape: tuple[int, ...], affine: bool, options: dict[str, Any]
) -> None:
    ours = Operands(shape, affine)
    training = resolved(ours.roots(name, options), training=True)
    new = {s.name: v for s, v in training.updates.items()}
    moved = [new.get(v.name, v) for v in ours.values[1:3]]
    feeds = dict(zip(ours.values, ours.arrays, strict=True))
    got = evaluate([*training.roots, *moved], feeds, float_dtype="float64")
    for a, b in zip(got, ours.torch(name, options, "float64"), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)  # eps and momentum are float32 in ours
    fixed = {**options, "training" if name == "batch_norm" else "use_input_stats": False}
    got = evaluate(resolved(ours.roots(name, options), training=False).roots, feeds, float_dtype="float64")
    for a, b in zip(got, ours.torch(name, fixed, "float64"), strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2), (2, 3, 4)])
def test_c_equals_pytorch_for_every_n(shape: tuple[int, ...], training: bool) -> None:
    name = "instance_norm" if len(shape) == 3 else "batch_norm"
    ours = Operands(shape, True, batch=True)
    stats = "training" if name == "batch_norm" else "use_input_stats"
    roots = ours.roots(name, {stats: True})
    f = ag.function(ours.values, roots, training=training).on_host()
    for n in range(2 if len(shape) == 2 and training else 1, shape[0] + 1):
        x, *others, dy = ours.arrays
        got = f(x[:n], *others, dy[:n])
        for a, b in zip(got, ours.torch(name, {stats: training}, "float32", n), strict=False):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(1.0, float(np.max(np.abs(b)))))


def test_evaluation_scales_and_shifts_by_channel() -> None:
    from autodiff_gen.codegen.compiler import compile_function
    from autodiff_gen.codegen.files import emit

    ours = Operands((4, 3), True, batch=True)
    x, mean, var, weight, bias, _ = ours.values
    y = F.batch_norm(x, mean, var, weight, bias, training=True)
    text = emit(compile_function(ag.function([x, mean, var, weight, bias], [y]), "f"))["f.c"]
    channels, elements = text.split("sqrtf")[1].split("for (int32_t i = 0; i < n; i++)")
    assert "/" not in elements.split("return")[0] and channels.count("for") == 0


# Layers

Net = Callable[[Any], list[Any]]
NETS: dict[str, Net] = {
    "batch_norm": lambda nn: [nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)],
    "cumulative": lambda nn: [nn.Linear(5, 12), nn.BatchNorm1d(12, 1e-3, None), nn.Tanh(), nn.Linear(12, 3)],
    "plain": lambda nn: [nn.BatchNorm1d(5, affine=False), nn.Linear(5, 3)],
    "without bias": lambda nn: [nn.Linear(5, 3), nn.BatchNorm1d(3, bias=False)],
    "untracked": lambda nn: [nn.Linear(5, 6), nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 3)],
    "frozen": lambda nn: [nn.Linear(5, 12), nn.BatchNorm1d(12).eval(), nn.ReLU(), nn.Linear(12, 3)],
    "places": lambda nn: [nn.Unflatten(1, (2, 4)), nn.BatchNorm1d(2), nn.Flatten(), nn.Linear(8, 3)],
    "images": lambda nn: [nn.Unflatten(1, (2, 2, 2)), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3)],
    "instance": lambda nn: [
        nn.Unflatten(1, (2, 4)),
        nn.InstanceNorm1d(2, affine=True),
        nn.Flatten(),
        nn.Linear(8, 3),
    ],
    "instance_tracked": lambda nn: [
        nn.Unflatten(1, (2, 2, 2)),
        nn.InstanceNorm2d(2, momentum=0.3, track_running_stats=True),
        nn.Flatten(),
        nn.Linear(8, 3),
    ],
}
STEPS = 12


class Unflatten(nn.Module):
    """torch.nn.Unflatten of the axis after the batch."""

    def __init__(self, dim: int, sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes = sizes

    def forward(self, input: Any) -> Any:
        return F.reshape(input, (input.shape[0], *self.sizes))


class Ours:
    Unflatten = Unflatten

    def __getattr__(self, name: str) -> Any:
        return getattr(nn, name)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", [n for n in NETS if not older_than_needed(n)])
def test_steps_of_a_model_equal_pytorchs(name: str) -> None:
    import torch

    features = 8 if "Flatten" in str(NETS[name](torch.nn)) else 5
    net = nn.Sequential(*NETS[name](Ours()))
    rng = np.random.default_rng(5)
    running = {key: buffer.shape for key, buffer in net.named_buffers() if "running" in key}
    start = {key: rng.uniform(0.5, 1.5, shape).astype(np.float32) for key, shape in running.items()}
    net.load_state_dict(start, strict=False)
    rate = optim.SGD(lr=0.1)
    trainer = ag.Model.supervised(
        net, input=(6, features), loss=nn.CrossEntropyLoss(), optimizer=rate
    ).on_host()
    twin = torch.nn.Sequential(*NETS[name](torch.nn))
    state = trainer.state_dict()
    twin.load_state_dict({k: torch.tensor(v) for k, v in state.items()})
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    modes = [m.training for m in twin.modules()]
    for k in range(STEPS):
        rows = 2 + k % 5
        x = rng.normal(size=(rows, features)).astype(np.float32)
        label = rng.integers(0, 3, rows)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=2e-5, abs=1e-6)
        scores = trainer.predict(x)  # in between, and the trajectory is the same
        expected = twin.eval()(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
        for m, mode in zip(twin.modules(), modes, strict=True):
            m.training = mode
    assert sorted(trainer.state_dict()) == sorted(twin.state_dict())
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(
            trainer.state_dict()[key], value.numpy(), rtol=2e-5, atol=2e-5, err_msg=key
        )


@pytest.mark.torch
def test_gradients_are_checked_in_training_mode() -> None:
    net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
    model = ag.Model.supervised(net, input=(4, 5), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))
    report, right = check(model, "m")
    assert right, report


@pytest.mark.cc
def test_one_value_per_channel_is_rejected_at_run_time() -> None:
    net = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    model = ag.Model.supervised(net, input=(4, 5), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))
    trainer = model.on_host()
    x, label = np.zeros((1, 5), dtype=np.float32), np.zeros(1, dtype=np.uint8)
    before = trainer.state_dict()
    with pytest.raises(
        ShapeError, match=r"^x: 1 rows given \(\[1, 5\]\), but the model takes 2 to 4: f32\[n,5\]$"
    ):
        trainer.train_step(x, label)
    assert trainer.predict(x).shape == (1, 3)
    import ctypes

    loss = ctypes.c_float()
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, label)]
    status = trainer.library.model_train_step(
        ctypes.byref(trainer.memory), *pointers, ctypes.c_int32(1), ctypes.c_float(0.1), ctypes.byref(loss)
    )
    assert status == -2
    for key, array in trainer.state_dict().items():
        np.testing.assert_array_equal(array, before[key])


X2, X3, C = ag.Input("x", (4, 3)), ag.Input("x", (4, 3, 2)), np.ones(3)
REJECTED: list[tuple[Callable[[], Any], type[AutodiffError], str]] = [
    (lambda: F.batch_norm(ag.Input("x", (4,)), C, C), ShapeError, r"^batch_norm\(.*: the input must be \[N, C, ...\]$"),
    (lambda: F.batch_norm(X2, C, None), ShapeError, r"give running_mean and running_var both, or neither$"),
    (lambda: F.batch_norm(X2, np.ones(2), C), ShapeError, r"running_mean must have the shape \[3\], not \[2\]$"),
    (lambda: F.batch_norm(X2, C, C, np.ones(2)), ShapeError, r"batch_norm\(.*weight must have the shape \[3\]"),
    (lambda: F.batch_norm(X2, C, C, training=True), ShapeError, r"they must be buffers, not <const"),
    (lambda: F.batch_norm(ag.Input("x", (1, 3)), None, None), ShapeError, r"need more than one value per channel$"),
    (lambda: F.instance_norm(X2), ShapeError, r"with at least one spatial axis$"),
    (lambda: F.instance_norm(ag.Input("x", (4, 3, 1))), ShapeError, r"more than one value per channel$"),
    (lambda: F.instance_norm(X3, use_input_stats=False), ShapeError, r"use_input_stats=False needs running"),
    (lambda: nn.BatchNorm1d(3)(ag.Input("x", (4, 2))), ModelError, r"^BatchNorm1d: .* \[N, C, L\] with C = 3, not"),
    (lambda: nn.BatchNorm2d(3)(X3), ModelError, r"^BatchNorm2d: the input must be \[N, C, H, W\] with C = 3"),
    (lambda: nn.BatchNorm1d(0), ModelError, r"^BatchNorm1d: num_features=0 must be an integer of at least 1$"),
    (lambda: nn.BatchNorm1d(3, momentum=1.5), ModelError, r"^BatchNorm1d: momentum=1.5 must be a number from 0 to 1"),
    (lambda: nn.InstanceNorm1d(4, affine=True)(X3), ModelError, r"^InstanceNorm1d: .* with C = 4"),
    (lambda: nn.BatchNorm1d(3, dtype="f16"), ShapeError, r"^BatchNorm1d: the argument 'dtype' is not supported$"),
]  # fmt: skip


@pytest.mark.parametrize("build, error, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], error: type[AutodiffError], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


def siamese(nn: Any, momentum: float | None) -> Any:
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=momentum), nn.ReLU(), nn.Linear(5, 3))


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_layer_called_three_times_in_a_step(momentum: float | None) -> None:
    """Each call goes on with the running statistics that the call before it left, as in PyTorch."""
    import torch

    net, twin = siamese(nn, momentum), siamese(torch.nn, momentum)
    given = [ag.Input(name, (4, 4), batch_axis=0) for name in ("anchor", "positive", "negative")]
    embedded = [net(v) for v in given]
    outputs = {"first": embedded[0]}
    loss = F.triplet_margin_loss(embedded[0], embedded[2], embedded[1], margin=3.0)
    trainer = ag.Model(given, [], outputs, loss, ag.optim.SGD(lr=0.1)).on_host()
    trainer.load_state_dict(twin.state_dict())
    update = torch.optim.SGD(twin.parameters(), lr=0.1)
    rng = np.random.default_rng(1)
    for n in (4, 4, 3):
        arrays = [rng.normal(size=(n, 4)).astype(np.float32) for _ in given]
        made = [twin(torch.tensor(a)) for a in arrays]
        want = torch.nn.functional.triplet_margin_loss(made[0], made[2], made[1], margin=3.0)
        update.zero_grad()
        want.backward()
        update.step()
        assert trainer.train_step(*arrays) == pytest.approx(want.item(), rel=1e-5)
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(
            trainer.state_dict()[key], value.numpy(), rtol=1e-4, atol=1e-5, err_msg=key
        )
