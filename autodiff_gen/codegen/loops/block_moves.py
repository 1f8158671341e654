"""Loops over floats that are next to each other in memory, for cores that load and store a block by one instruction.

    for (i = 0; i < 64; i++) {         for (i = 0; i < 64; i += 8) {
        y[i] = x[i] * s;          ->       float x_block[8], y_block[8];
    }                                      AG_LOAD_BLOCK(0, x_block, &x[i]);
                                           for (j = i; j < i + 8; j++) y_block[j - i] = x_block[j - i] * s;
                                           AG_STORE_BLOCK(2, &y[i], y_block);
                                       }

Blocks are of eight floats where all of a loop fit the registers, otherwise of four. Compilers merge neither loads nor
stores of floats, nor do they unroll such a loop. What is computed, and in which order, stays the same; a copy is stored
from the block that was loaded. A sum is limited to numbers from 0 on where a block of it is stored, by fewer
instructions; the loops around are in a mode of the FPU in which their NaN is one that this leaves as it is. Loops that
call functions stay as they are, and are not to be unrolled: four times the code of a function would save little of its
time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...lowering.nests.statements import LOOP_NAMES
from ...targets.cost_table import BLOCK, WIDE, CostTable
from .block_registers import (
    LOAD,
    STORE,
    added_to,
    block_names,
    call,
    distance,
    elements_of_blocks,
    first_elements,
    is_element,
    registers_of,
)
from .block_stages import in_stages
from .loop_accesses import (
    LOCAL,
    Access,
    Memory,
    Pointers,
    are_independent,
    elements_of,
    linear,
    local_array,
    with_innermost_loops,
)

POSITIVE, LIMITED = "AG_STORE_POSITIVE", "AG_STORE_LIMITED"
BEGIN, END, MODES = "ag_begin_default_nan", "ag_end_default_nan", "fpu_modes"
_STORES: Mapping[str, tuple[Any, ...]] = {"": (STORE,), "INFINITY": (POSITIVE,)}  # by the upper limit
BLOCKS = 6  # whose registers ag_blocks.h names
OPERATIONS = 12  # with those on elements, of a loop that compilers unroll for a wide block
UNROLLED = 16  # iterations of a loop that compilers unroll completely
SHORT = 32  # iterations of a loop that takes little time, unless it is inside of another one


def with_block_moves(
    steps: Sequence[c.Statements], cost: CostTable, floats: Mapping[str, Memory]
) -> tuple[c.Statements, ...]:
    """The steps of an entry with such loops, if the target has such instructions. floats: arguments and states that are
    arrays of floats, as C spells them."""
    if not cost.block_moves:
        return tuple(steps)
    pointers: Pointers = dict(floats)
    moved = (with_innermost_loops(step, pointers, _changed) for step in steps)
    return tuple(tuple(_with_default_nan(s) for s in step) for step in moved)


def _with_default_nan(statement: c.Statement) -> c.Statement:
    """A statement with the mode of the FPU that what it stores needs."""
    stored = {
        e.expr.function
        for e in c_query.statements(statement)
        if isinstance(e, c.ExprStatement) and isinstance(e.expr, c.Call)
    }
    if stored.isdisjoint((POSITIVE, LIMITED)):
        return statement
    begin = c.Declare("const uint32_t", ((MODES, c.Call(BEGIN, ())),))
    return c.Block((begin, statement, c.ExprStatement(c.Call(END, (c.Name(MODES),)))))


def _changed(loop: c.For, pointers: Pointers, is_inside: bool) -> c.Statements:
    if any(name.startswith("ag_") for name in c_query.calls(loop.body)):
        return (replace(loop, rolled=loop.rolled or _is_unrolled(loop)),)
    if loop.step != 1 or not _is_plain(loop.body):
        return (loop,)
    taken = c_query.variables(loop.body)
    if loop.stop in (c.Binary("+", loop.start, c.number(BLOCK)), c.number(BLOCK)):
        moved = _moved(loop, taken, pointers, BLOCK, repeated=True)
        if moved:
            pointers |= {s.name: local_array(s.c_type, s.name) for s in moved if isinstance(s, c.Array)}
        return moved or (loop,)
    for width in (WIDE, BLOCK):
        if _is_divided(loop, width, UNROLLED if is_inside else SHORT):
            moved = _moved(_tile(loop, taken, width), taken, pointers, width)
            if moved:
                return (replace(loop, body=moved, step=width),)
    return (loop,)


def _is_unrolled(loop: c.For) -> bool:
    """Whether compilers may unroll a loop over many elements completely."""
    return isinstance(loop.stop, c.Literal) and BLOCK < int(loop.stop.text) <= UNROLLED and loop.step == 1


def _is_divided(loop: c.For, width: int, short: int) -> bool:
    """Whether a loop has more than so many iterations, and blocks are all of it."""
    match loop.start, loop.stop:
        case c.Literal("0"), c.Literal(text) | c.Binary("*", c.Literal(text), c.Name("n" | "count")):
            return int(text) % width == 0 and (loop.stop != c.Literal(text) or int(text) > short)
    return False


def _tile(loop: c.For, taken: set[str], width: int) -> c.For:
    """The loop over the elements of one block. taken: the names in the loop."""
    after = LOOP_NAMES.find(loop.variable) + 1
    variable = next(c.Name(v) for v in (*LOOP_NAMES[after:], "element") if v not in taken)
    old = c.Name(loop.variable)
    body = c_query.rewritten(loop.body, lambda node: variable if node == old else node)
    return replace(
        loop,
        variable=variable.text,
        start=old,
        stop=c.Binary("+", old, c.number(width)),
        body=body,
    )


def _moved(
    tile: c.For, taken: set[str], pointers: Pointers, width: int, *, repeated: bool = False
) -> c.Statements:
    """The loop over a block between its loads and its stores; nothing where there are none, or where wide ones do not
    fit the registers. taken: the names in the loop; repeated: loops are around the tile; what does not change with them
    stays an ordinary load, which compilers move out of them, unless a product is added to it, for which they would copy
    each element."""
    accesses = _in_order(tile.body, pointers)
    if accesses is None or not are_independent([a for _, a in accesses], tile.variable, width):
        return ()
    counts = Counter(node for node in c_query.nodes(tile.body) if is_element(node))
    again = {e for e in added_to(tile.body, counts) if not _varies(e, tile)} if repeated else set()
    moving = {
        e for e, a in accesses if _is_in_memory(a) and (a.is_written or not repeated or _varies(e, tile))
    }
    moving |= again
    elements = _blocks(accesses, moving, tile.variable)
    size = width // BLOCK
    registers = {e: k * size for e, k in registers_of(elements, accesses, tile.body, counts).items()}
    fit = {e: moves for e, moves in elements.items() if registers[e] + size <= BLOCKS}
    if size > 1 and (fit != elements or _operations(tile.body) > OPERATIONS):
        names = block_names(elements, taken, pointers)
        return in_stages(tile, names, width, BLOCKS // size)
    elements = fit
    sums = any(isinstance(s, c.StepTemplate) for s in tile.body)
    if not elements or not (sums or any(is_written for _, is_written in elements.values())):
        return ()
    copies = _copies(tile.body, elements, counts)
    names = block_names([e for e in elements if e not in copies], taken, pointers)
    here = elements_of_blocks(tile, names)
    highs = _limits(tile.body, elements, counts)
    computed = [s for s in tile.body if not (isinstance(s, c.Assign) and s.target in copies)]
    limited = tuple(_unlimited(s, highs) for s in computed)
    body = c_query.rewritten(limited, lambda node: here.get(node, node) if is_element(node) else node)
    first = first_elements(tile, elements)
    if repeated:
        first = {e: first[_stored_over(e, elements, dict(reversed(accesses)))] for e in elements}
    out: list[c.Statement] = [c.Array("float", name, width) for name in names.values()]
    for e, (is_read, _) in elements.items():
        if is_read:
            out.append(call(LOAD, registers[e], c.Name(names[e]), c.Unary("&", first[e])))
    if body:
        out.append(replace(tile, body=body))
    for e, (_, is_written) in elements.items():
        if is_written:
            high, block = highs.get(e, ""), copies.get(e, e)
            store, *limit = _STORES.get(high, (LIMITED, c.Literal(high)))
            out.append(call(store, registers[block], c.Unary("&", first[e]), c.Name(names[block]), *limit))
    return tuple(out)


def _copies(
    body: c.Statements, elements: Mapping[c.Element, tuple[bool, bool]], counts: Mapping[c.Element, int]
) -> dict[c.Element, c.Element]:
    """Elements that nothing but a copy of another one is stored in, which stays as it is: the other one's block serves
    both. counts: how often each element is in the body."""
    found: dict[c.Element, c.Element] = {}
    for s in body:
        match s:
            case c.Assign(c.Element() as target, c.Element() as source, "="):
                alone = counts[target] == 1
                if alone and elements.get(target) == (False, True) and elements.get(source) == (True, False):
                    found[target] = source
    return found


def _stored_over(
    element: c.Element, elements: Mapping[c.Element, tuple[bool, bool]], at: Mapping[c.Element, Access]
) -> c.Element:
    """The element that is stored at the address of one, which may have another name."""
    places = (e for e, (_, is_written) in elements.items() if is_written)
    return next((e for e in places if distance(at[e], at[element]) == 0), element)


def _is_in_memory(access: Access) -> bool:
    """Whether an access is not to a local array, which compilers keep in registers."""
    return not access.memory.root.startswith(LOCAL)


def _limits(
    body: c.Statements, elements: Mapping[c.Element, tuple[bool, bool]], counts: Mapping[c.Element, int]
) -> dict[c.Element, str]:
    """The upper limits that sums have where they are stored as elements, which nothing else in the loop is. counts: how
    often each element is in the body."""
    declared = [s for s in body if isinstance(s, c.Declare)]
    sums = {
        name
        for s in declared
        for name, value in s.variables
        if isinstance(value, c.Template) and value.is_sum
    }
    found: dict[c.Element, str] = {}
    for s in body:
        match s:
            case c.Assign(c.Element() as target, c.Template(operands=(c.Name(name),), high=high), "="):
                if name in sums and counts[target] == 1 and elements.get(target) == (False, True):
                    found[target] = high
    return found


def _unlimited(statement: c.Statement, highs: Mapping[c.Element, str]) -> c.Statement:
    """An assignment without the limits that the macro computes."""
    match statement:
        case c.Assign(c.Element() as target, c.Template(operands=(operand,))) if highs.get(target):
            return replace(statement, value=operand)
    return statement


def _operations(body: c.Statements) -> int:
    kinds = (c.Element, c.Template, c.Cast, c.StepTemplate)
    return sum(isinstance(node, kinds) for node in c_query.nodes(body))


def _varies(element: c.Element, tile: c.For) -> bool:
    """Whether it changes with a loop between the tile and that over tiles."""
    fixed = (c.Name(tile.variable), tile.start)
    return any(v and c.Name(v) not in fixed for v in linear(element.index) or ())


def _is_plain(body: c.Statements) -> bool:
    """Whether a loop computes elements or sums, and nothing else."""
    return all(isinstance(s, (c.Assign, c.StepTemplate)) or _is_local(s) for s in body)


def _is_local(statement: c.Statement) -> bool:
    return isinstance(statement, c.Declare) and not statement.is_pointer


def _in_order(body: c.Statements, pointers: Pointers) -> list[tuple[c.Element, Access]] | None:
    """The accesses of one iteration in the order in which they happen; None where that is not known."""
    out: list[tuple[c.Element, Access]] = []
    for statement in body:
        pairs = elements_of(statement, pointers)
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
    if any(e != w and may_be_one(a, b) for k, w, b in writes for e, a in accesses[k + 1 :]):
        return {}
    found: dict[c.Element, tuple[bool, bool]] = {}
    for element, access in accesses:
        is_block = access.memory.is_float and access.place is not None and access.place.get(variable, 0) == 4
        if is_block and element in moving:
            is_read, is_written = found.get(element, (not access.is_written, False))
            found[element] = is_read, is_written or access.is_written
    return found


def may_be_one(a: Access, b: Access) -> bool:
    """Whether two accesses of one iteration may be to the same bytes."""
    between = distance(a, b)
    if between is None or a.memory.element != b.memory.element:
        return not a.memory.is_apart_from(b.memory)
    return abs(between) < a.memory.element
