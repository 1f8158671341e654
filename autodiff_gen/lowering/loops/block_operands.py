"""The blocks that a loop over their elements reads and writes: their names, their places, the blocks that share
registers, and the limits of their elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...ir.identifiers import unused
from ...targets.cost_table import BLOCK
from ..c import c_ast as c
from ..c import c_query
from .accesses import are_independent, elements_of
from .pointed_memory import Access

REGISTERS, OPERANDS = 24, 7  # that ag_blocks.h has for blocks
OPERATIONS = 12  # of a loop that compilers unroll for a wide block, with the accesses of elements


def operands_of(
    tile: c.For, taken: set[str], scope: set[str], width: int, *, repeated: bool = False
) -> dict[c.Element, c.BlockOperand]:
    """The blocks that a loop over the elements of a block reads and writes; empty if there are none, or if wide blocks
    do not fit the registers. taken: the names in the loop; repeated: loops are around the tile. An operand that does
    not change with these loops stays an ordinary load, which compilers move out of them, unless a product is added to
    it: then they would copy each element."""
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
    places = {e: c.Unary("&", first_element(e, tile)) for e in order}
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
    """Maps elements that are only read to elements that are only written and share their registers: the sum that
    replaces an addend, or else the element at the same place in memory."""
    found: dict[c.Element, c.Element] = {}
    read = [e for e, (_, is_written) in elements.items() if not is_written]
    written = [e for e, (is_read, _) in elements.items() if not is_read]
    for e in written:
        term = addends.get(e) or next((r for r in read if at[r].distance(at[e]) == 0), None)
        if term is not None and term in read and term not in found:
            found[term] = e
    return found


def _blocks(
    accesses: Sequence[tuple[c.Element, Access]], moving: set[c.Element], variable: str
) -> dict[c.Element, tuple[bool, bool]]:
    """The elements of `moving` that move by blocks: whether they are loaded, and whether they are stored. Empty if an
    iteration may store an element under one name and then read or store it under another."""
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
    """The terms of a sum. If its first operand is a sum too, the terms of that sum are included, since C adds from left
    to right."""
    if isinstance(value, c.Template) and value.is_sum:
        return tuple(t for k, v in enumerate(value.operands) for t in (_terms(v) if k == 0 else (v,)))
    return () if value is None else (value,)


def _limits(
    body: c.Statements, elements: Mapping[c.Element, tuple[bool, bool]], counts: Mapping[c.Element, int]
) -> dict[c.Element, c.Expr]:
    """For each element that stores a clamped sum, the upper limit of the clamp. Such an element is nowhere else in the
    loop. counts: how often each element is in the body."""
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


def _size(body: c.Statements) -> int:
    kinds = (c.Element, c.Template, c.Cast, c.StepTemplate)
    return sum(isinstance(node, kinds) for node in c_query.nodes(body))


def _varies(element: c.Element, tile: c.For) -> bool:
    """Whether an element changes with any loop except the tile's loop and the loop over tiles."""
    fixed = (c.Name(tile.variable), tile.start)
    steps = None if element.access is None else element.access.steps
    return any(c.Name(v) not in fixed for v in steps or ())


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
    """Whether a statement reads its target."""
    return not isinstance(statement, c.Assign) or statement.op != "="


def first_element(element: c.Element, tile: c.For) -> c.Element:
    """The element of the first iteration of the loop over a block, without terms of its index that are 0 or cancel."""
    old = c.Name(tile.variable)
    moved = c_query.rewritten(element, lambda node: tile.start if node == old else node)
    return replace(moved, index=c.Index(moved.terms).flat)
