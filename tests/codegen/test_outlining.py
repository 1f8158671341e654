"""Loops that steps have in common become functions."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from placed_loops import counted
from placed_loops import pointer as of_arena

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen import source as source_trees
from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.ir.names import Called
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.outlined_form import Variable
from autodiff_gen.lowering.loops.outlined_function import CommonFunction
from autodiff_gen.lowering.loops.outlined_names import StepName
from autodiff_gen.lowering.loops.outlining import EntrySteps, outlined
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board
from autodiff_gen.targets.cost_table import CostTable

M4F, AVX2 = board.load("stm32").cost, board.load("host_avx2").cost
INDEX, ARENA = c.Name("i"), c.Member("t", "arena")
NUMBERS = [*map(str, range(1, 10)), "1.1", "1.2"]
STATES = [
    Variable(c.Member("t", f"{layer}_{word}"), "float *", Called(word, layer), is_trained=True)
    for layer, word in (("fc1", "weight"), ("fc2", "table"))
]
ARGUMENTS = [
    Variable(c.Name("x"), "const float *", Called("x")),
    Variable(c.Name("lr"), "float", Called("lr")),
    *STATES,
]


def pointer(name: str, offset: int) -> c.Declare:
    layer, _, words = name.partition("_")
    return replace(of_arena(name, offset, comment="[64]"), called=Called(words, layer))


def scaled(target: c.Expr, source: c.Expr, factor: c.Expr, count: int = 64) -> c.For:
    product = c.Binary("*", c.Element(source, INDEX), factor)
    return counted("i", count, (c.Assign(c.Element(target, INDEX), product),))


def step(number: int, *statements: c.Statement) -> c.Statements:
    return (c.Comment("what it computes", str(number)), *statements)


def made(
    *steps: c.Statements, cost: CostTable = M4F
) -> tuple[tuple[c.Statements, ...], list[CommonFunction]]:
    names = {number: StepName(f"step{number}", number == "7", (("scaled", ""),)) for number in NUMBERS}
    entry = EntrySteps("train_step", steps, {v.name: v for v in ARGUMENTS}, names)
    (changed,), functions = outlined([entry], ["table"], cost)
    return changed, functions


A, B, C = pointer("fc1_out", 32), pointer("fc2_out", 96), pointer("fc2_act", 96)
TWO = c.number(2)
FIRST = step(1, A, scaled(c.Name("fc1_out"), c.Name("x"), TWO))
SECOND = step(2, B, scaled(c.Name("fc2_out"), c.Name("fc1_out"), TWO))


def test_loops_that_differ_in_names() -> None:
    (first, second), (function,) = made(FIRST, SECOND)
    assert function.callers == (("train_step", "1"), ("train_step", "2"))
    assert function.parameters == (
        c.FunctionParameter("const float *", "x"),
        c.FunctionParameter("float *", "out"),
    )
    assert PRINTER.lines(function.body) == [
        "for (int32_t i = 0; i < 64; i++) {",
        "    out[i] = x[i] * 2;",
        "}",
    ]
    assert PRINTER.lines(first[1:]) == [
        "float *const fc1_out = t->arena + 32; /* [64] */",
        "scaled(x, fc1_out);",
    ]
    assert PRINTER.lines(second[2:]) == ["scaled(fc1_out, fc2_out);"]


OTHER_NUMBERS = step(2, B, scaled(c.Name("fc2_out"), c.Name("fc1_out"), c.Literal("0.5f"), 60))


def test_loops_that_differ_in_names_and_numbers() -> None:
    """Numbers that are equal in each of the loops are one parameter."""
    one = step(1, A, *scaled_twice(c.Name("fc1_out"), c.Name("x"), c.Literal("2.0f"), 64))
    other = step(2, B, *scaled_twice(c.Name("fc2_out"), c.Name("fc1_out"), c.Literal("0.5f"), 60))
    (first, second), (function,) = made(one, other)
    assert function.parameters[2:] == (
        c.FunctionParameter("int32_t", "count"),
        c.FunctionParameter("float", "factor"),
    )
    assert PRINTER.lines(function.body) == [
        "for (int32_t i = 0; i < count; i++) {",
        "    out[i] = x[i] * factor;",
        "}",
        "for (int32_t i = 0; i < count; i++) {",
        "    out[i] = out[i] * 3.0f;",
        "}",
    ]
    assert PRINTER.lines(first[2:]) == ["scaled(x, fc1_out, 64, 2.0f);"]
    assert PRINTER.lines(second[2:]) == ["scaled(fc1_out, fc2_out, 60, 0.5f);"]


def scaled_twice(target: c.Expr, source: c.Expr, factor: c.Expr, count: int) -> c.Statements:
    return scaled(target, source, factor, count), scaled(target, target, c.Literal("3.0f"), count)


def test_compilers_of_wide_vectors_know_the_sizes_of_loops() -> None:
    assert made(FIRST, OTHER_NUMBERS, cost=AVX2) == ((FIRST, OTHER_NUMBERS), [])


def of_local_array(number: int, size: int) -> c.Statements:
    """Sums in as many parts, in an array that compilers keep in registers."""
    part = c.Element(c.Name("part"), c.Name("k"))
    add = c.Assign(part, c.Element(c.Name("x"), c.Name("k")), "+=")
    inner = counted("k", size, (add,))
    outer = counted("j", 64, (c.Array("float", "part", 8, "0.0f"), inner))
    return step(number, outer)


STAY: dict[str, tuple[c.Statements, ...]] = {
    "one step": (FIRST,),
    "another size of a local array": (of_local_array(1, 8), of_local_array(2, 4)),
    "a number of another type": (FIRST, OTHER_NUMBERS),
    "another type": (FIRST, step(2, B, scaled(c.Name("fc2_out"), c.Name("fc1_out"), c.Name("lr")))),
    "an array at file scope": (FIRST, step(2, B, scaled(c.Name("fc2_out"), c.Name("table"), TWO))),
    "a local array from outside": tuple(
        (
            *step(k, c.Array("float", "block", 8)),
            scaled(c.Name("block"), c.Name("x"), TWO),
            c.ExprStatement(c.Call("AG_STORE_BLOCK", (c.number(0), c.Name("x"), c.Name("block")))),
            scaled(c.Name("block"), c.Name("x"), TWO),
        )
        for k in (1, 2)
    ),
    "a member of a struct that is no state": (
        step(1, A, scaled(c.Name("fc1_out"), c.Member("t", "part"), TWO)),
        step(2, B, scaled(c.Name("fc2_out"), c.Member("t", "part"), TWO)),
    ),
    "a variable from outside is assigned to": tuple(
        step(
            k,
            c.declare("float", f"total{k}", c.number(0)),
            counted("i", 64, (c.Assign(c.Name(f"total{k}"), c.Element(c.Name("x"), INDEX), "+="),)),
        )
        for k in (1, 2)
    ),
}


def test_compilers_of_wide_vectors_see_short_loops() -> None:
    steps = [
        step(1, A, scaled(c.Name("fc1_out"), c.Name("x"), TWO, 8)),
        step(2, B, scaled(c.Name("fc2_out"), c.Name("fc1_out"), TWO, 8)),
    ]
    assert made(*steps, cost=AVX2) == (tuple(steps), [])
    assert len(made(*steps)[1]) == 1


@pytest.mark.parametrize("case", STAY)
def test_loops_that_stay(case: str) -> None:
    assert made(*STAY[case]) == (STAY[case], [])


def test_a_result_in_place_of_an_operand() -> None:
    """Loops in place and other loops share a function."""
    in_place = step(2, B, C, scaled(c.Name("fc2_act"), c.Name("fc2_out"), TWO))
    (_, second), (function,) = made(FIRST, in_place)
    assert function.parameters == (
        c.FunctionParameter("const float *", "x"),
        c.FunctionParameter("float *", "out"),
    )
    assert PRINTER.lines(second[3:]) == ["scaled(fc2_out, fc2_act);"]


def test_single_loops_of_steps_become_functions() -> None:
    """The loop that three steps have in common is one function; the rest of each step stays where it is."""
    common = [scaled(c.Name("fc1_out"), c.Name("x"), TWO), scaled(c.Name("fc1_out"), c.Name("x"), TWO, 60)]
    other, last = (
        c.For("i", c.number(64), (c.Assign(c.Element(c.Name("fc1_out"), INDEX), c.number(0), op),))
        for op in ("+=", "-=")
    )
    (_, first, second, third), (function,) = made(
        (A,), step(1, common[0], other), step(2, common[1]), step(3, last, common[0], common[0])
    )
    assert function.callers == tuple(("train_step", k) for k in "1233")
    assert PRINTER.lines(first[1:]) == ["scaled_out(x, fc1_out, 64);", *PRINTER.lines((other,))]
    assert PRINTER.lines(second[1:]) == ["scaled_out(x, fc1_out, 60);"]
    assert len(PRINTER.lines(third[1:])) == 2 + len(PRINTER.lines((last,)))


def test_all_loops_of_steps_become_a_function_where_they_are_more() -> None:
    one = scaled_twice(c.Name("fc1_out"), c.Name("x"), c.Literal("2.0f"), 64)
    (_, first, second), (function,) = made((A,), step(1, *one), step(2, *one))
    assert len(function.body) == 2 and len(first) == len(second) == 2


def test_a_part_of_a_call_is_named_after_what_it_computes() -> None:
    """The last written array gives the name."""
    loops = scaled_twice(c.Member("t", "fc1_weight"), c.Name("x"), TWO, 64)
    _, (function,) = made(step(7, *loops), step(8, *loops))
    assert function.name == "scaled_weight"


def test_a_function_has_no_name_of_a_variable() -> None:
    first = step(1, c.declare("float", "scaled", c.number(0)), *FIRST[1:])
    _, (function,) = made(first, SECOND)
    assert function.name == "scaled_2"


def test_steps_of_a_loop_over_time_pass_its_variable() -> None:
    at = c.Sum((c.Name("time_step"), INDEX))
    body = (c.Assign(c.Element(c.Name("fc1_out"), at), c.Element(c.Name("x"), at)),)
    inner = [
        c.Comment("once", "1.1"),
        counted("i", 64, body),
        c.Comment("again", "1.2"),
        counted("i", 64, body),
    ]
    ((_, _, loop),), (function,) = made(step(1, A, counted("time_step", 5, tuple(inner))))
    assert isinstance(loop, c.For)
    assert PRINTER.lines(loop.body)[1::2] == ["scaled(x, fc1_out, time_step);"] * 2
    assert c.FunctionParameter("int32_t", "time_step") in function.parameters


def network() -> nn.Module:
    layers: list[nn.Module] = []
    for _ in range(3):
        layers += [nn.Linear(24, 24), nn.LayerNorm(24), nn.GELU(), nn.BatchNorm1d(24), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(24, 3))


def test_a_network_of_equal_layers_trains_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    model = ag.Model.supervised(
        network(), input=(4, 24), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01), guard="gradients"
    )
    x, label = rng.standard_normal((3, 4, 24)).astype(np.float32), rng.integers(0, 3, (3, 4))
    ends = []
    for keep in (False, True):
        if keep:
            monkeypatch.setattr(source_trees, "_with_outlined_loops", lambda codes, *_: (codes, []))
        trainer = host_trainer(model)
        losses = [trainer.train_step(*batch) for batch in zip(x, label, strict=True)]
        ends.append((losses, trainer.state_dict(), "".join(trainer.source.values()).count("\n")))
    (losses, state, lines), (other_losses, other_state, other_lines) = ends
    assert losses == other_losses and lines < other_lines
    for name, value in state.items():
        np.testing.assert_array_equal(value, other_state[name])


def test_an_entry_may_call_the_function_of_another_one() -> None:
    program = compile_model(load_model("gesture")[0], "gesture", None, board.load("stm32"))
    assert " of train_step and " in emit(program)["gesture.c"]


def test_the_work_of_a_function_is_counted_in_the_steps_that_call_it() -> None:
    """The calls follow the probes of their steps."""
    program = compile_model(load_model("gesture")[0], "gesture", None, board.load("stm32"))
    probes = {
        entry.name: {number: 100 * k + i for i, (number, _) in enumerate(entry.plan.all_steps())}
        for k, entry in enumerate(program.entries, 1)
    }
    steps = {probes[entry][number]: f"{number} of {entry}" for entry in probes for number in probes[entry]}
    said, current = {}, ""
    for line in emit(program, probes)["gesture.c"].splitlines():
        if found := re.match(r"(?:/\*| \*) (?:.*; )?[Ll]oops of (?:step|steps) ([^;]*)(?:;.*)? \*/", line):
            callers = [part.split(" of ") for part in re.split(r" and steps? ", found[1])]
            pairs = {f"{number} of {entry}" for numbers, entry in callers for number in numbers.split(", ")}
        elif found := re.match(r"static (?:AG_NOINLINE )?void (\w+)\(", line):
            said[found[1]] = pairs
        elif found := re.match(r" +AG_PROBE\((\d+)\);", line):
            current = steps.get(int(found[1]), "")
        elif (found := re.match(r" +(\w+)\(", line)) and found[1] in said:
            said[found[1]].remove(current)
    assert said and not any(said.values())


def test_a_local_value_is_told_apart_from_the_array_of_its_name() -> None:
    steps = []
    for k, (name, state) in enumerate(zip(("fc1_act", "fc2_act"), STATES, strict=True), 1):
        element = c.Element(state.name, INDEX)
        text = f"old_{state.called.words}"
        old = c.declare("float", text, element, called=Called(text))
        value = c.declare("float", "act", c.Element(c.Name(name), INDEX), called=Called("act"))
        new = c.Assign(element, c.Binary("+", c.Name(text), c.Name("act")))
        steps.append(step(k, pointer(name, 64 * k), counted("i", 64, (old, value, new))))
    _, (function,) = made(*steps)
    assert PRINTER.lines(function.body)[1:4] == [
        "    float old_param = param[i];",
        "    float act_i = act[i];",
        "    param[i] = old_param + act_i;",
    ]


def test_variables_of_a_function_are_named_after_the_roles_of_arrays() -> None:
    steps = []
    for k, name in enumerate(("fc1_out", "fc2_act"), 1):
        called = c.OfArray(c.Name(name), "i", Called("out"))
        block = c.declare("float", f"{name}_i", c.Element(c.Name(name), INDEX), called=called)
        store = c.Assign(c.Element(c.Member("t", "fc1_weight"), INDEX), c.Name(f"{name}_i"))
        steps.append(step(k, pointer(name, 64 * k), counted("i", 64, (block, store))))
    _, (function,) = made(*steps)
    assert PRINTER.lines(function.body)[1:3] == ["    float x_i = x[i];", "    weight[i] = x_i;"]
