"""The body of `<m>_init`: the initial value of every state, the same bits as `init.py` computes on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..init import Constant, Normal, Uniform
from ..ir.identifiers import Scope
from ..ir.parameter_layout import PartialStorage, Storage
from ..ir.types import planned_size
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from .constants import ConstantArray, table
from .program import Slot


def init_statements(slots: Sequence[Slot]) -> tuple[list[c.Statement], list[ConstantArray], bool]:
    """The statements of _init, the tables that they copy, and whether any value is drawn."""
    out: list[c.Statement] = []
    tables: list[ConstantArray] = []
    scope = Scope([s.c_name for s in slots])
    names: dict[tuple[int, Storage | PartialStorage | None], str] = {}
    draws = False
    for slot in slots:
        init = slot.init
        if isinstance(init, Uniform | Normal):
            draws = True
            seed = c.Literal(f"{init.seed}u")
            anew = c.Call("ag_rand_u32", (c.Name("seed"), c.number(0), seed))
            key = c.Conditional(c.Binary("==", c.Name("seed"), c.number(0)), seed, anew)
            out.append(c.Block((c.declare("uint32_t", "key", key, const=True), *_drawn(slot, init))))
        elif isinstance(init, Constant):
            out.append(_filled(slot, c.Literal(c_syntax.literal(init.value, slot.type.dtype))))
        else:
            known = (id(init), slot.state.storage)  # an average begins with the table of its parameter
            if known not in names:
                names[known] = scope.fresh(f"{slot.c_name}_initial")
                tables.append(table(names[known], slot.state.stored(init.values), slot.type.dtype))
            out.append(_filled(slot, c.Element(c.Name(names[known]), c.Name("i"))))
    return out, tables, draws


def _unsigned(value: int) -> c.Expr:
    return c.Literal(f"{value}u")


def _filled(slot: Slot, value: c.Expr) -> c.Statement:
    """The loop that sets every element to `value`, an expression of its place i in memory."""
    count = _unsigned(planned_size(slot.type.shape))
    target = c.Element(c.Member(slot.owner, slot.c_name), c.Name("i"))
    return c.For("i", count, (c.Assign(target, value),), c_type="uint32_t")


def _drawn(slot: Slot, init: Uniform | Normal) -> list[c.Statement]:
    """The statements that draw each element by its logical index, wherever it is stored."""

    def call(function: str, index: c.Expr, *numbers: float) -> c.Expr:
        literals = (c.Literal(c_syntax.float_literal(x)) for x in numbers)
        return c.Call(function, (c.Name("key"), c.number(0), index, *literals))

    def value(index: c.Expr) -> c.Expr:
        """C for one element, with the same operations as the record's `array`."""
        if isinstance(init, Normal):
            draw = call("ag_normal_fromf", index, init.mean, init.std)
            if not init.zeros:
                return draw
            start = c.Binary("-", index, _unsigned(init.zeros.start))
            is_zero = c.Binary("<", start, _unsigned(len(init.zeros)))
            return c.Conditional(is_zero, c.Literal("0.0f"), draw)
        if init.bound is not None:
            return call("ag_uniformf", index, init.bound)
        span = float(np.float32(init.high) - np.float32(init.low))
        return call("ag_uniform_fromf", index, init.low, span)

    storage = slot.state.storage
    if storage is None or storage.in_order:
        return [_filled(slot, value(c.Name("i")))]
    assert isinstance(storage, Storage), "a state that trains in part begins with a table"
    return _in_order(slot, storage.loops, value)


def _in_order(
    slot: Slot, loops: Sequence[tuple[int, int]], value: Callable[[c.Expr], c.Expr]
) -> list[c.Statement]:
    """Loops over the elements as they are stored, `value` of their logical index."""
    names = [c.Name(f"i{k}") for k in range(len(loops))]
    terms = [
        name if step == 1 else c.Binary("*", name, _unsigned(step))
        for name, (_, step) in zip(names, loops, strict=True)
    ]
    target = c.Element(c.Member(slot.owner, slot.c_name), c.Increment("at"))
    body: c.Statement = c.Assign(target, value(c.total(terms)))
    for name, (extent, _) in reversed(list(zip(names, loops, strict=True))):
        body = c.For(name.text, _unsigned(extent), (body,), c_type="uint32_t")
    return [c.declare("uint32_t", "at", c.number(0)), body]
