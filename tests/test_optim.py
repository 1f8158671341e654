"""Optimizers, schedules and clipping against torch.optim: every parameter and state of every step; parameter groups and
freezing; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_build import HOST, compile_c
from test_model import mlp

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.compiler import compile_model
from autodiff_gen.emit import emit
from autodiff_gen.errors import AutodiffError
from autodiff_gen.interpret import evaluate
from autodiff_gen.optim import lr_scheduler as lrs

STEPS = 10
WEIGHT = np.float32([0.5, 2.0])
Options = dict[str, Any]

OPTIMIZERS: list[tuple[str, Options]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "dampening": 0.5}),
    ("SGD", {}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "betas": (0.0, 0.9)}),
    ("Adam", {}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.3}),
    ("AdamW", {"weight_decay": 0.0}),
    ("AdamW", {}),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.5}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.8, "centered": True}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.8, "eps": 1e-4, "centered": True, "momentum": 0.9, "weight_decay": 0.01}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1, "eps": 1e-3}),
]  # fmt: skip

# One of each rule for what is tried with all of them; large epsilons, where a gradient near 0 would decide a sign.
RULES: list[tuple[str, Options]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    ("Adam", {"lr": 0.05, "eps": 1e-3}),
    ("AdamW", {"lr": 0.05, "eps": 1e-3}),
    ("RMSprop", {"lr": 0.02, "eps": 1e-3, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-3}),
]

SCHEDULES: list[tuple[str, Options]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 6], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.05, "total_steps": 10}),
    ("OneCycleLR", {"max_lr": 0.05, "total_steps": 12, "anneal_strategy": "linear", "three_phase": True}),
]  # fmt: skip
CLIPS: list[Options] = [{"clip_grad_norm": 0.3}, {"clip_grad_value": 0.05}]


def name_of(v: Any) -> str:
    return v if isinstance(v, str) else ""


def takes_momentum(rule: str) -> bool:
    return rule != "Adagrad"


def schedule_of(module: Any, schedule: tuple[str, Options] | None, rule: str, *first: Any) -> Any:
    if schedule is None:
        return None
    name, options = schedule
    if name == "OneCycleLR" and not takes_momentum(rule):
        options = {**options, "cycle_momentum": False}
    return getattr(module, name)(*first, **options)


def built(
    rule: str, options: Options, schedule: tuple[str, Options] | None = None, clip: Options | None = None
) -> ag.Model:
    return ag.Model.supervised(
        mlp(3, 4, 2),
        (5, 3),
        nn.MSELoss(),
        getattr(optim, rule)(**options),
        schedule=schedule_of(lrs, schedule, rule),
        **(clip or {}),
    )


class Torch:
    """The same network, optimizer, schedule and clipping in PyTorch."""

    def __init__(
        self,
        model: ag.Model,
        kind: str,
        rule: str,
        options: Options,
        schedule: tuple[str, Options] | None = None,
        clip: Options | None = None,
    ) -> None:
        import torch

        self.dtype = getattr(torch, kind)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).to(
            self.dtype
        )
        net.load_state_dict({s.name: torch.tensor(s.init.array()) for s in model.states if s.trainable})
        self.net, self.clip = net, clip or {}
        params = options.get("params")
        groups = params(net) if callable(params) else net.parameters()
        self.optimizer = getattr(torch.optim, rule)(
            groups, **{k: v for k, v in options.items() if k != "params"}
        )
        self.schedule = schedule_of(torch.optim.lr_scheduler, schedule, rule, self.optimizer)
        self.steps = 0

    def step(self, x: Any, t: Any) -> float:
        import torch

        self.optimizer.zero_grad()
        y = self.net(torch.tensor(x, dtype=self.dtype))
        loss = torch.nn.functional.mse_loss(y, torch.tensor(t, dtype=self.dtype))
        loss.backward()
        parameters = list(self.net.parameters())
        if "clip_grad_value" in self.clip:
            torch.nn.utils.clip_grad_value_(parameters, self.clip["clip_grad_value"])
        if "clip_grad_norm" in self.clip:
            torch.nn.utils.clip_grad_norm_(parameters, self.clip["clip_grad_norm"])
        self.optimizer.step()
        self.steps += 1
        if self.schedule is not None and self.steps < STEPS:
            self.schedule.step()
        return loss.item()

    def state(self) -> dict[str, Any]:
        out: dict[str, Any] = {"optimizer.step": np.float32(self.steps)}
        for name, p in self.net.named_parameters():
            out[name] = p.detach().numpy().copy()
            for key, value in self.optimizer.state.get(p, {}).items():
                if key != "step" and value is not None:
                    out[f"{name}.{key}"] = value.detach().numpy().copy()
        return out


def batches() -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(11)
    for _ in range(STEPS):
        yield (
            rng.uniform(-1, 1, (5, 3)).astype(np.float32),
            rng.uniform(-1, 1, (5, 2)).astype(np.float32),
        )


def interpreted(model: ag.Model, kind: str) -> Callable[[dict[str, Any], Any, Any], dict[str, Any]]:
    """A step of the model in the interpreter: states by name, x, t -> the states and the loss after it."""
    graph = model.entries()[0]
    leaves = {v.node.attrs["state"]: v for v in graph.leaves("state")}

    def step(state: dict[str, Any], x: Any, t: Any) -> dict[str, Any]:
        given = [x, t] if model.default_lr is None else [x, t, model.default_lr]
        feeds = dict(zip(graph.inputs, given, strict=True))
        old = {v: state[s.name] for s, v in leaves.items()}
        loss, *new = evaluate(graph.roots, {**feeds, **old}, float_dtype=kind)
        return {**state, **{s.name: v for s, v in zip(graph.updates, new, strict=True)}, "loss": loss}

    return step


def in_c(model: ag.Model) -> Callable[[dict[str, Any], Any, Any], dict[str, Any]]:
    """The same in generated C."""
    trainer = model.on_host(kernels="ref")

    def step(state: dict[str, Any], x: Any, t: Any) -> dict[str, Any]:
        trainer.load_state_dict(state)
        loss = trainer.train_step(x, t)
        return {**trainer.state_dict(), "loss": loss}

    return step


def compare(model: ag.Model, theirs: Torch, step: Callable[..., Any], rtol: float) -> None:
    """Ten steps of PyTorch, each also taken by ours from PyTorch's own state."""
    first = {s.name: s.init.array() for s in model.states}
    for x, t in batches():
        state = {**first, **{k: v for k, v in theirs.state().items() if k in first}}
        loss = theirs.step(x, t)
        ours, want = step(state, x, t), theirs.state()
        assert set(ours) - {"loss", "optimizer.step"} == set(want) - {"optimizer.step"}
        for name, value in ours.items():
            expected = np.asarray(loss if name == "loss" else want[name])
            np.testing.assert_allclose(
                value,
                expected,
                rtol=rtol,
                atol=rtol * np.abs(expected).max(),
                err_msg=f"{name}, step {theirs.steps}",
            )


KINDS = [("float64", 3e-6), ("float32", 1e-5)]


@pytest.mark.torch
@pytest.mark.parametrize("kind, rtol", KINDS)
@pytest.mark.parametrize("rule, options", OPTIMIZERS, ids=name_of)
def test_every_step_of_every_optimizer(rule: str, options: Options, kind: str, rtol: float) -> None:
    """(Hyperparameters are float32, in float64 runs too.)"""
    model = built(rule, options)
    compare(model, Torch(model, kind, rule, options), interpreted(model, kind), rtol)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("rule, options", OPTIMIZERS, ids=name_of)
def test_every_step_of_every_optimizer_in_generated_c(rule: str, options: Options) -> None:
    model = built(rule, options)
    compare(model, Torch(model, "float32", rule, options), in_c(model), 1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("kind, rtol", KINDS)
@pytest.mark.parametrize(
    "clip", [None, *CLIPS, {**CLIPS[0], **CLIPS[1]}], ids=lambda c: "-".join(c) if c else ""
)
@pytest.mark.parametrize("schedule", [None, *SCHEDULES], ids=lambda s: s[0] if s else "")
@pytest.mark.parametrize("rule, options", RULES, ids=name_of)
def test_every_optimizer_with_every_schedule_and_clipping(
    rule: str,
    options: Options,
    schedule: tuple[str, Options] | None,
    clip: Options | None,
    kind: str,
    rtol: float,
) -> None:
    model = built(rule, options, schedule, clip)
    compare(model, Torch(model, kind, rule, options, schedule, clip), interpreted(model, kind), rtol)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("k", range(len(SCHEDULES) * len(RULES)))
def test_every_optimizer_with_every_schedule_in_generated_c(k: int) -> None:
    """Each with one way of clipping, in turn."""
    (rule, options), schedule = RULES[k % len(RULES)], SCHEDULES[k // len(RULES)]
    clip = [None, *CLIPS][(k + k // len(RULES)) % 3]
    model = built(rule, options, schedule, clip)
    compare(model, Torch(model, "float32", rule, options, schedule, clip), in_c(model), 1e-5)


# Schedules alone

LONG: list[tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any]]] = [
    ("step", lambda s: s.StepLR(7, 0.9), lambda s, o: s.StepLR(o, 7, 0.9)),
    ("multistep", lambda s: s.MultiStepLR([30, 10]), lambda s, o: s.MultiStepLR(o, [10, 30])),
    ("exponential", lambda s: s.ExponentialLR(0.999), lambda s, o: s.ExponentialLR(o, 0.999)),
    ("cosine", lambda s: s.CosineAnnealingLR(30, 1e-4), lambda s, o: s.CosineAnnealingLR(o, 30, 1e-4)),
    ("linear", lambda s: s.LinearLR(0.01, 0.5, 100), lambda s, o: s.LinearLR(o, 0.01, 0.5, 100)),
    ("one cycle", lambda s: s.OneCycleLR(1.0, 1000), lambda s, o: s.OneCycleLR(o, 1.0, 1000)),
    (
        "three phases",
        lambda s: s.OneCycleLR(1.0, 1000, pct_start=0.2, three_phase=True, div_factor=10, final_div_factor=100),
        lambda s, o: s.OneCycleLR(o, 1.0, 1000, pct_start=0.2, three_phase=True, div_factor=10, final_div_factor=100),
    ),
    ("lambda", lambda s: s.LambdaLR(lambda t: 1.0 / (1.0 + t)), lambda s, o: s.LambdaLR(o, lambda t: 1.0 / (1.0 + t))),
    (
        "warm-up, then cosine",
        lambda s: s.SequentialLR(
            [s.LinearLR(0.1, total_iters=20), s.CosineAnnealingLR(400), s.ConstantLR(0.1)], [20, 420]
        ),
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.1, total_iters=20), s.CosineAnnealingLR(o, 400), s.ConstantLR(o, 0.1)], [20, 420]
        ),
    ),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name, ours, theirs", LONG, ids=name_of)
def test_rates_of_a_thousand_steps(
    name: str, ours: Callable[..., Any], theirs: Callable[..., Any], kind: str
) -> None:
    import torch

    base = 0.05
    t = ag.Input("t", ())
    rate = ours(lrs).rate(base, t)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
    schedule = theirs(torch.optim.lr_scheduler, optimizer)
    largest = 0.0
    for step in range(1000):
        want = optimizer.param_groups[0]["lr"]
        largest = max(largest, want)
        (got,) = evaluate([rate], {t: step}, float_dtype=kind)
        assert abs(got - want) <= 2e-6 * want + 2e-7 * largest, (step, got, want)
        optimizer.step()
        schedule.step()


def test_a_powers_error_does_not_grow_with_the_steps() -> None:
    t = ag.Input("t", ())
    (got,) = evaluate([lrs.ExponentialLR(0.9999).rate(1.0, t)], {t: 50_000})
    assert got == pytest.approx(0.9999**50_000, rel=2e-6)


def test_a_step_falls_on_its_step() -> None:
    """t // step_size in float is exact as long as t is."""
    t = ag.Input("t", ())
    for size in (3, 7, 1000, 99_991):
        rate = lrs.StepLR(size, 0.5).rate(1.0, t)
        for k in (1, 5, 12):
            got = [float(evaluate([rate], {t: k * size + d})[0]) for d in (-1, 0)]
            assert got == pytest.approx([0.5 ** (k - 1), 0.5**k], rel=1e-6)


@pytest.mark.cc
def test_a_model_with_a_schedule_takes_no_lr() -> None:
    model = built("SGD", {"lr": 0.1}, SCHEDULES[0])
    assert model.default_lr is None and model.lr is None
    assert [v.name for v in model.entries()[0].inputs] == ["x", "target"]
    trainer = model.on_host()
    header = trainer.source["model.h"]
    assert "const float *target, int32_t n, float *loss);" in header and "DEFAULT_LR" not in header
    with pytest.raises(AutodiffError, match=r"^train_step takes no lr: the model's schedule computes it$"):
        trainer.train_step(*next(batches()), lr=0.1)
    assert [s.name for s in model.states][4:] == ["optimizer.step"]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("rows", [1, 4])
def test_fewer_rows_than_the_batch(rows: int) -> None:
    case = RULES[3][0], RULES[3][1], SCHEDULES[6], CLIPS[0]
    model = built(*case)
    trainer, theirs = model.on_host(), Torch(model, "float32", *case)
    for x, t in batches():
        assert trainer.train_step(x[:rows], t[:rows]) == pytest.approx(
            theirs.step(x[:rows], t[:rows]), rel=1e-4
        )
    for name, value in theirs.state().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value, rtol=1e-3, atol=1e-4, err_msg=name)


# Clipping


@pytest.mark.cc
def test_clipping_by_norm_waits_for_all_gradients() -> None:
    """No weight changes before the norm is known, and small gradients are left alone."""
    x, t = next(batches())
    free, wide, tight = (
        built("SGD", {"lr": 0.1}, None, c).on_host()
        for c in ({}, {"clip_grad_norm": 1e3}, {"clip_grad_norm": 1e-3})
    )
    start = free.state_dict()
    for trainer in (free, wide, tight):
        trainer.train_step(x, t)

    def moved(trainer: Any) -> float:
        return float(np.sqrt(sum(np.sum((v - start[k]) ** 2) for k, v in trainer.state_dict().items())))

    for name, value in free.state_dict().items():
        np.testing.assert_allclose(wide.state_dict()[name], value, rtol=1e-6)
    assert moved(free) > 0.01 and moved(tight) == pytest.approx(1e-4, rel=2e-2)


@pytest.mark.torch
@pytest.mark.parametrize("size", [0.0, 1e-8, 1.0, 1e6, np.inf, np.nan])
def test_clipping_is_torchs_at_every_size(size: float) -> None:
    import torch

    arrays = [np.float32([3, -4]) * np.float32(size), np.float32([[1], [2]]), np.float32(0.5)]
    inputs = [ag.Input("abc"[i], a.shape) for i, a in enumerate(arrays)]
    feeds = dict(zip(inputs, arrays, strict=True))
    for ours, name, limit in (
        (optim.clip_grad_norm, "clip_grad_norm_", 2.0),
        (optim.clip_grad_value, "clip_grad_value_", 0.75),
    ):
        tensors = [torch.zeros(a.shape, requires_grad=True) for a in arrays]
        for v, a in zip(tensors, arrays, strict=True):
            v.grad = torch.tensor(a)
        getattr(torch.nn.utils, name)(tensors, limit)
        for got, v in zip(evaluate(ours(inputs, limit), feeds), tensors, strict=True):
            np.testing.assert_allclose(got, v.grad.numpy(), rtol=1e-6)


# Groups and freezing

GROUPS: list[tuple[str, Any, Callable[[Any], Any]]] = [
    (
        "rates and decay",
        [{"params": "0", "lr": 0.02}, {"params": ["2.weight", "2.bias"], "weight_decay": 0.3}],
        lambda n: [{"params": n[0].parameters(), "lr": 0.02}, {"params": n[2].parameters(), "weight_decay": 0.3}],
    ),
    ("a prefix", "2", lambda n: n[2].parameters()),
    ("names", ["0.bias", "2"], lambda n: [n[0].bias, *n[2].parameters()]),
    ("one group of some", [{"params": ["0.weight"]}], lambda n: [n[0].weight]),
]  # fmt: skip


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("schedule", [None, SCHEDULES[6], SCHEDULES[7]], ids=lambda s: s[0] if s else "")
@pytest.mark.parametrize("rule, options", [RULES[0], RULES[3]], ids=name_of)
@pytest.mark.parametrize("name, ours, theirs", GROUPS, ids=name_of)
def test_parameter_groups(
    name: str, ours: Any, theirs: Any, rule: str, options: Options, schedule: tuple[str, Options] | None
) -> None:
    model = built(rule, {**options, "params": ours}, schedule)
    other = Torch(model, "float32", rule, {**options, "params": theirs}, schedule)
    compare(model, other, in_c(model), 1e-5)


def test_parameters_are_selected_by_module_value_and_generator() -> None:
    def updated(select: Callable[[nn.Sequential], Any]) -> list[str]:
        net = mlp(3, 4, 2)
        model = ag.Model.supervised(net, (5, 3), nn.MSELoss(), optim.SGD(select(net)))
        return [s.name for s in model.entries()[0].updates]

    assert updated(lambda net: net[2]) == ["2.weight", "2.bias"]
    assert updated(lambda net: net[2].parameters()) == ["2.weight", "2.bias"]
    assert updated(lambda net: net[2].named_parameters()) == ["2.weight", "2.bias"]
    assert updated(lambda net: net[2].bias) == ["2.bias"]
    assert updated(lambda net: [net[0].weight, net[2]]) == ["0.weight", "2.weight", "2.bias"]
    assert updated(lambda net: list(net.parameters())[1]) == ["0.bias"]


def test_an_optimizer_serves_two_models() -> None:
    net = mlp(3, 4, 2)
    sgd = optim.SGD(net[2].parameters(), lr=0.1)
    for rows in (1, 5):
        model = ag.Model.supervised(net, (rows, 3), nn.MSELoss(), sgd)
        assert [s.name for s in model.entries()[0].updates] == ["2.weight", "2.bias"]


class TwoParts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.unused = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return self.head(F.tanh(self.body(x)))


@pytest.mark.cc
def test_frozen_modules_keep_their_values() -> None:
    """... stand in the state_dict when they are used, and need not be used."""
    net = TwoParts()
    assert net.body.requires_grad_(False) is net.body
    net.unused.requires_grad_(False)
    model = ag.Model.supervised(
        net, (5, 3), nn.MSELoss(), optim.Adam([{"params": net.body}, {"params": "head"}])
    )
    trainer = model.on_host()
    before = trainer.state_dict()
    trainer.train_step(*next(batches()))
    same = {k for k, v in trainer.state_dict().items() if np.array_equal(v, before[k])}
    assert same == {"body.weight", "body.bias"}
    assert not any(name.startswith("body.weight.") for name in before)


def test_a_parameter_that_the_optimizer_was_not_given_need_not_be_used() -> None:
    net = TwoParts()
    model = ag.Model.supervised(net, (5, 3), nn.MSELoss(), optim.SGD(net.head))
    assert [s.name for s in model.entries()[0].updates] == ["head.weight", "head.bias"]


def test_frozen_layers_cost_no_backward_pass() -> None:
    sizes = []
    for params in (None, "2"):
        model = ag.Model.supervised(mlp(3, 4, 2), (5, 3), nn.MSELoss(), optim.SGD(params))
        sizes.append(str(model.entries()[0]).count("matmul"))
    assert sizes[1] == sizes[0] - 2


# Generated C


@pytest.mark.cc
@pytest.mark.parametrize("cc", HOST)
@pytest.mark.parametrize("k", range(len(RULES)))
def test_no_warning_under_the_strict_flags(k: int, cc: str, tmp_path: Path) -> None:
    losses = [
        nn.CrossEntropyLoss(WEIGHT, ignore_index=255, label_smoothing=0.1),
        nn.CrossEntropyLoss(ignore_index=-1),
        nn.BCEWithLogitsLoss(pos_weight=WEIGHT),
        nn.KLDivLoss(reduction="batchmean"),
        nn.SmoothL1Loss(beta=0.5),
        nn.HingeEmbeddingLoss(),
    ]
    rule, options = RULES[k]
    for j, schedule in enumerate(SCHEDULES[k % 3 :: 3]):
        model = ag.Model.supervised(
            mlp(3, 4, 2),
            (5, 3),
            losses[(k + j) % len(losses)],
            getattr(optim, rule)([{"params": "0", "lr": 0.01}, {"params": "2"}], **options),
            schedule=schedule_of(lrs, schedule, rule),
            **CLIPS[(k + j) % 2],
        )
        for file, text in emit(compile_model(model, f"m{j}")).items():
            (tmp_path / file).write_text(text)
        compile_c(cc, [tmp_path / f"m{j}.c"], tmp_path / "m.o", ("-c", "-O2"))


# Rules of one's own


class SignSGD(optim.Optimizer):
    def __init__(self, lr: float = 0.01) -> None:
        super().__init__(lr=lr)

    def rule(self, step: optim.Step, parameter: Any, w: Any, g: Any) -> Any:
        return w - step.lr * F.where(g > 0.0, 1.0, F.where(g < 0.0, -1.0, 0.0))


@pytest.mark.cc
def test_a_rule_of_ones_own() -> None:
    model = ag.Model.supervised(mlp(3, 4, 2), (5, 3), nn.MSELoss(), SignSGD(0.5))
    trainer = model.on_host()
    before = trainer.state_dict()
    trainer.train_step(*next(batches()))
    for name, value in trainer.state_dict().items():
        np.testing.assert_allclose(np.abs(value - before[name]), 0.5, rtol=1e-6)


# What is refused


def given(**options: Any) -> Callable[[], Any]:
    return lambda: ag.Model.supervised(
        mlp(3, 4, 2), (5, 3), nn.MSELoss(), **{"optimizer": optim.SGD(), **options}
    )


def frozen_late() -> None:
    net = mlp(3, 2)
    list(net.parameters())
    net.requires_grad_(False)


def all_frozen(select: Any) -> Any:
    net = mlp(3, 2)
    net.requires_grad_(False)
    if select:
        x, t = ag.Input("x", (1, 3)), ag.Input("t", (1, 2))
        y = net(x) * ag.Param("scale", init.ones((2,)))
        return ag.Model([x], [t], {"y": y}, F.mse_loss(y, t), optim.SGD("0"))
    return ag.Model.supervised(net, (1, 3), nn.MSELoss(), optim.SGD())


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.SGD(0.1), r"^optim.SGD: params=0.1 is a number; give the learning rate as lr=0.1$"),
    (lambda: optim.SGD(lr=lrs.StepLR(3)), r"^optim.SGD: lr must be a number; a schedule is given to the model"),
    (lambda: optim.AdamW(lr=-1), "^optim.AdamW: lr=-1 must be a number of at least 0$"),
    (lambda: optim.AdamW(betas=(0.9, 1.0)), r"^optim.AdamW: betas\[1\]=1.0 must be .* below 1$"),
    (lambda: optim.AdamW(betas=0.9), "^optim.AdamW: betas=0.9 must be two numbers$"),
    (lambda: optim.AdamW(amsgrad=True), "^AdamW: the argument 'amsgrad' is not supported$"),
    (lambda: optim.RMSprop(alpha=-0.1), "^optim.RMSprop: alpha=-0.1 must be"),
    (lambda: optim.RMSprop(maximize=True), "^RMSprop: the argument 'maximize' is not supported$"),
    (lambda: optim.Adagrad(lr_decay=None), "^optim.Adagrad: lr_decay=None must be"),
    (lambda: optim.Adagrad(differentiable=True), "^Adagrad: the argument 'differentiable' is not supported$"),
    (lambda: optim.SGD([{"lr": 0.1}]), '^optim.SGD: parameter group 0 has no "params"$'),
    (lambda: optim.SGD([{"params": "0", "eps": 1}]), "^optim.SGD: parameter group 0: unknown option 'eps'; known"),
    (lambda: optim.SGD([{"params": "0", "momentum": -1}]), "^optim.SGD: momentum=-1 must be"),
    (given(optimizer=optim.SGD("1")), "^optim.SGD: '1' in params is no parameter .* has 0.weight, 0.bias, 2"),
    (given(optimizer=optim.SGD(["0.weight", 3])), "^optim.SGD: 3 in params is no parameter; give"),
    (given(optimizer=optim.SGD(nn.Linear(2, 2))), "^optim.SGD: the module Linear in params is no param"),
    (given(optimizer=optim.SGD([{"params": "0"}, {"params": "0.bias"}])), "'0.bias' is in more than one"),
    (given(optimizer=optim.SGD([{"params": "0", "lr": 1.0}], lr=0)), "a group has lr=1, which is no multiple"),
    (lambda: all_frozen(False), "^the loss depends on no parameter that may be trained$"),
    (lambda: all_frozen(True), "^the optimizer was given parameters with requires_grad=False alone$"),
    (frozen_late, "^requires_grad_: '0.weight' is part of a graph already; call requires_grad_ before"),
    (given(schedule="step"), "^schedule: expected one of optim.lr_scheduler, got 'step'$"),
    (given(schedule=lrs.OneCycleLR(0.1, 10), optimizer=optim.Adagrad()), "^optim.Adagrad has no momentum"),
    (given(schedule=lrs.LambdaLR(lambda t: F.broadcast_to(t, (2,)))), r"^LambdaLR: the factor is f32\[2\], not"),
    (given(clip_grad_norm=0), "^clip_grad_norm: max_norm=0 must be a finite number greater than 0$"),
    (given(clip_grad_value="1"), "^clip_grad_value: clip_value='1' must be a finite number greater than 0$"),
    (lambda: lrs.StepLR(0), "^StepLR: step_size=0 must be a whole number of at least 1$"),
    (lambda: lrs.StepLR(2, gamma=0), "^StepLR: gamma=0 must be a number greater than 0$"),
    (lambda: lrs.StepLR(2, last_epoch=3), "^StepLR: the argument 'last_epoch' is not supported$"),
    (lambda: lrs.ExponentialLR("0.9"), "^ExponentialLR: gamma='0.9' must be a number greater than 0$"),
    (lambda: lrs.CosineAnnealingLR(2.5), "^CosineAnnealingLR: T_max=2.5 must be a whole number"),
    (lambda: lrs.LinearLR(start_factor=0), "^LinearLR: start_factor=0 must be a number greater than 0 and at most 1$"),
    (lambda: lrs.ConstantLR(factor=2), "^ConstantLR: factor=2 must be a number at least 0 and at most 1$"),
    (lambda: lrs.LambdaLR(0.5), "^LambdaLR: lr_lambda=0.5 must be a function"),
    (lambda: lrs.OneCycleLR(0.1), "^OneCycleLR: give total_steps, or epochs and steps_per_epoch$"),
    (lambda: lrs.OneCycleLR([0.1, 0.2], 10), r"^OneCycleLR: max_lr=\[0.1, 0.2\] must be a number at least 0$"),
    (lambda: lrs.OneCycleLR(0.1, 10, anneal_strategy="exp"), 'known: "cos", "linear"$'),
    (lambda: lrs.SequentialLR([lrs.StepLR(2)], [3]), "^SequentialLR: 1 schedulers want 0 milestones"),
    (lambda: lrs.SequentialLR([0.1], []), "^SequentialLR: 0.1 is not a schedule of optim.lr_scheduler$"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REFUSED, ids=[m[:60] for _, m in REFUSED])
def test_refused_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(AutodiffError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
