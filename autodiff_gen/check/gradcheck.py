"""`check MODEL`: compare gradients in float64 with central finite differences and PyTorch's autograd."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..autodiff import downstream
from ..ir.graph import State
from ..ir.interpreter import evaluate
from ..ir.node import Node, Value, topological
from ..ir.op_kinds import Composite
from ..ir.types import planned
from ..model.function import Functions
from ..model.model import Model
from ..report.text_table import table
from .gradient_problem import GradientProblem, problems

# TOLERANCE: the largest accepted error, relative to the parameter's largest gradient. In float64 the relative error of
# a central difference with STEP is about 1e-10, PyTorch's about 1e-15.
STEP = 6e-6
TOLERANCE = {"finite differences": 1e-6, "PyTorch": 1e-9}
FLOOR = 1e-9  # times max(1, |loss|): the accepted rounding error of a central difference
# The effect of rounding on a gradient is measured: it is computed again at COPIES points that differ from the first by
# a relative CHANGE, about the spacing of float64. SPREAD times the largest difference is added to the error that is
# accepted against PyTorch. A gradient that is not larger is 0 but for rounding, such as of a bias before BatchNorm.
COPIES, CHANGE, SPREAD = 3, 2.0**-52, 8.0


@dataclass
class Comparison:
    """A parameter's gradient compared with one oracle: the largest error, relative to the parameter's largest gradient,
    and the element that has it."""

    error: float = 0.0
    element: str = "-"
    ours: float = 0.0
    theirs: float = 0.0
    good: bool = True

    def add(self, element: str, ours: float, theirs: float, scale: float, allowed: float) -> None:
        """Compare one element; keeps the worst. Any element beyond `allowed` is worse than all within it."""
        difference = abs(ours - theirs)
        relative = float("inf") if np.isnan(difference) else difference / (scale or 1.0)
        good = difference <= allowed
        if (not good, relative) > (not self.good, self.error) or self.element == "-":
            self.error, self.element, self.ours, self.theirs = relative, element, ours, theirs
        self.good = self.good and good


@dataclass
class Finding:
    """The result for one parameter."""

    name: str
    shape: tuple[int, ...]
    order: Any  # the logical index of each element, in storage order
    checked: int
    size: int
    differences: Comparison
    scale: float = 0.0  # the largest gradient
    rounding: float = 0.0  # the largest difference that rounding explains
    torch: Comparison | None = None
    kinks: list[str] = field(default_factory=list)

    @property
    def is_zero(self) -> bool:
        """Whether the gradient is 0 but for rounding."""
        return self.scale <= self.rounding

    def element(self, i: int) -> str:
        """`0.weight[3,17]`: the i-th element in storage order."""
        index = np.unravel_index(self.order[i], self.shape)
        return f"{self.name}[{','.join(str(int(k)) for k in index)}]" if self.shape else self.name


def check(
    definition: Model | Functions,
    name: str,
    samples: int = 200,
    seed: int = 0,
    data: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> tuple[str, bool]:
    """Compare d loss / d parameter for up to `samples` elements per parameter, chosen by `seed`; for functions, the
    derivatives of a weighted sum of the outputs with respect to the inputs.

    Returns the report, and whether all gradients agree. `data`: arrays by input name; other inputs are random.
    Parameters have their initial values plus a perturbation of up to 0.05, so that zero biases are tested too; with
    `steps`, their values after that many training steps in float64. Raises ModelError, ShapeError.
    """
    reports, good = [], True
    for problem in problems(definition, name, seed, data, steps):
        report, agrees = _check(problem, samples, seed)
        reports.append(report)
        good = good and agrees
    return "\n\n".join(reports), good


def _check(p: GradientProblem, samples: int, seed: int) -> tuple[str, bool]:
    order = topological([p.loss])
    not_compared = {v for v in p.variables if any(r.type.quantization for r in downstream(order, [v]))}
    not_compared |= {v for v in p.variables if _has_own_gradient(order, v)}
    if not_compared:
        exact = [(v, g) for v, g in zip(p.variables, p.gradients, strict=True) if v not in not_compared]
        p = replace(p, variables=tuple(v for v, _ in exact), gradients=tuple(g for _, g in exact))
    loss, *gradients = evaluate([p.loss, *p.gradients], p.feeds, p.n, "float64")
    roundings = _roundings(p, gradients, seed)
    findings = [
        _differences(p.loss, v, g, rounding, float(loss), p.feeds, p.n, samples, seed)
        for v, g, rounding in zip(p.variables, gradients, roundings, strict=True)
    ]
    note = _compare_torch(p.loss, list(p.variables), gradients, p.feeds, p.n, findings)
    report = _report(p, findings, float(loss), note, sorted(v.name or "?" for v in not_compared))
    return report, all(c.good for f in findings for c in (f.differences, f.torch) if c is not None)


def _has_own_gradient(order: list[Node], v: Value) -> bool:
    """Whether an op whose gradient is not its derivative is between v and the loss."""
    reached = {*downstream(order, [v]), v}
    return any(
        isinstance(n.op.lower, Composite)
        and n.op.lower.own_gradient
        and not n.attrs.get("exact")
        and not reached.isdisjoint(n.operands)
        for n in order
    )


def _roundings(p: GradientProblem, gradients: list[Any], seed: int) -> list[float]:
    """For each gradient the largest difference that rounding explains."""
    rng = np.random.default_rng(seed)
    largest = [0.0] * len(gradients)
    for _ in range(COPIES):
        feeds = dict(p.feeds)
        for v in p.variables:
            feeds[v] = feeds[v] * (1.0 + rng.uniform(-CHANGE, CHANGE, feeds[v].shape))
        moved = evaluate(list(p.gradients), feeds, p.n, "float64")
        largest = [
            max(x, float(np.abs(a - b).max())) for x, a, b in zip(largest, moved, gradients, strict=True)
        ]
    return [SPREAD * x for x in largest]


def _differences(
    loss: Value,
    v: Value,
    gradient: Any,
    rounding: float,
    value: float,
    feeds: dict[Value, Any],
    n: int,
    samples: int,
    seed: int,
) -> Finding:
    """Compare with central differences. Where they disagree, one-sided differences distinguish a kink, at which the
    gradient is between them, from an error. `value`: the loss at `feeds`."""
    point = feeds[v]
    chosen = np.arange(point.size)
    if point.size > samples:
        chosen = np.sort(np.random.default_rng(seed).choice(point.size, samples, replace=False))
    scale = float(np.abs(gradient).max())
    logical = _logical(v, point.shape)
    finding = Finding(v.name or "?", *logical, len(chosen), point.size, Comparison(), scale, rounding)
    allowed = TOLERANCE["finite differences"] * scale + FLOOR * max(1.0, abs(value))

    kept = _independent(loss, v)
    fixed = {**feeds, **dict(zip(kept, evaluate(kept, feeds, n, "float64"), strict=True))}

    def loss_at(i: int, h: float) -> float:
        perturbed = point.copy()
        perturbed.reshape(-1)[i] += h
        (result,) = evaluate([loss], {**fixed, v: perturbed}, n, "float64")
        return float(result)

    for i in (int(k) for k in chosen):
        ours, h = float(gradient.reshape(-1)[i]), STEP * max(1.0, abs(float(point.reshape(-1)[i])))
        up, down = loss_at(i, h), loss_at(i, -h)
        central = (up - down) / (2 * h)
        element = finding.element(i)
        if abs(central - ours) > allowed:
            # One-sided differences of second order, like the central difference.
            right = (4 * up - loss_at(i, 2 * h) - 3 * value) / (2 * h)
            left = (3 * value - 4 * down + loss_at(i, -2 * h)) / (2 * h)
            if min(left, right) - allowed <= ours <= max(left, right) + allowed:
                finding.kinks.append(element)
                continue
        finding.differences.add(element, ours, central, scale, allowed)
    return finding


def _independent(loss: Value, v: Value) -> list[Value]:
    """The values that determine the loss together with v, and that do not depend on v."""
    order, changed = topological([loss]), {v}
    for node in order:
        if any(x in changed for x in node.operands):
            changed.update(node.results)
    reads = {x: None for node in order if changed & set(node.results) for x in node.operands}
    return [x for x in reads if x not in changed]


def _logical(v: Value, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
    """The logical shape of v, and the logical index of each element in storage order."""
    state: State | None = v.node.attrs.get("state")
    if state is None or state.storage is None:
        return shape, np.arange(math.prod(shape))
    logical = planned(state.logical.shape)
    return logical, state.stored(np.arange(math.prod(logical)).reshape(logical)).reshape(-1)


def _compare_torch(
    loss: Value,
    variables: list[Value],
    gradients: list[Any],
    feeds: dict[Value, Any],
    n: int,
    findings: list[Finding],
) -> str:
    """Add the comparisons with PyTorch to `findings`; returns a note for the report."""
    if importlib.util.find_spec("torch") is None:
        return "not compared with PyTorch, which is not installed"
    from .torch_oracle import NoTorch, torch_gradients

    try:
        theirs = torch_gradients(loss, variables, feeds, n)
    except NoTorch as error:
        return f"not compared with PyTorch: the op {error} has no PyTorch expression"
    for finding, ours, other in zip(findings, gradients, theirs, strict=True):
        finding.torch = Comparison()
        scale = finding.scale
        allowed = TOLERANCE["PyTorch"] * scale + finding.rounding + 1e-14
        a, b = ours.reshape(-1), other.reshape(-1)
        errors = np.abs(a - b)
        worst = int(np.where(np.isnan(errors), np.inf, errors).argmax())  # beyond `allowed`, if any is
        finding.torch.add(finding.element(worst), float(a[worst]), float(b[worst]), scale, allowed)
    return "compared with PyTorch in float64, every element"


def _report(
    p: GradientProblem, findings: list[Finding], loss: float, note: str, not_compared: list[str]
) -> str:
    rows = []
    for f in findings:
        oracles = [("finite differences", f.differences, f"{f.checked - len(f.kinks)} of {f.size}")]
        if f.torch is not None:
            oracles.append(("PyTorch", f.torch, f"{f.size} of {f.size}"))
        for oracle, c, count in oracles:
            error, verdict = f"{c.error:.1e}", "ok"
            if not c.good:
                verdict = f"WRONG: gradient {c.ours:.9g}, {oracle} {c.theirs:.9g}"
            elif f.is_zero:  # an error relative to rounding says nothing
                error, verdict = "-", f"ok: 0 but for rounding: {c.ours:.1e}, {oracle} {c.theirs:.1e}"
            rows.append((f.name, str(list(f.shape)), oracle, count, error, c.element, verdict))
    head = ("parameter", "shape", "against", "elements", "worst error", "at", "")
    lines = [
        f"{p.name}: gradients of the loss in float64, {p.where}, loss {loss:.6g}",
        table(head, rows, right=(3, 4)),
        "errors are relative to the parameter's largest gradient; " + note,
    ]
    for f in findings:
        if f.kinks:
            elements = ", ".join(f.kinks[:5]) + (", ..." if len(f.kinks) > 5 else "")
            lines.append(
                f"{f.name}: {len(f.kinks)} at a kink, the gradient between the one-sided differences: {elements}"
            )
    if not_compared:
        lines.append(
            "not compared, as their gradients pass the rounding to 8-bit integers unchanged or belong to a hook or "
            f"Function: {', '.join(not_compared)}"
        )
    bad = [f.name for f in findings if not f.differences.good or (f.torch is not None and not f.torch.good)]
    good = "all other gradients agree" if not_compared else "all gradients agree"
    lines.append(f"FAILED: {', '.join(bad)}" if bad else good if findings else "no gradient was compared")
    return "\n".join(lines)
