"""Loops of generated C that say that their iterations are independent: rows of small loops, and every loop of real
models with all its addresses enumerated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from op_expressions import reduced
from placed_loops import at, counted, placed, pointer

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.entries import entry_code
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.types import Dim
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query
from autodiff_gen.lowering.loops.independent_loops import with_independent_loops
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

INDEX, ROW = c.Name("i"), c.Name("j")
LENGTH = 64


def times(variable: c.Name, factor: int) -> c.Expr:
    return c.Binary("*", variable, c.number(factor))


def sum_of(*elements: c.Expr) -> c.Expr:
    return c.Sum(tuple(elements))


A = pointer("a", 0)
B = pointer("b", 64)
SAME = pointer("b", 0)
OVERLAP = pointer("b", 32)
MOVING = replace(B, memory=None if A.memory is None else A.memory.moved("b", 0, is_moving=True))

ROWS: dict[str, tuple[bool, list[c.Declare | c.Array], list[c.Statement]]] = {
    "apart": (True, [A, B], [c.Assign(at("a", INDEX), at("b", INDEX))]),
    "in place": (True, [A, SAME], [c.Assign(at("a", INDEX), at("b", INDEX))]),
    "in place, moved by one": (False, [A, SAME], [c.Assign(at("a", INDEX), at("b", INDEX, 1))]),
    "in place, the whole loop away": (True, [A, SAME], [c.Assign(at("a", INDEX), at("b", INDEX, LENGTH))]),
    "in place, less than the loop away": (
        False,
        [A, SAME],
        [c.Assign(at("a", INDEX), at("b", INDEX, LENGTH - 1))],
    ),
    "columns side by side": (
        True,
        [A, SAME],
        [c.Assign(at("a", times(INDEX, 2)), at("b", times(INDEX, 2), 1))],
    ),
    "columns that meet": (
        False,
        [A, SAME],
        [c.Assign(at("a", times(INDEX, 2)), at("b", times(INDEX, 2), 2))],
    ),
    "overlap": (False, [A, OVERLAP], [c.Assign(at("a", INDEX), at("b", INDEX, ROW))]),
    "rows of arrays that are apart": (
        True,
        [A, B],
        [c.Assign(at("a", INDEX, times(ROW, 9)), at("b", INDEX))],
    ),
    "rows of one array": (False, [A, SAME], [c.Assign(at("a", INDEX, times(ROW, 9)), at("b", INDEX))]),
    "a place for all": (False, [A, B], [c.Assign(at("a", 3), at("b", INDEX), "+=")]),
    "a place looked up": (False, [A, B], [c.Assign(at("a", at("b", INDEX)), at("b", INDEX))]),
    "reads a place looked up": (True, [A, B], [c.Assign(at("a", INDEX), at("b", at("x", INDEX)))]),
    "moving pointer": (False, [A, MOVING], [c.Assign(at("a", INDEX), at("b", INDEX))]),
    "only a moving pointer": (True, [A, MOVING, B], [c.Assign(at("b", INDEX), at("y", INDEX))]),
    "caller's array": (True, [A], [c.Assign(at("a", INDEX), at("x", INDEX))]),
    "caller's arrays": (False, [], [c.Assign(at("y", INDEX), at("x", INDEX))]),
    "unknown pointer": (
        False,
        [A, c.Declare("float *", (("b", c.Call("f", ())),))],
        [c.Assign(at("a", INDEX), at("b", INDEX))],
    ),
    "state": (
        True,
        [A],
        [
            c.Assign(
                c.Element(c.Member("t", "w"), INDEX),
                sum_of(c.Element(c.Member("t", "w"), INDEX), at("a", INDEX)),
            )
        ],
    ),
    "accumulators": (
        True,
        [A, B, c.Array("float", "acc", LENGTH, "0.0f")],
        [c.Assign(at("acc", INDEX), c.Binary("*", at("a", INDEX), at("b", INDEX)), "+=")],
    ),
    "accumulator": (
        False,
        [A, B, c.Array("float", "acc", 1, "0.0f")],
        [reduced("sum", at("acc", 0), sum_of(at("a", INDEX), at("b", INDEX)))],
    ),
    "call": (
        False,
        [A, B],
        [c.Assign(at("a", INDEX), at("b", INDEX)), c.ExprStatement(c.Call("f", (INDEX,)))],
    ),
    "second statement": (
        False,
        [A, B, pointer("d", 0)],
        [c.Assign(at("a", INDEX), at("b", INDEX)), c.Assign(at("b", INDEX), at("d", INDEX, 1))],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_loop(row: str) -> None:
    """Each beside a statement that writes memory apart from all others."""
    independent, pointers, body = ROWS[row]
    apart = pointer("apart", 4096)
    loop = counted("i", LENGTH, (*body, c.Assign(at("apart", INDEX), c.Literal("0.0f"))))
    *_, found = with_independent_loops([placed((apart, *pointers, loop))], shortest=LENGTH)[0]
    assert isinstance(found, c.For) and found.independent == independent


def test_compilers_see_what_a_loop_over_one_array_does() -> None:
    step = placed((A, counted("i", LENGTH, (c.Assign(at("a", INDEX), c.Literal("0.0f")),))))
    assert with_independent_loops([step], shortest=LENGTH) == (step,)


def test_only_long_innermost_loops() -> None:
    body = (c.Assign(at("a", INDEX), at("b", INDEX)),)
    inner, short = counted("i", LENGTH, body), counted("i", LENGTH - 1, body)
    loops = (counted("j", LENGTH, (inner,)), short, counted("i", Dim(1, LENGTH), body))
    steps = [placed((A, B, *loops))]
    found = with_independent_loops(steps, shortest=LENGTH)
    assert [s.independent for s in c_query.nodes(found) if isinstance(s, c.For)] == [
        False, True, False, True
    ]  # fmt: skip
    assert with_independent_loops(steps, shortest=0) == tuple(steps)


def test_short_loops_of_whole_vectors_are_not_unrolled() -> None:
    body = (c.Assign(at("a", INDEX), at("b", INDEX)),)
    loops = tuple(counted("i", count, body) for count in (8, 12, 16, 24))
    for vector, rolled in ((8, [True, False, True, False]), (0, 4 * [False])):
        *_, first, second, third, fourth = with_independent_loops(
            [placed((A, B, *loops, counted("i", Dim(1, 8), body)))], shortest=8, vector=vector
        )[0][:-1]
        found = [s.rolled for s in (first, second, third, fourth) if isinstance(s, c.For)]
        assert found == rolled


# Real models


def addresses(
    loop: c.For, around: Mapping[str, int], places: Mapping[str, int], program: Program
) -> Iterator[tuple[set[int], set[int]]]:
    """Bytes that each iteration reads and writes, by evaluating every index as it is written."""

    def value(expr: c.Expr, names: Mapping[str, int]) -> int:
        match expr:
            case c.Literal(text):
                return int(text)
            case c.Name(name):
                return names[name]
            case c.Cast(_, operand):
                return value(operand, names)
            case c.Binary("*", left, right):
                return value(left, names) * value(right, names)
            case c.Binary("+", left, right):
                return value(left, names) + value(right, names)
            case c.Sum(terms, less):
                return sum(value(t, names) for t in terms) - sum(value(t, names) for t in less)
            case c.Index():
                return value(expr.sum, names)
        raise KeyError(expr)  # an index that is looked up

    def place(array: c.Expr, names: Mapping[str, int]) -> int:
        match array:
            case c.Binary("+", start, moved):
                return place(start, names) + 4 * value(moved, names)
            case c.Member(pointer, name):
                return places.get(f"{pointer}->{name}", hash(name) % 2**40 * 2**40)
            case c.Name(name):
                return places.get(name, hash(name) % 2**40 * 2**40)
        raise AssertionError(array)

    start, stop = value(loop.start, around), value(loop.stop, around)
    targets = [n.target for n in c_query.nodes(loop.body) if isinstance(n, c.Assign)]
    for i in range(start, stop, loop.step):
        names = {**around, loop.variable: i}
        read, written = set[int](), set[int]()
        for node in c_query.nodes(loop.body):
            if isinstance(node, c.Element):
                try:
                    found = place(node.array, names) + 4 * value(node.index, names)
                except KeyError:
                    found = place(node.array, names)
                (written if any(node is t for t in targets) else read).add(found)
        yield read, written


def check_loops(
    statements: c.Statements, around: dict[str, int], places: dict[str, int], program: Program
) -> int:
    """Enumerate the iterations of every loop that says so; returns how many say so."""
    count = 0

    def value(expr: c.Expr) -> int:
        loop = c.For("", c.number(1), (c.Assign(c.Element(c.Name("at"), expr), expr),))
        ((_, written),) = addresses(loop, around, {"at": 0}, program)
        return written.pop() // 4

    for statement in statements:
        match statement:
            case c.Declare(variables=((name, start),)) if statement.is_pointer and start is not None:
                start = start.operand if isinstance(start, c.Cast) else start
                whole = c.For("", c.number(1), (c.Assign(c.Element(start, c.number(0)), c.number(0)),))
                ((_, written),) = addresses(whole, around, places, program)
                places[name] = written.pop()
            case c.For(variable, body=body) if statement.independent:
                iterations = list(addresses(statement, around, places, program))
                for (_, written), (read, other) in itertools.permutations(iterations[:40], 2):
                    assert written.isdisjoint(read | other), statement
                count += 1
            case c.For(variable, body=body):
                for end in {value(statement.start), value(statement.stop) - 1}:
                    count += check_loops(body, {**around, variable: end}, dict(places), program)
            case c.If(then=then, otherwise=otherwise):
                count += check_loops((*then, *otherwise), around, dict(places), program)
            case c.Block(body):
                count += check_loops(body, around, dict(places), program)
    return count


# Models, and how many such loops each has at least; most of lenet's are epilogues of kernels.
LOOPS = {"gesture": 10, "attention": 10, "autoencoder": 10, "lenet": 4, "keywords": 10, "w6": 10}


@pytest.mark.parametrize("name", LOOPS)
def test_iterations_of_real_models_never_touch_the_same_bytes(name: str) -> None:
    """Their arenas reuse memory in place. The arrays of bytes are taken for wider ones, which can only meet more."""
    program = compile_model(load_model(name)[0], name, ["ref"], board.load("host_avx2"))
    tables = {n.results[0]: "table" for e in program.entries for n in e.plan.graph.nodes}
    count = 0
    for entry in program.entries:
        steps = with_independent_loops(entry_code(entry, program, tables, {}, {}).steps, 8)
        places = {"t->arena": 0, "t->int_arena": 2**50}
        for step in steps:
            count += check_loops(step, {"n": program.batch}, places, program)
    assert count >= LOOPS[name]


def test_boards_without_vectors_keep_their_text() -> None:
    for name, said in (("stm32", False), ("host_avx2", True)):
        source = emit(compile_model(load_model("gesture")[0], "gesture", ["ref"], board.load(name)))[
            "gesture.c"
        ]
        assert ("AG_IVDEP" in source) == said
        assert ('#include "ag_loops.h"' in source) == ("AG_IVDEP" in source or "AG_NOUNROLL" in source)
