"""Which generated C takes the short ways of ag_math.h, and where it has loops for vectors."""

from dataclasses import replace

import pytest
from placed_loops import counted

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.types import Dim, Size
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.vector_loops import all_short
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board


def loop(iterations: Size, *body: c.Statement) -> c.For:
    return counted("i", iterations, body)


VECTOR = 16  # iterations from which vectors pay

N = Dim(1, 4)
COPY = c.Assign(c.Element(c.Name("y"), c.Name("i")), c.Element(c.Name("x"), c.Name("i")))
CALL = c.Assign(COPY.target, c.Template("ag_tanhf({0})", (COPY.value,), 100, (10,), ("ag_tanhf",)))


@pytest.mark.parametrize(
    ("statements", "short"),
    [
        ([], False),
        ([loop(64, COPY)], False),
        ([CALL], True),
        ([loop(VECTOR - 1, CALL)], True),
        ([loop(VECTOR, CALL)], False),
        ([loop(N, CALL)], True),
        ([loop(4 * N, CALL)], False),
        ([loop(64, CALL, loop(4, COPY))], True),
        ([loop(64, loop(4, CALL))], True),
        ([loop(4, loop(64, CALL))], False),
        ([loop(4, CALL), loop(64, CALL)], False),
        ([loop(64, COPY), loop(4, CALL)], True),
        ([c.For("k", c.number(0), (CALL,), start=c.number(9), step=-1)], False),
    ],
)
def test_loops(statements: list[c.Statement], short: bool) -> None:
    assert all_short(statements, vectors=VECTOR) == short


def test_no_loop_is_long_enough_where_vectors_never_pay() -> None:
    assert all_short([loop(64, CALL)], vectors=0)
    assert not all_short([loop(64, COPY)], vectors=0)


def bytes_alive(program: Program) -> int:
    """The most that the buffers of a step take together."""
    plans = [entry.plan for entry in program.entries]
    return max(
        sum(b.bytes for b in plan.placed if b.start <= step.number <= b.end)
        for plan in plans
        for step in plan.steps
    )


def test_boards_with_vectors_get_flat_loops() -> None:
    """Of w5's tanh, 4 units for each of 4 samples, and of w4's exp, 2 for each of 4; the arena does not grow."""
    for name, loop in (
        ("w5", "i < 4 * n; i++) {\n        layer1_out[i] ="),
        ("w4", "i < 2 * n; i++) {\n        loss_exp_shifted[i] ="),
    ):
        model = load_model(name)[0]
        plain = compile_model(model, name, ["ref"], board.load("stm32"))
        vectors = board.load("host_avx2")
        wide = compile_model(model, name, ["ref"], vectors)
        nested = replace(vectors, cost=replace(vectors.cost, vector_loop=1024))  # no loop is as long
        text = emit(wide)[f"{name}.c"]
        assert loop in text and loop not in emit(plain)[f"{name}.c"]
        assert "AG_MATH_SHORTCUTS" not in text
        assert bytes_alive(wide) <= bytes_alive(plain)  # the rest is that buffers begin at vectors
        as_aligned = compile_model(model, name, ["ref"], nested)
        assert loop not in emit(as_aligned)[f"{name}.c"]
        assert wide.struct_bytes <= as_aligned.struct_bytes


@pytest.mark.parametrize(
    ("name", "where", "short"), [("w5", "stm32", True), ("w1", "stm32", True), ("w1", "host_avx2", False)]
)
def test_workloads(name: str, where: str, short: bool) -> None:
    """w5 calls tanh for 4 units at a time, w1 sigmoid for 32; stm32 has no vectors, host_avx2 has."""
    text = emit(compile_model(load_model(name)[0], name, ["ref"], board.load(where)))[f"{name}.c"]
    assert ("#define AG_MATH_SHORTCUTS 1" in text) == short
