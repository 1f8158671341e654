"""`check MODEL`: gradients in float64 against central finite differences and PyTorch's autograd."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.graph import State
from ..ir.interpreter import evaluate
from ..ir.node import Value
from ..ir.types import planned
from ..model.model import Functions, Model
from ..report.text_table import table
from .problem import Problem, problems

# A gradient is right when it is off by at most TOLERANCE of its parameter's largest one. In float64 a central
# difference with STEP is good to about 1e-10; PyTorch's float64 to about 1e-15.
STEP = 6e-6
TOLERANCE = {"finite differences": 1e-6, "PyTorch": 1e-9}
FLOOR = 1e-9  # of max(1, |loss|): what rounding in a central difference may look like


@dataclass
class Comparison:
    """One parameter against one oracle: how far the worst element is off, relative to the largest gradient."""

    error: float = 0.0
    element: str = "-"
    ours: float = 0.0
    theirs: float = 0.0
    good: bool = True

    def add(self, element: str, ours: float, theirs: float, scale: float, allowed: float) -> None:
        """Count one element; the worst is kept, and any wrong one is worse than all that are right."""
        off = abs(ours - theirs)
        relative = float("inf") if np.isnan(off) else off / (scale or 1.0)
        good = off <= allowed
        if (not good, relative) > (not self.good, self.error) or self.element == "-":
            self.error, self.element, self.ours, self.theirs = relative, element, ours, theirs
        self.good = self.good and good


@dataclass
class Finding:
    """What was found for one parameter."""

    name: str
    shape: tuple[int, ...]
    order: Any  # the logical index of each element as it is stored
    checked: int
    size: int
    differences: Comparison
    torch: Comparison | None = None
    kinks: list[str] = field(default_factory=list)

    def element(self, i: int) -> str:
        """`0.weight[3,17]` for the i-th element as it is stored."""
        index = np.unravel_index(self.order[i], self.shape)
        return f"{self.name}[{','.join(str(int(k)) for k in index)}]" if self.shape else self.name


def check(
    made: Model | Functions,
    name: str,
    samples: int = 200,
    seed: int = 0,
    data: Mapping[str, Any] | None = None,
    steps: int | None = None,
) -> tuple[str, bool]:
    """Compare d loss / d parameter for up to `samples` elements per parameter, chosen by `seed`; of functions, the
    derivatives of a weighted sum of the outputs by the inputs.

    Returns the report, and whether all agree. `data` has arrays by the inputs' names; inputs without are random.
    Parameters stand at their initial values, moved by up to 0.05, so that zero biases are tested too; with `steps`,
    exactly where that many training steps bring them in float64. Raises ModelError, ShapeError.
    """
    reports, good = [], True
    for problem in problems(made, name, seed, data, steps):
        report, right = _check(problem, samples, seed)
        reports.append(report)
        good = good and right
    return "\n\n".join(reports), good


def _check(p: Problem, samples: int, seed: int) -> tuple[str, bool]:
    loss, *gradients = evaluate([p.loss, *p.gradients], p.feeds, p.n, "float64")
    findings = [
        _differences(p.loss, v, g, float(loss), p.feeds, p.n, samples, seed)
        for v, g in zip(p.variables, gradients, strict=True)
    ]
    note = _compare_torch(p.loss, list(p.variables), gradients, p.feeds, p.n, findings)
    report = _report(p, findings, float(loss), note)
    return report, all(c.good for f in findings for c in (f.differences, f.torch) if c is not None)


def _differences(
    loss: Value, v: Value, gradient: Any, at: float, feeds: dict[Value, Any], n: int, samples: int, seed: int
) -> Finding:
    """Central differences; one-sided ones tell a kink, where the gradient lies between them, from a fault."""
    point = feeds[v]
    chosen = np.arange(point.size)
    if point.size > samples:
        chosen = np.sort(np.random.default_rng(seed).choice(point.size, samples, replace=False))
    scale = float(np.abs(gradient).max())
    finding = Finding(v.name or "?", *_logical(v, point.shape), len(chosen), point.size, Comparison())
    allowed = TOLERANCE["finite differences"] * scale + FLOOR * max(1.0, abs(at))

    def loss_at(i: int, h: float) -> float:
        moved = point.copy()
        moved.reshape(-1)[i] += h
        (value,) = evaluate([loss], {**feeds, v: moved}, n, "float64")
        return float(value)

    for i in (int(k) for k in chosen):
        ours, h = float(gradient.reshape(-1)[i]), STEP * max(1.0, abs(float(point.reshape(-1)[i])))
        up, down = loss_at(i, h), loss_at(i, -h)
        central = (up - down) / (2 * h)
        element = finding.element(i)
        if abs(central - ours) > allowed:
            # One-sided differences of second order: their errors are as small as the central one's.
            right = (4 * up - loss_at(i, 2 * h) - 3 * at) / (2 * h)
            left = (3 * at - 4 * down + loss_at(i, -2 * h)) / (2 * h)
            if min(left, right) - allowed <= ours <= max(left, right) + allowed:
                finding.kinks.append(element)
                continue
        finding.differences.add(element, ours, central, scale, allowed)
    return finding


def _logical(v: Value, shape: tuple[int, ...]) -> tuple[tuple[int, ...], Any]:
    """The shape of v as the model gives it, and the logical index of each element as it is stored."""
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
    """Fill in the comparisons with PyTorch; what to say about it."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed, so it was not compared with"
    from .torch_oracle import NoTorch, torch_gradients

    try:
        theirs = torch_gradients(loss, variables, feeds, n)
    except NoTorch as error:
        return f"not compared with PyTorch: the op {error} has no PyTorch expression"
    for finding, ours, other in zip(findings, gradients, theirs, strict=True):
        finding.torch = Comparison()
        scale = float(np.abs(ours).max())
        allowed = TOLERANCE["PyTorch"] * scale + 1e-14
        for i, (a, b) in enumerate(zip(ours.reshape(-1).tolist(), other.reshape(-1).tolist(), strict=True)):
            finding.torch.add(finding.element(i), a, b, scale, allowed)
    return "compared with PyTorch in float64, every element"


def _report(p: Problem, findings: list[Finding], loss: float, note: str) -> str:
    rows = []
    for f in findings:
        oracles = [("finite differences", f.differences, f"{f.checked - len(f.kinks)} of {f.size}")]
        if f.torch is not None:
            oracles.append(("PyTorch", f.torch, f"{f.size} of {f.size}"))
        for oracle, c, count in oracles:
            verdict = "ok" if c.good else f"WRONG: gradient {c.ours:.9g}, {oracle} {c.theirs:.9g}"
            rows.append((f.name, str(list(f.shape)), oracle, count, f"{c.error:.1e}", c.element, verdict))
    head = ("parameter", "shape", "against", "elements", "worst error", "at", "")
    lines = [
        f"{p.name}: gradients of the loss in float64, {p.where}, loss {loss:.6g}",
        table(head, rows, right=(3, 4)),
        "errors are relative to the parameter's largest gradient; " + note,
    ]
    for f in findings:
        if f.kinks:
            shown = ", ".join(f.kinks[:5]) + (", ..." if len(f.kinks) > 5 else "")
            lines.append(
                f"{f.name}: {len(f.kinks)} at a kink, the gradient between the one-sided differences: {shown}"
            )
    bad = [f.name for f in findings if not f.differences.good or (f.torch is not None and not f.torch.good)]
    lines.append(f"FAILED: {', '.join(bad)}" if bad else "all gradients agree")
    return "\n".join(lines)
