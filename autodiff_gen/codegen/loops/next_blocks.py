"""Blocks of floats that follow each other in memory, for cores whose loads and stores move the pointer to the next one.

    for (i = 0; i < 64; i += 4) {              {
        AG_LOAD_BLOCK(0, x_block, &x[i]);          const float *x_next = x;
        ...                                  ->    for (i = 0; i < 64; i += 4) {
    }                                                  AG_LOAD_NEXT(0, x_block, x_next);
                                                       ...

What is loaded and stored has one pointer, which moves when it is stored. Blocks at other distances have pointers that
AG_MOVE moves, so that compilers do not add an index to each of them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from ...ir.identifiers import unused
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...targets.cost_table import BLOCK, WIDE, CostTable
from .block_moves import LIMITED, POSITIVE, UNROLLED
from .block_registers import LOAD, STORE

MOVE = "AG_MOVE"
NEXT = {
    LOAD: "AG_LOAD_NEXT",
    STORE: "AG_STORE_NEXT",
    POSITIVE: "AG_STORE_NEXT_POSITIVE",
    LIMITED: "AG_STORE_NEXT_LIMITED",
}


def with_next_blocks(steps: Sequence[c.Statements], cost: CostTable) -> tuple[c.Statements, ...]:
    """The steps of an entry, whose loops are over blocks already, with such pointers."""
    if not cost.block_moves:
        return tuple(steps)
    taken = c_query.variables(tuple(steps))

    def change(loop: c.For) -> c.Statement:
        return _through_pointers(loop, taken) if loop.step in (BLOCK, WIDE) else _with_steps(loop, taken)

    return tuple(c_query.with_loops(step, change) for step in steps)


def _through_pointers(loop: c.For, taken: set[str]) -> c.Statement:
    """The loop with pointers for blocks that follow each other from iteration to iteration. taken: names of
    variables."""
    at: dict[c.Element, str] = {}
    pointers: list[c.Statement] = []
    body = list(loop.body)
    calls = [s.expr for s in body if isinstance(s, c.ExprStatement) and isinstance(s.expr, c.Call)]
    stored = {
        a.operand for call in calls if call.function != LOAD for a in call.arguments if isinstance(a, c.Unary)
    }
    for k in reversed(range(len(body))):
        match body[k]:
            case c.ExprStatement(c.Call(function, (register, *arguments))) if function in NEXT:
                element = next(a.operand for a in arguments if isinstance(a, c.Unary))
                assert isinstance(element, c.Element)
                begin = _begin(element, c.Name(loop.variable))
                if begin is None:
                    continue
                moves = element not in at
                if moves:
                    at[element] = _name(element, taken, at.values())
                    c_type = "float *" if element in stored else "const float *"
                    pointers.append(c.Declare(c_type, ((at[element], begin),)))
                pointer = c.Name(at[element])
                moved = (pointer if isinstance(a, c.Unary) else a for a in arguments)
                call = c.Call(NEXT[function] if moves else function, (register, *moved))
                body[k] = c.ExprStatement(call)
    made = replace(loop, body=tuple(body))
    return c.Block((*reversed(pointers), made)) if pointers else made


def _with_steps(loop: c.For, taken: set[str]) -> c.Statement:
    """The loop with pointers for the blocks in it that are at other distances from iteration to iteration."""
    variable = c.Name(loop.variable)
    calls = [s.expr for s in loop.body if isinstance(s, c.ExprStatement) and isinstance(s.expr, c.Call)]
    places = dict.fromkeys(a for call in calls for a in call.arguments if isinstance(a, c.Unary))
    stored = {a for call in calls for a in call.arguments if call.function != LOAD}
    names: dict[c.Expr, c.Name] = {}
    pointers: list[c.Statement] = []
    moves: list[c.Statement] = []
    for place in places if _is_a_loop(loop) else ():
        assert isinstance(place.operand, c.Element)
        found = _step(place.operand, variable)
        if found is not None:
            begin, step = found
            name = names[place] = c.Name(_name(place.operand, taken, [n.text for n in names.values()]))
            pointers.append(
                c.Declare("float *" if place in stored else "const float *", ((name.text, begin),))
            )
            moves.append(c.ExprStatement(c.Call(MOVE, (name, c.number(step)))))
    if not pointers:
        return loop
    body = c_query.rewritten(
        loop.body, lambda node: names.get(node, node) if isinstance(node, c.Unary) else node
    )
    return c.Block((*pointers, replace(loop, body=(*body, *moves))))


def _is_a_loop(loop: c.For) -> bool:
    """Whether a loop counts from 0, and is known to be so long that compilers do not unroll it completely."""
    is_long = isinstance(loop.stop, c.Literal) and (loop.rolled or int(loop.stop.text) > UNROLLED)
    return loop.step == 1 and loop.start == c.number(0) and is_long


def _step(element: c.Element, variable: c.Name) -> tuple[c.Expr, int] | None:
    """Where an element is for which a variable is 0, and how far it moves with it."""
    index = element.index if isinstance(element.index, c.Sum) else c.Sum((element.index,))
    if index.less:
        return None
    terms = index.terms
    found = [t for t in terms if variable in c_query.nodes(t)]
    match found:
        case [c.Binary("*", c.Name() as name, c.Literal(text)) as term] if name == variable:
            rest = tuple(t for t in terms if t is not term)
            return c.Unary("&", c.Element(element.array, c.total(rest))), int(text)
    return None


def _name(element: c.Element, *taken: Container[str]) -> str:
    return unused(f"{c_query.words(element.array)[0]}_next", *taken)


def _begin(element: c.Element, variable: c.Name) -> c.Expr | None:
    """Where an element is whose index is the sum of a variable, which is 0 there, and other terms; None for others."""
    match element.index:
        case c.Name() as index if index == variable:
            return element.array
        case c.Sum(terms, ()) if terms.count(variable) == 1:
            rest = tuple(t for t in terms if t != variable)
            return c.Unary("&", c.Element(element.array, c.total(rest)))
    return None
