"""The gradient checks can fail: every VJP that is scaled by 1.01, robbed of an input's gradient, or robbed of
one operation of its formula is caught by them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from op_cases import (
    DIFFERENTIABLE,
    EDGES,
    FLAT,
    GRADIENT_ROWS,
    case,
    edge_error,
    gradient_error,
)

from autodiff_gen import autodiff
from autodiff_gen import functional as F
from autodiff_gen.autodiff import zeros_like
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.node import OPS, VJP, Node, Value, topological
from autodiff_gen.ir.rewrite import substitute
from autodiff_gen.ir.types import Type, f32
from autodiff_gen.ops.control_flow import cond, scan

CHECKED = [name for name in DIFFERENTIABLE if name not in FLAT]
TOLERANCE = 1e-7
ARITHMETIC = {"add", "sub", "mul", "div", "neg", "square"}


def caught(name: str) -> bool:
    """Whether the checks of test_ops reject the op as it is registered now."""
    for row in GRADIENT_ROWS:
        if row[0] == name:
            c = case(*row)
            error = gradient_error(c.weighted(), c.feeds, [c.inputs[i] for i in c.wanted])
            if not error < TOLERANCE:
                return True
    return any(row[0] == name and not edge_error(row) < 1e-6 for row in EDGES)


def mutated(vjp: VJP, change: Callable[[int, Value, Sequence[Value]], Value | None]) -> VJP:
    """The VJP with each of its results replaced by `change(operand's position, result, what it was built
    from)`."""

    def wrong(dys: Any, inputs: Any, outs: Any, attrs: Any, wanted: Any) -> list[Value | None]:
        given = [*inputs, *outs, *(d for d in dys if d is not None)]
        found = vjp(dys, inputs, outs, attrs, wanted)
        return [None if g is None else change(i, g, given) for i, g in enumerate(found)]

    return wrong


def formula(g: Value, given: Sequence[Value]) -> list[Node]:
    """The arithmetic nodes between the operands of a VJP and its result."""
    known = {v.node for v in given}
    nodes = topological([g], stop=lambda n: n in known)
    return [n for n in nodes if n not in known and n.op.name in ARITHMETIC]


def without(node: Node, k: int, g: Value) -> Value:
    """g with `node` replaced by its k-th operand, where that has the same shape."""

    def rewrite(n: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        return (operands[k],) if n is node else None

    return substitute([g], rewrite)[0]


def register(monkeypatch: pytest.MonkeyPatch, name: str, vjp: VJP) -> None:
    monkeypatch.setitem(OPS, name, dataclasses.replace(OPS[name], vjp=vjp))


def differentiable_operands(name: str) -> list[int]:
    """Positions that receive a gradient in some sample."""
    return sorted({i for row in GRADIENT_ROWS if row[0] == name for i in case(*row).wanted})


@pytest.mark.parametrize("name", CHECKED)
def test_scaled_by_one_percent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not caught(name), "the right VJP"
    vjp = OPS[name].vjp
    assert vjp is not None
    for k in differentiable_operands(name):
        register(monkeypatch, name, mutated(vjp, lambda i, g, _, k=k: g * 1.01 if i == k else g))
        assert caught(name), f"{name}: operand {k}"


@pytest.mark.parametrize("name", CHECKED)
def test_robbed_of_an_operands_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vjp = OPS[name].vjp
    assert vjp is not None
    for k in differentiable_operands(name):
        register(monkeypatch, name, mutated(vjp, lambda i, g, _, k=k: zeros_like(g) if i == k else g))
        assert caught(name), f"{name}: operand {k}"


@pytest.mark.parametrize("name", CHECKED)
def test_robbed_of_one_operation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each + - * / of the formula, in turn, is replaced by one of its operands."""
    vjp = OPS[name].vjp
    assert vjp is not None
    for row in [r for r in GRADIENT_ROWS if r[0] == name][:1]:
        c = case(*row)
        dys = [v if v.dtype.kind == "f" else None for v in c.outs]
        wanted = [i in c.wanted for i in range(len(c.inputs))]
        found = vjp(dys, c.inputs, c.outs, c.sample.attrs, wanted)
        given = [*c.inputs, *c.outs]
        for i, g in enumerate(found):
            for at, node in enumerate(formula(g, given) if g is not None else ()):
                for k, operand in enumerate(node.operands):
                    if operand.type == node.results[0].type:
                        register(monkeypatch, name, mutated(vjp, robbed(i, at, k)))
                        assert caught(name), (
                            f"{name}: operand {i} without {node.op.name} {at}, keeping its side {k}"
                        )


def robbed(position: int, at: int, k: int) -> Callable[[int, Value, Sequence[Value]], Value]:
    """Replace the at-th arithmetic node of one operand's formula by its k-th operand."""

    def change(i: int, g: Value, given: Sequence[Value]) -> Value:
        if i != position:
            return g
        nodes = formula(g, given)
        if at >= len(nodes) or nodes[at].operands[k].type != nodes[at].results[0].type:
            return g
        return without(nodes[at], k, g)

    return change


@pytest.mark.parametrize("kept", [0, 1])
def test_gradients_that_are_not_summed_at_fan_out(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check of test_ops that uses every input twice notices when only one of two contributions is kept."""
    c = case("mul", 0)
    y = c.weighted() + c.weighted(c.again())
    assert gradient_error(y, c.feeds, c.inputs) < TOLERANCE
    whole = autodiff.apply
    monkeypatch.setattr(
        autodiff, "apply", lambda name, *v, **attrs: v[kept] if name == "add" else whole(name, *v, **attrs)
    )
    assert gradient_error(y, c.feeds, c.inputs) > TOLERANCE


def looped(monkeypatch: pytest.MonkeyPatch | None = None, k: int = 0, factor: float = 1.0) -> float:
    """The error of the gradients through a scan whose k-th operand's gradient is multiplied by `factor`."""
    if monkeypatch is not None:
        assert scan.SCAN.vjp is not None
        wrong = mutated(scan.SCAN.vjp, lambda i, g, _: g * factor if i == k else g)
        monkeypatch.setitem(OPS, "scan", dataclasses.replace(scan.SCAN, vjp=wrong))
    h, xs, w = (
        make_input(name, Type(f32, shape)) for name, shape in (("h", (3,)), ("xs", (4, 3)), ("w", (3,)))
    )
    last, ys = F.scan(lambda h, x: (F.tanh(w * h + x), h * x), h, xs)
    feeds = {v: np.random.default_rng(i).normal(size=v.shape) for i, v in enumerate((h, xs, w))}
    return gradient_error(F.sum(F.square(last)) + F.sum(ys), feeds, [h, xs, w])


def chosen(monkeypatch: pytest.MonkeyPatch | None = None, k: int = 0, factor: float = 1.0) -> float:
    """The error of the gradients through a cond whose k-th operand's gradient is multiplied by `factor`."""
    if monkeypatch is not None:
        assert cond.COND.vjp is not None
        wrong = mutated(cond.COND.vjp, lambda i, g, _: g * factor if i == k else g)
        monkeypatch.setattr(cond, "COND", dataclasses.replace(cond.COND, vjp=wrong))
    a, b = (make_input(name, Type(f32, (3,))) for name in "ab")
    feeds = {v: np.random.default_rng(i).normal(size=3) for i, v in enumerate((a, b))}
    errors = []
    for sign in (1.0, -1.0):
        which = F.sum(F.square(a)) * sign > 0.0
        y = F.cond(which, lambda a, b: F.sin(a) * b, lambda a, b: F.exp(a) + F.square(b), a, b)
        errors.append(gradient_error(F.sum(F.square(y)), feeds, [a, b]))
    return max(errors)


@pytest.mark.parametrize("factor", [1.01, 0.0])
@pytest.mark.parametrize("error, k", [(looped, 0), (looped, 1), (looped, 2), (chosen, 1), (chosen, 2)])
def test_loops_and_conditions(
    error: Callable[..., float], k: int, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert error() < TOLERANCE
    assert not error(monkeypatch, k, factor) < TOLERANCE
