"""The stack that each function of a program takes on Cortex-M at most, with all that it calls.

It is a bound for every version of GCC: a frame for registers, an address for each pointer that a step declares, and the
largest local arrays twice, as a compiler may copy arrays. The tests check the bound, and that no call of a kernel takes
more than KERNEL bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from .program import Program
from .source import Source, source_of

KERNEL = 1024  # bytes of a call of a kernel, by the tests of kernels
FRAME = 288  # registers, arguments, a few spilled pointers, and functions of ag_math.h
CALLBACK = 256  # init, and save and load without the callback
BACKENDS = frozenset({"ref", "armv7em", "mve"})  # whose kernels the tests measure


def stack_bounds(source: Source, program: Program) -> dict[str, int]:
    """Bytes by function; empty if the program calls a kernel of a backend that is not in BACKENDS."""
    if not {k.backend for k in program.kernels} <= BACKENDS:
        return {}
    functions = max((_frame(f.body) for f in source.functions), default=0)
    found = {"init, save and load": CALLBACK} if program.slots else {}
    for code in source.codes:
        called = max(functions, KERNEL * bool(code.entry.plan.kernels))
        own = _frame([s for step in code.steps for s in step], max(map(_arrays, code.steps), default=0))
        found[code.entry.name] = own + called
    return found


def _frame(statements: Sequence[c.Statement], arrays: int | None = None) -> int:
    declared = (s for s in c_query.statements(statements) if isinstance(s, c.Declare) and s.is_pointer)
    pointers = sum(len(s.variables) for s in declared)
    return FRAME + 4 * pointers + 2 * (_arrays(statements) if arrays is None else arrays)


def _arrays(statements: Sequence[c.Statement]) -> int:
    """Bytes of the local arrays that are in scope at the same time."""
    own = sum(4 * s.size for s in statements if isinstance(s, c.Array))
    inner = (getattr(s, name) for s in statements for name in c_query.BODIES.get(type(s), ()))
    return own + max(map(_arrays, inner), default=0)


def stack_of(program: Program) -> str:
    """The bounds of a program in words, by `stack_line`."""
    return stack_line(stack_bounds(source_of(program, {}, False), program))


def stack_line(bounds: dict[str, int]) -> str:
    """The bounds in words; empty if there are none."""
    said = ", ".join(f"{name} {size:,}" for name, size in bounds.items())
    return f"Stack on Cortex-M, at most, in bytes: {said}" if said else ""
