"""Sums of more blocks of floats than registers hold: one loop over the elements for as many terms as fit, and others.

    AG_LOAD_BLOCK(0, a_block, &a[i]); ...           AG_LOAD_BLOCK(0, a_block, &a[i]); ... x, s
    for (j = i; j < i + 8; j++) {                   for (j ...) y_block[j - i] = a_block[j - i] - x_block[j - i] * ...
        y_block[j - i] = a_block[j - i]        ->   AG_LOAD_BLOCK(2, d_block, &d[i]); ... f
                - x_block[j - i] * ... + ...        for (j ...) y_block[j - i] = y_block[j - i] + d_block[j - i] * ...
    }                                               AG_STORE_BLOCK(0, &y[i], y_block);

The terms are added in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...targets.cost_table import BLOCK
from .block_registers import LOAD, STORE, call, elements_of_blocks, first_elements, is_element


@dataclass(frozen=True)
class _Stage:
    """The sum so far and some terms, and the blocks in registers: first the sum's, or what is loaded into its
    registers."""

    value: c.Expr
    blocks: tuple[c.Element, ...]


def in_stages(tile: c.For, names: Mapping[c.Element, str], width: int, most: int) -> c.Statements:
    """The loop over a block of so many floats as loops for some of the terms, with the loads and stores of at most so
    many blocks at a time; nothing where it is not one sum of elements with blocks. names: of these."""
    match tile.body:
        case (c.Assign(c.Element() as target, value, "="),) if target not in c_query.nodes(value):
            stages = _stages(target, value, most)
        case _:
            return ()
    if any(len(s.blocks) > most or not names.keys() >= {*s.blocks} for s in stages):
        return ()
    here = elements_of_blocks(tile, names)
    first = {e: c.Unary("&", element) for e, element in first_elements(tile, names).items()}
    out: list[c.Statement] = [c.Array("float", name, width) for name in names.values()]
    for stage in stages:
        loads = [(k, e) for k, e in enumerate(stage.blocks) if e != target]
        out += [call(LOAD, k * width // BLOCK, c.Name(names[e]), first[e]) for k, e in loads]
        body = (c.Assign(target, stage.value),)
        out.append(
            replace(tile, body=c_query.rewritten(body, lambda node: here[node] if is_element(node) else node))
        )
    return (*out, call(STORE, 0, first[target], c.Name(names[target])))


def _stages(target: c.Element, value: c.Expr, most: int) -> list[_Stage]:
    terms: list[c.Template] = []  # additions and subtractions, of which the second operand is the term
    base = value
    while isinstance(base, c.Template) and base.is_sum:
        terms.insert(0, base)
        base = base.operands[0]
    is_loaded = isinstance(base, c.Element) and _elements(value).count(base) == 1
    stages = [_Stage(base, tuple(_elements(base)) if is_loaded else (target, *_elements(base)))]
    for term in terms:
        last, elements = stages[-1], tuple(dict.fromkeys(_elements(term.operands[1])))
        blocks = (*last.blocks, *(e for e in elements if e not in last.blocks))
        if len(blocks) <= most:
            stages[-1] = _Stage(replace(term, operands=(last.value, term.operands[1])), blocks)
        else:
            sum_ = replace(term, operands=(target, term.operands[1]))
            stages.append(_Stage(sum_, (target, *elements)))
    return stages


def _elements(value: c.Expr) -> list[c.Element]:
    return [node for node in c_query.nodes(value) if is_element(node)]
