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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...ir.identifiers import unused
from ...targets.cost_table import BLOCK, WIDE, CostTable
from ..c import c_ast as c
from ..c import c_query
from ..nests.statements import LOOP_NAMES
from .accesses import accesses_of, are_independent, elements_of, with_innermost_loops, with_variable
from .memory import Access, local_array

COPY, FILL = "ag_copy", "ag_fill"  # runtime/ag_blocks.h
REGISTERS, OPERANDS = 24, 7  # that ag_blocks.h has for blocks
OPERATIONS = 12  # with those on elements, of a loop that compilers unroll for a wide block
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
        operands = _operands(loop, taken, scope, BLOCK, repeated=True)
        return _of_blocks(loop, operands) if operands else loop
    for width in (WIDE, BLOCK):
        if not _is_divided(loop, width):
            continue
        tile = _tile(loop, taken, width)
        operands = _operands(tile, taken, scope, width)
        begins = {e: _begin(_first(e, tile), c.Name(loop.variable)) for e in operands}
        moved = {e: replace(operands[e], pointer=begin) for e, begin in begins.items() if begin is not None}
        if operands and len(moved) == len(operands):
            inner = _of_blocks(tile, moved)
            blocks, inner = inner.blocks, replace(inner, blocks=())
            return _copied(tile, loop.stop, moved) or replace(
                loop, body=(inner,), step=width, rolled=False, blocks=blocks
            )
    return loop


def _is_unrolled(loop: c.For) -> bool:
    """Whether compilers may unroll a loop over many elements completely."""
    extent = loop.from_zero
    return isinstance(extent, int) and BLOCK < extent <= UNROLLED and loop.step == 1


def _is_divided(loop: c.For, width: int) -> bool:
    """Whether a loop has several blocks, and blocks are all of it."""
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


def _operands(
    tile: c.For, taken: set[str], scope: set[str], width: int, *, repeated: bool = False
) -> dict[c.Element, c.BlockOperand]:
    """The blocks that the loop over the elements of one reads and writes; none where there are none, or where wide ones
    do not fit the registers. taken: the names in the loop; repeated: loops are around the tile; what does not change
    with them stays an ordinary load, which compilers move out of them, unless a product is added to it, for which they
    would copy each element."""
    accesses = _in_order(tile.body)
    if accesses is None or not are_independent([a for _, a in accesses], tile.variable, width):
        return {}
    counts = Counter(node for node in c_query.nodes(tile.body) if isinstance(node, c.Element))
    added = _added_to(tile.body, counts)
    moving = {
        e
        for e, a in accesses
        if (not a.memory.is_local and (a.is_written or not repeated or _varies(e, tile)))
        or (repeated and e in added and not _varies(e, tile))
    }
    elements = _blocks(accesses, moving, tile.variable)
    limits = _limits(tile.body, elements, counts)
    at = dict(reversed(accesses))
    replaced = _replaced(elements, at, _addends(elements, tile.body, counts))
    order = sorted(elements, key=lambda e: (e in replaced, elements[e][1]))
    order = [x for e in order if e not in replaced.values() for x in (e, replaced.get(e)) if x is not None]
    while not _fit(order, replaced, width):
        spare = [e for e in order if e not in replaced and not elements[e][1]]
        if width > BLOCK or not spare:
            return {}
        order.remove(spare[-1])
    if width > BLOCK and _size(tile.body) > OPERATIONS:
        return {}
    sums = any(isinstance(s, c.StepTemplate) for s in tile.body)
    if not order or not (sums or any(elements[e][1] for e in order)):
        return {}
    names: dict[c.Element, str] = {}
    for e in order:
        names[e] = unused(f"{c_query.words(e.array)[0]}_block", taken, scope, names.values())
    places = {e: c.Unary("&", _first(e, tile)) for e in order}
    return {
        e: c.BlockOperand(names[e], places[e], *elements[e], e in replaced.values(), None, limits.get(e))
        for e in order
    }


def _fit(order: Sequence[c.Element], replaced: Mapping[c.Element, c.Element], width: int) -> bool:
    """Whether the macros take so many operands, and have registers for each that does not replace another one."""
    own = [k for k, e in enumerate(order) if e not in replaced.values()]
    return len(order) <= OPERANDS and all(k < REGISTERS // width for k in own)


def _replaced(
    elements: Mapping[c.Element, tuple[bool, bool]],
    at: Mapping[c.Element, Access],
    addends: Mapping[c.Element, c.Element],
) -> dict[c.Element, c.Element]:
    """For elements that are only read, those that are only written and whose registers are the same: the sum that an
    addend is replaced by, or else what is in the same place of memory."""
    found: dict[c.Element, c.Element] = {}
    read = [e for e, (_, is_written) in elements.items() if not is_written]
    written = [e for e, (is_read, _) in elements.items() if not is_read]
    for e in written:
        term = addends.get(e) or next((r for r in read if at[r].distance(at[e]) == 0), None)
        if term is not None and term in read and term not in found:
            found[term] = e
    return found


def _of_blocks(tile: c.For, operands: Mapping[c.Element, c.BlockOperand]) -> c.For:
    """The loop over the elements of a block, which are in local arrays. What only names an element, or a sum that the
    macro limits, needs no name."""
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
    """The call in place of a loop up to `stop` over such blocks that does nothing but copy or fill; None for another
    one."""
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
    """A loop over rows of which each has one block, with pointers that move from row to row."""
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
    """Where an element is for which a variable is 0, and how far it moves with it; None where that is not known."""
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
    """Where an element is for which a variable is 0 that moves it to the next one; None for others."""
    match _row(element, variable):
        case c.Element() as begin, 1:
            return c.Unary("&", begin) if begin.terms else begin.array
    return None


def _first(element: c.Element, tile: c.For) -> c.Element:
    """The element of the first iteration of the loop over a block, without terms of its index that are 0 or cancel."""
    old = c.Name(tile.variable)
    moved = c_query.rewritten(element, lambda node: tile.start if node == old else node)
    return replace(moved, index=c.Index(moved.terms).flat)


def _added_to(body: c.Statements, counts: Mapping[c.Element, int]) -> set[c.Element]:
    """The elements that nothing but one sum reads, to which a product is added: a multiply-add replaces them by the
    sum. counts: how often each element is in the body."""
    found = set()
    for node in c_query.nodes(body):
        if isinstance(node, c.Template) and node.is_sum:
            terms = node.operands
            if any(isinstance(t, c.Template) and t.is_product for t in terms):
                found |= {t for t in terms if isinstance(t, c.Element) and counts[t] == 1}
    return found


def _addends(
    elements: Collection[c.Element], body: c.Statements, counts: Mapping[c.Element, int]
) -> dict[c.Element, c.Element]:
    """For elements that are sums, or functions of one, a term that nothing else reads: a multiply-add replaces it by
    the sum. counts: how often each element is in the body."""
    declared = {name: value for s in body if isinstance(s, c.Declare) for name, value in s.variables}
    found: dict[c.Element, c.Element] = {}
    for s in body:
        match s:
            case c.Assign(c.Element() as target, value, "=") if target in elements:
                terms = (t for t in _terms(_sum_of(value, declared)) if isinstance(t, c.Element))
                unread = (t for t in terms if t in elements and counts[t] == 1 and t not in found.values())
                if (term := next(unread, None)) is not None:
                    found[target] = term
    return found


def _sum_of(value: c.Expr, declared: Mapping[str, c.Expr | None]) -> c.Expr | None:
    """The expression that a value is computed from by functions of one operand."""
    while True:
        match value:
            case c.Name(name) if (of := declared.get(name)) is not None:
                value = of
            case c.Template(operands=(operand,)) | c.Cast(operand=operand):
                value = operand
            case _:
                return value


def _terms(value: c.Expr | None) -> tuple[c.Expr, ...]:
    """The terms of a sum, itself of sums if need be, from which it is computed without another copy."""
    if isinstance(value, c.Template) and value.is_sum:
        return tuple(t for k, v in enumerate(value.operands) for t in (_terms(v) if k == 0 else (v,)))
    return () if value is None else (value,)


def _limits(
    body: c.Statements, elements: Mapping[c.Element, tuple[bool, bool]], counts: Mapping[c.Element, int]
) -> dict[c.Element, c.Expr]:
    """The upper limits that sums have where they are stored as elements, which nothing else in the loop is. counts: how
    often each element is in the body."""
    declared = [pair for s in body if isinstance(s, c.Declare) for pair in s.variables]
    sums = {name for name, value in declared if isinstance(value, c.Template) and value.is_sum}
    found: dict[c.Element, c.Expr] = {}
    for s in body:
        match s:
            case c.Assign(c.Element() as target, c.Template(operands=(c.Name(name),), high=high), "=") if (
                high
            ):
                if name in sums and counts[target] == 1 and elements.get(target) == (False, True):
                    found[target] = c.Literal(high)
    return found


def _unlimited(statement: c.Statement, limited: set[c.Element]) -> c.Statement:
    """An assignment without the limits that the macro computes."""
    match statement:
        case c.Assign(c.Element() as target, c.Template(operands=(operand,))) if target in limited:
            return replace(statement, value=operand)
    return statement


def _size(body: c.Statements) -> int:
    kinds = (c.Element, c.Template, c.Cast, c.StepTemplate)
    return sum(isinstance(node, kinds) for node in c_query.nodes(body))


def _varies(element: c.Element, tile: c.For) -> bool:
    """Whether it changes with a loop between the tile and that over tiles."""
    fixed = (c.Name(tile.variable), tile.start)
    steps = None if element.access is None else element.access.steps
    return any(c.Name(v) not in fixed for v in steps or ())


def _is_plain(body: c.Statements) -> bool:
    """Whether a loop computes elements or sums, and nothing else."""
    return all(isinstance(s, c.Assign | c.StepTemplate | c.Declare) for s in body)


def _in_order(body: c.Statements) -> list[tuple[c.Element, Access]] | None:
    """The accesses of one iteration in the order in which they happen; None where that is not known."""
    out: list[tuple[c.Element, Access]] = []
    for statement in body:
        pairs = elements_of(statement)
        if pairs is None:
            return None
        reads = [(e, replace(a, is_written=False)) for e, a in pairs if not a.is_written or _adds(statement)]
        out += [*reads, *((e, a) for e, a in pairs if a.is_written)]
    return out


def _adds(statement: c.Statement) -> bool:
    """Whether a statement reads what it writes."""
    return not isinstance(statement, c.Assign) or statement.op != "="


def _blocks(
    accesses: Sequence[tuple[c.Element, Access]], moving: set[c.Element], variable: str
) -> dict[c.Element, tuple[bool, bool]]:
    """Those of `moving` that move by blocks: whether they are loaded, and whether they are stored. None do where what
    an iteration has stored under one name may be read or stored again under another one."""
    writes = [(k, e, a) for k, (e, a) in enumerate(accesses) if a.is_written]
    if any(e != w and a.may_be(b) for k, w, b in writes for e, a in accesses[k + 1 :]):
        return {}
    found: dict[c.Element, tuple[bool, bool]] = {}
    for element, access in accesses:
        is_block = access.memory.is_float and access.step(variable) == 4
        if is_block and element in moving:
            is_read, is_written = found.get(element, (not access.is_written, False))
            found[element] = is_read, is_written or access.is_written
    return found
