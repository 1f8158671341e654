"""Optimizers and clipping against torch.optim: every parameter and state of every step; parameter groups and
freezing; wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_build import HOST, check_warnings
from pairwise import pairwise
from rejections import all_rejected
from row_groups import in_groups
from small_models import mlp
from torch_optimizers import (
    CLIPS,
    OPTIMIZERS,
    RULES,
    SCHEDULES,
    WEIGHT,
    Options,
    Torch,
    batches,
    built,
    compare,
    in_c,
    interpreted,
    name_of,
    schedule_of,
)

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.printer import show
from autodiff_gen.optim import lr_scheduler as lrs

KINDS = [("float64", 3e-6), ("float32", 1e-5)]


def combined_id(v: Any) -> str:
    """The name of a schedule, a rule or a dtype, or the ways of clipping."""
    return "-" if v is None else "-".join(v) if isinstance(v, dict) else str(v[0])


@pytest.mark.torch
@pytest.mark.parametrize("rule, options", OPTIMIZERS, ids=name_of)
def test_every_step_of_every_optimizer(rule: str, options: Options) -> None:
    """(Hyperparameters are float32, in float64 runs too.)"""
    model = built(rule, options)
    for kind, rtol in KINDS:
        compare(model, Torch(model, kind, rule, options), interpreted(model, kind), rtol)


@pytest.mark.cc
@pytest.mark.torch
@in_groups(OPTIMIZERS)
def test_every_step_of_every_optimizer_in_generated_c(rows: list[Any], subtests: pytest.Subtests) -> None:
    models = [built(*row) for row in rows]
    for row, model, step in zip(rows, models, in_c(models), strict=True):
        with subtests.test(str(row)):
            compare(model, Torch(model, "float32", *row), step, 1e-5)


BOTH_CLIPS: list[Options | None] = [None, *CLIPS, {**CLIPS[0], **CLIPS[1]}]
COMBINED = pairwise([None, *SCHEDULES], RULES, BOTH_CLIPS, KINDS)


@pytest.mark.torch
@pytest.mark.parametrize("schedule, how, clip, kind_rtol", COMBINED, ids=combined_id)
def test_every_optimizer_with_every_schedule_and_clipping(
    schedule: tuple[str, Options] | None,
    how: tuple[str, Options],
    clip: Options | None,
    kind_rtol: tuple[str, float],
) -> None:
    (rule, options), (kind, rtol) = how, kind_rtol
    model = built(rule, options, schedule, clip)
    compare(model, Torch(model, kind, rule, options, schedule, clip), interpreted(model, kind), rtol)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("number", range(3))
def test_optimizers_with_schedules_in_generated_c(number: int, subtests: pytest.Subtests) -> None:
    """Every schedule with three optimizers, each with another way of clipping."""
    clip, rows = [None, *CLIPS][number], []
    for k, schedule in enumerate(SCHEDULES, start=number * len(SCHEDULES)):
        rows.append((*RULES[(k + number) % len(RULES)], schedule, clip))
    models = [built(*row) for row in rows]
    for row, model, step in zip(rows, models, in_c(models), strict=True):
        with subtests.test(str(row)):
            compare(model, Torch(model, "float32", *row), step, 1e-5)


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
    """No weight changes before the norm is known, and small gradients are not changed."""
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
@pytest.mark.parametrize(
    "group, how, schedule",
    pairwise(GROUPS, [RULES[0], RULES[3]], [None, SCHEDULES[6], SCHEDULES[7]]),
    ids=lambda p: p[0] if p else "",
)
def test_parameter_groups(
    group: tuple[str, Any, Any], how: tuple[str, Options], schedule: tuple[str, Options] | None
) -> None:
    (_, ours, theirs), (rule, options) = group, how
    model = built(rule, {**options, "params": ours}, schedule)
    other = Torch(model, "float32", rule, {**options, "params": theirs}, schedule)
    compare(model, other, in_c([model])[0], 1e-5)


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
    """... are in the state_dict when they are used, and need not be used."""
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
    names = ["head.weight", "head.bias"]
    model = ag.Model.supervised(net, (5, 3), nn.MSELoss(), optim.SGD(net.head))
    assert [s.name for s in model.entries()[0].updates] == names
    net = TwoParts()
    net.unused.requires_grad_(False)
    net.body.requires_grad_(False)
    model = ag.Model.supervised(net, (5, 3), nn.MSELoss(), optim.SGD(net.parameters()))
    assert [s.name for s in model.entries()[0].updates] == names


def test_frozen_layers_cost_no_backward_pass() -> None:
    sizes = []
    for params in (None, "2"):
        model = ag.Model.supervised(mlp(3, 4, 2), (5, 3), nn.MSELoss(), optim.SGD(params))
        sizes.append(show(model.entries()[0]).count("matmul"))
    assert sizes[1] == sizes[0] - 2


# Generated C


@pytest.mark.cc
@pytest.mark.parametrize("k", range(len(RULES)))
def test_no_warning_under_the_strict_flags(k: int, tmp_path: Path) -> None:
    """Every optimizer with a third of the schedules, the compilers in turn."""
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
        check_warnings(HOST[(k + j) % 2], tmp_path / f"m{j}.c")


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


# Wrong arguments


def given(**options: Any) -> Callable[[], Any]:
    return lambda: ag.Model.supervised(
        mlp(3, 4, 2), (5, 3), nn.MSELoss(), **{"optimizer": optim.SGD(), **options}
    )


def frozen_late() -> None:
    net = mlp(3, 2)
    ag.Model.supervised(net, (1, 3), nn.MSELoss(), optim.SGD())
    net.requires_grad_(False)


def all_frozen(select: Any) -> Any:
    net = mlp(3, 2)
    net.requires_grad_(False)
    if select:
        x, t = ag.Input("x", (1, 3)), ag.Input("t", (1, 2))
        y = net(x) * ag.Param("scale", init.ones((2,)))
        return ag.Model([x], [t], {"y": y}, F.mse_loss(y, t), optim.SGD("0"))
    return ag.Model.supervised(net, (1, 3), nn.MSELoss(), optim.SGD())


def unused_layer() -> ag.Model:
    net = TwoParts()
    return ag.Model.supervised(net, (5, 3), nn.MSELoss(), optim.SGD(net.parameters()))


class NoDefault(optim.Optimizer):
    """Its rate has no default."""


class NoRule(optim.Optimizer):
    def __init__(self) -> None:
        super().__init__(lr=0.1)


class OwnRule(NoRule):
    def __init__(self, made: Callable[..., Any]) -> None:
        super().__init__()
        self.made = made

    def rule(self, step: optim.Step, parameter: Any, w: Any, g: Any) -> Any:
        return self.made(step, parameter, g)


REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.SGD(0.1), r"^optim.SGD: params=0.1 is a number; give the learning rate as lr=0.1$"),
    (lambda: optim.SGD(lr=lrs.StepLR(3)), r"^optim.SGD: lr must be a number; give the schedule to the model"),
    (lambda: optim.AdamW(lr=-1), "^optim.AdamW: lr=-1 must be a number of at least 0$"),
    (lambda: optim.AdamW(betas=(0.9, 1.0)), r"^optim.AdamW: betas\[1\]=1.0 must be .* below 1$"),
    (lambda: optim.AdamW(betas=0.9), "^optim.AdamW: betas=0.9 must be two numbers$"),
    (lambda: optim.AdamW(foreach=True), "^AdamW: the argument 'foreach' is not supported$"),
    (lambda: optim.RMSprop(alpha=-0.1), "^optim.RMSprop: alpha=-0.1 must be"),
    (lambda: optim.RMSprop(capturable=True), "^RMSprop: the argument 'capturable' is not supported$"),
    (lambda: optim.Adagrad(lr_decay=None), "^optim.Adagrad: lr_decay=None must be"),
    (lambda: optim.Adagrad(differentiable=True), "^Adagrad: the argument 'differentiable' is not supported$"),
    (lambda: optim.Adadelta(rho=1.0), "^optim.Adadelta: rho=1.0 must be a number of at least 0 and below 1$"),
    (lambda: optim.NAdam(momentum_decay=-1), "^optim.NAdam: momentum_decay=-1 must be a number of at least 0$"),
    (
        lambda: lrs.CosineAnnealingLR(optim.SGD(lr=0.1), T_max=10),
        r"^CosineAnnealingLR: leave out the optimizer, and give the schedule to the model: ag.Model",
    ),
    (lambda: lrs.StepLR(optimizer=optim.SGD(lr=0.1), step_size=3), "^StepLR: leave out the optimizer"),
    (lambda: lrs.CyclicLR(0.1, 0.2, mode="up"), '^CyclicLR: mode=\'up\'; known: "triangular", '),
    (lambda: lrs.CosineAnnealingWarmRestarts(0), "^CosineAnnealingWarmRestarts: T_0=0 must be an integer"),
    (lambda: lrs.SequentialLR([lrs.CyclicLR(0.1, 0.2)] * 2, [3]), "^SequentialLR: CyclicLR within it must have cycle"),
    (lambda: optim.SGD([{"lr": 0.1}]), '^optim.SGD: parameter group 0 has no "params"$'),
    (lambda: optim.SGD([{"params": "0", "eps": 1}]), "^optim.SGD: parameter group 0: unknown option 'eps'; known"),
    (lambda: optim.SGD([{"params": "0", "momentum": -1}]), "^optim.SGD: momentum=-1 must be"),
    (given(optimizer=optim.SGD("1")), "^optim.SGD: '1' in params is no parameter .* has 0.weight, 0.bias, 2"),
    (given(optimizer=optim.SGD(["0.weight", 3])), "^optim.SGD: 3 in params is no parameter; give"),
    (given(optimizer=optim.SGD(nn.Linear(2, 2))), "^optim.SGD: the module Linear in params is no param"),
    (unused_layer, "^optim.SGD: the loss does not reach the parameter 'unused.weight' in params; use it, set requ"),
    (given(optimizer=optim.SGD([{"params": "0"}, {"params": "0.bias"}])), "'0.bias' is in more than one"),
    (given(optimizer=optim.SGD([{"params": "0", "lr": 1.0}], lr=0)), "a group has lr=1, which is no multiple"),
    (lambda: all_frozen(False), "^the loss depends on no trainable parameter; set requires_grad=True for one$"),
    (lambda: all_frozen(True), "^all parameters of the optimizer have requires_grad=False; give it a trainable one$"),
    (frozen_late, "^requires_grad: '0.weight' is in a model already; set it before the model is built$"),
    (given(optimizer=optim.SGD), r"^the optimizer is the class SGD; make one: SGD\(\)$"),
    (NoDefault, r"^optim.NoDefault: lr has no default; write super\(\).__init__\(params, lr=lr\)$"),
    (given(optimizer=NoRule()), r"^optim.NoRule has no method rule\(self, step, parameter, w, g\)$"),
    (given(optimizer=OwnRule(lambda *_: None)), r"the rule of '0.weight' gives NoneType, expected a .* f32\[4,3\]$"),
    (given(optimizer=OwnRule(lambda step, p, g: F.sum(g))), r"the rule of '0.weight' gives f32\[\], expected a"),
    (
        given(optimizer=OwnRule(lambda step, p, g: step.keep(p, "m", lambda m: F.sum(g)))),
        r"^Step.keep: the rule of '0.weight.m' gives f32\[\], expected a graph value f32\[4,3\]$",
    ),
    (given(schedule="step"), "^schedule: expected one of optim.lr_scheduler, got 'step'$"),
    (given(schedule=lrs.OneCycleLR(0.1, 10), optimizer=optim.Adagrad()), "^optim.Adagrad has no momentum"),
    (given(schedule=lrs.LambdaLR(lambda t: F.broadcast_to(t, (2,)))), r"^LambdaLR: the factor is f32\[2\], not"),
    (given(clip_grad_norm=0), "^clip_grad_norm: max_norm=0 must be a finite number greater than 0$"),
    (given(clip_grad_value="1"), "^clip_grad_value: clip_value='1' must be a finite number greater than 0$"),
    (lambda: lrs.StepLR(0), "^StepLR: step_size=0 must be an integer of at least 1$"),
    (lambda: lrs.StepLR(2, gamma=0), "^StepLR: gamma=0 must be a number greater than 0$"),
    (lambda: lrs.StepLR(2, last_epoch=3), "^StepLR: the argument 'last_epoch' is not supported$"),
    (lambda: lrs.ExponentialLR("0.9"), "^ExponentialLR: gamma='0.9' must be a number greater than 0$"),
    (lambda: lrs.CosineAnnealingLR(2.5), "^CosineAnnealingLR: T_max=2.5 must be an integer"),
    (lambda: lrs.LinearLR(start_factor=0), "^LinearLR: start_factor=0 must be a number greater than 0 and at most 1$"),
    (lambda: lrs.ConstantLR(factor=2), "^ConstantLR: factor=2 must be a number at least 0 and at most 1$"),
    (lambda: lrs.LambdaLR(0.5), "^LambdaLR: lr_lambda=0.5 must be a function"),
    (lambda: lrs.OneCycleLR(0.1), "^OneCycleLR: give total_steps, or epochs and steps_per_epoch$"),
    (lambda: lrs.OneCycleLR([0.1, 0.2], 10), r"^OneCycleLR: max_lr=\[0.1, 0.2\] must be a number at least 0$"),
    (lambda: lrs.OneCycleLR(0.1, 10, anneal_strategy="exp"), 'known: "cos", "linear"$'),
    (lambda: lrs.SequentialLR([lrs.StepLR(2)], [3]), "^SequentialLR: 1 schedulers need 0 milestones"),
    (lambda: lrs.SequentialLR([0.1], []), "^SequentialLR: 0.1 is not a schedule of optim.lr_scheduler$"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED)
