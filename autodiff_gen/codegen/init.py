"""The body of `<m>_init`: the initial value of every state, the same bits as `init.py` computes on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..init import Constant, Normal, Uniform
from ..ir.identifiers import Scope
from ..ir.parameter_layout import Storage
from ..ir.types import planned_size
from ..lowering import c_syntax
from .constants import Table, table
from .program import Slot


def init_lines(slots: Sequence[Slot]) -> tuple[list[str], list[Table], bool]:
    """The statements of _init, the tables that they copy, and whether any value is drawn."""
    lines: list[str] = []
    tables: list[Table] = []
    scope = Scope([s.c_name for s in slots])
    names: dict[tuple[int, Storage | None], str] = {}
    draws = False
    for slot in slots:
        init = slot.init
        if isinstance(init, Uniform | Normal):
            draws = True
            key = f"seed == 0 ? {init.seed}u : ag_rand_u32(seed, 0, {init.seed}u)"
            lines += ["{", f"    const uint32_t key = {key};"]
            lines += [f"    {line}" for line in _drawn(slot, init)] + ["}"]
        elif isinstance(init, Constant):
            lines += _filled(slot, c_syntax.literal(init.value, slot.type.dtype))
        else:
            known = (id(init), slot.state.storage)  # an average begins with the table of its parameter
            if known not in names:
                names[known] = scope.fresh(f"{slot.c_name}_initial")
                tables.append(table(names[known], slot.state.stored(init.values), slot.type.dtype))
            lines += _filled(slot, f"{names[known]}[i]")
    if not draws:
        lines.insert(0, "(void)seed; /* nothing is drawn */")
    return lines, tables, draws


def _filled(slot: Slot, value: str) -> list[str]:
    """Every element, by its place i in memory."""
    count = planned_size(slot.type.shape)
    return [f"for (uint32_t i = 0; i < {count}u; i++) {{", f"    t->{slot.c_name}[i] = {value};", "}"]


def _drawn(slot: Slot, init: Uniform | Normal) -> list[str]:
    """A draw: each element by its logical index, wherever it is stored."""

    def value(index: str) -> str:
        """C for one element, operation by operation what the record's `array` does."""
        if isinstance(init, Normal):
            mean, std = c_syntax.float_literal(init.mean), c_syntax.float_literal(init.std)
            draw = f"ag_normal_fromf(key, 0, {index}, {mean}, {std})"
            if not init.zeros:
                return draw
            return f"{index} - {init.zeros.start}u < {len(init.zeros)}u ? 0.0f : {draw}"
        if init.bound is not None:
            return f"ag_uniformf(key, 0, {index}, {c_syntax.float_literal(init.bound)})"
        span = float(np.float32(init.high) - np.float32(init.low))
        return f"ag_uniform_fromf(key, 0, {index}, {c_syntax.float_literal(init.low)}, {c_syntax.float_literal(span)})"

    storage = slot.state.storage
    if storage is None or storage.in_order:
        return _filled(slot, value("i"))
    return _in_order(slot, storage.loops, value)


def _in_order(slot: Slot, loops: Sequence[tuple[int, int]], value: Callable[[str], str]) -> list[str]:
    """Loops over the elements as they are stored, `value` of their logical index."""
    lines, terms = ["uint32_t at = 0;"], []
    for k, (extent, step) in enumerate(loops):
        lines.append(f"{'    ' * k}for (uint32_t i{k} = 0; i{k} < {extent}u; i{k}++) {{")
        terms.append(f"i{k}" if step == 1 else f"i{k} * {step}u")
    lines.append(f"{'    ' * len(loops)}t->{slot.c_name}[at++] = {value(' + '.join(terms))};")
    return lines + [f"{'    ' * k}}}" for k in reversed(range(len(loops)))]
