"""Schedules against torch.optim.lr_scheduler: the rates of long runs, and the exact step of a fall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch_optimizers import SCHEDULES, batches, built, name_of

import autodiff_gen as ag
from autodiff_gen.errors import AutodiffError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.optim import lr_scheduler as lrs

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
    (
        "two cycles",
        lambda s: s.CyclicLR(0.01, 0.1, 300, 200, cycle_momentum=False),
        lambda s, o: s.CyclicLR(o, 0.01, 0.1, 300, 200, cycle_momentum=False),
    ),
    (
        "lower cycles",
        lambda s: s.CyclicLR(0.01, 0.1, 7, mode="triangular2"),
        lambda s, o: s.CyclicLR(o, 0.01, 0.1, 7, mode="triangular2", cycle_momentum=False),
    ),
    (
        "shrinking cycles",
        lambda s: s.CyclicLR(0.01, 0.1, 7, 5, "exp_range", 0.99, base_momentum=0.1),
        lambda s, o: s.CyclicLR(o, 0.01, 0.1, 7, 5, "exp_range", 0.99, cycle_momentum=False),
    ),
    ("restarts", lambda s: s.CosineAnnealingWarmRestarts(30), lambda s, o: s.CosineAnnealingWarmRestarts(o, 30)),
    (
        "longer restarts",
        lambda s: s.CosineAnnealingWarmRestarts(3, 2, 1e-3),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 1e-3),
    ),
    ("polynomial", lambda s: s.PolynomialLR(500, 2.5), lambda s, o: s.PolynomialLR(o, 500, 2.5)),
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
