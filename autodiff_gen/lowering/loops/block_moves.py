"""Loops over floats that are next to each other in memory, for cores that load and store a block by one instruction.

    for (i = 0; i < 64; i++) {             AG_BLOCKS(i, 64, j, 8, read(x_block, x), write(y_block, y)) {
        y[i] = x[i] * s;          ->           y_block[j] = x_block[j] * s;
    }                                      }

Blocks are of eight floats where all of a loop fit the registers, otherwise of four. Compilers merge neither loads nor
stores of floats, nor do they unroll such a loop. A loop over the four elements of a tile has one block; where
nothing else is in a loop over rows, pointers move from row to row (AG_BLOCK_ROWS). A loop that only copies or fills
calls ag_copy or ag_fill. Computations and their order stay the same. Loops that call functions stay as they are, and
are not to be unrolled: four times the code of a function would save little of its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...targets.cost_table import BLOCK, WIDE, CostTable
from ..c import c_ast as c
from ..c import c_query
from .accesses import accesses_of, are_independent, with_innermost_loops, with_variable
from .block_operands import first_element, operands_of
from .pointed_memory import local_array
from .statements import LOOP_NAMES

COPY, FILL = "ag_copy", "ag_fill"  # runtime/ag_blocks.h
UNROLLED = 16  # iterations of a loop that compilers unroll completely


def with_block_moves(
    steps: Sequence[c.Statements], cost: CostTable, taken: Iterable[str]
) -> tuple[c.Statements, ...]:
    """The steps of an entry with such loops, if the target has such instructions. taken: the names of arguments."""
    if not cost.block_moves:
        return tuple(steps)
    scope = {*taken, *c_query.variables(steps)}
    moved = (with_innermost_loops(step, lambda loop: _changed(loop, scope)) for step in steps)
    return tuple(c_query.with_loops(step, _by_rows) for step in moved)


def _changed(loop: c.For, scope: set[str]) -> c.Statement:
    if any(name.startswith("ag_") for name in c_query.calls(loop.body)):
        return replace(loop, rolled=loop.rolled or _is_unrolled(loop))
    if loop.step != 1 or not _is_plain(loop.body):
        return loop
    taken = c_query.variables(loop.body)
    if loop.extent == BLOCK:
        operands = operands_of(loop, taken, scope, BLOCK, repeated=True)
        return _of_blocks(loop, operands) if operands else loop
    for width in (WIDE, BLOCK):
        if not _is_divided(loop, width):
            continue
        tile = _tile(loop, taken, width)
        operands = operands_of(tile, taken, scope, width)
        begins = {e: _begin(first_element(e, tile), c.Name(loop.variable)) for e in operands}
        moved = {e: replace(operands[e], pointer=begin) for e, begin in begins.items() if begin is not None}
        if operands and len(moved) == len(operands):
            inner = _of_blocks(tile, moved)
            blocks, inner = inner.blocks, replace(inner, blocks=())
            return _copied(tile, loop.stop, moved) or replace(
                loop, body=(inner,), step=width, rolled=False, blocks=blocks
            )
    return loop


def _is_unrolled(loop: c.For) -> bool:
    """Whether compilers may unroll completely a loop over more elements than one block."""
    extent = loop.from_zero
    return isinstance(extent, int) and BLOCK < extent <= UNROLLED and loop.step == 1


def _is_divided(loop: c.For, width: int) -> bool:
    """Whether a loop from 0 divides into several whole blocks."""
    extent = loop.from_zero
    if isinstance(extent, int):
        return extent % width == 0 and extent > WIDE
    return extent is not None and extent.coef % width == 0


def _tile(loop: c.For, taken: set[str], width: int) -> c.For:
    """The loop over the elements of one block. taken: the names in the loop."""
    after = LOOP_NAMES.find(loop.variable) + 1
    variable = next(c.Name(v) for v in (*LOOP_NAMES[after:], "element") if v not in taken)
    old = c.Name(loop.variable)
    return replace(
        loop,
        variable=variable.text,
        start=old,
        stop=c.Binary("+", old, c.number(width)),
        extent=width,
        body=with_variable(loop.body, old.text, variable.text),
        rolled=False,
        independent=False,
    )


def _of_blocks(tile: c.For, operands: Mapping[c.Element, c.BlockOperand]) -> c.For:
    """The loop over the elements of a block, which are in local arrays. A local that only names an element, or a sum
    that the macro limits, is left out."""
    at = c.index((c.Name(tile.variable), 1), (tile.start, -1)).flat
    here = {e: c.Element(c.Name(o.name), at, local_array(o.name, is_float=True)) for e, o in operands.items()}
    limited = {e for e, o in operands.items() if o.limit is not None}
    fixed = {e for e, o in operands.items() if not o.is_written}
    body = tuple(_unlimited(s, limited) for s in tile.body)
    stored = {s.value for s in body if isinstance(s, c.Assign) and s.target in limited}
    used = Counter(node for node in c_query.nodes(body) if isinstance(node, c.Name))
    only = sum(isinstance(s, c.Assign) for s in body) == 1  # nothing that a sum reads is stored before it
    values: dict[c.Name, c.Expr] = {}

    def change(node: Any) -> Any:
        if isinstance(node, c.Name):
            return values.get(node, node)
        return here.get(node, node) if isinstance(node, c.Element) else node

    kept: list[c.Statement] = []
    for statement in body:
        match statement:
            case c.Declare(variables=((name, value),)) if value is not None and (
                value in fixed or (c.Name(name) in stored and used[c.Name(name)] == 1 and only)
            ):
                values[c.Name(name)] = c_query.rewritten(value, change)
            case _:
                kept.append(c_query.rewritten(statement, change))
    return replace(tile, body=tuple(kept), blocks=tuple(operands.values()))


def _copied(tile: c.For, stop: c.Expr, operands: Mapping[c.Element, c.BlockOperand]) -> c.Statement | None:
    """The call of ag_copy or ag_fill that replaces a loop over blocks up to `stop`; None if the loop does anything
    else."""
    match tile.body:
        case (c.Assign(c.Element() as target, value, "="),) if target in operands:
            to = operands[target].pointer
        case _:
            return None
    source = operands.get(value) if isinstance(value, c.Element) else None
    if source is not None and not source.is_written and _is_wide(tile):
        return c.ExprStatement(c.Call(COPY, (to, source.pointer, stop), read_only=(1,)))
    is_fixed = isinstance(value, (c.Literal, c.Name)) and value != c.Name(tile.variable)
    return c.ExprStatement(c.Call(FILL, (to, value, stop))) if is_fixed else None


def _is_wide(tile: c.For) -> bool:
    """Whether a loop may load a wide block before it stores one, as ag_copy does."""
    accesses = accesses_of(tile.body)
    return accesses is not None and are_independent(accesses, tile.variable, WIDE)


def _by_rows(loop: c.For) -> c.For:
    """A loop over rows with one block each, as a loop whose pointers move from row to row."""
    match c.unbraced(loop.body):
        case (c.For(blocks=blocks, blocks_macro="BLOCK") as tile,):
            pass
        case _:
            return loop
    if loop.step != 1 or loop.start != c.number(0) or not isinstance(loop.stop, c.Literal):
        return loop
    variable, moved = c.Name(loop.variable), list[c.BlockOperand]()
    for o in blocks:
        assert isinstance(o.pointer, c.Unary) and isinstance(o.pointer.operand, c.Element)
        place = _row(o.pointer.operand, variable)
        if place is None:
            return loop
        begin, stride = place
        moved.append(replace(o, pointer=c.Unary("&", begin), stride=c.number(stride)))
    return replace(loop, body=(replace(tile, blocks=()),), rolled=False, blocks=tuple(moved))


def _row(element: c.Element, variable: c.Name) -> tuple[c.Element, int] | None:
    """The element for the value 0 of a variable, and its step along the variable; None where that is not known."""
    if variable in c_query.nodes(element.array):
        return None
    begin, stride = list[tuple[c.Expr, int]](), 0
    for term in element.terms:
        if variable not in c_query.nodes(term):
            begin.append(term)
            continue
        steps = c.Index((term,)).steps
        if steps is None or not steps.keys() <= {variable.text, ""}:
            return None
        stride += steps[variable.text]
        begin += [(c.number(steps[""]), 1)] if steps.get("") else []
    if stride < 0 or any(k < 0 for _, k in begin):
        return None
    return element.at(*begin), stride


def _begin(element: c.Element, variable: c.Name) -> c.Expr | None:
    """The address of an element where a variable is 0; None unless each step of the variable moves it by one
    element."""
    match _row(element, variable):
        case c.Element() as begin, 1:
            return c.Unary("&", begin) if begin.terms else begin.array
    return None


def _unlimited(statement: c.Statement, limited: set[c.Element]) -> c.Statement:
    """An assignment without the clamp, if the macro clamps the stored numbers."""
    match statement:
        case c.Assign(c.Element() as target, c.Template(operands=(operand,))) if target in limited:
            return replace(statement, value=operand)
    return statement


def _is_plain(body: c.Statements) -> bool:
    """Whether a loop computes elements or sums, and nothing else."""
    return all(isinstance(s, c.Assign | c.StepTemplate | c.Declare) for s in body)
