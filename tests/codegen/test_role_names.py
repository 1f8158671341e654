"""Names of functions of loops, and of their parameters."""

from __future__ import annotations

import re

import pytest
from placed_loops import counted

from autodiff_gen.ir.names import Called
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.block_moves import COPY
from autodiff_gen.lowering.loops.outlined_form import Section, Variable, section_of
from autodiff_gen.lowering.loops.outlined_names import StepName, function_names, parameter_name, role_name


def called(name: str) -> Called:
    """The parts of a name such as `d_fc1_out_row`."""
    found = re.fullmatch(r"(d_)?(?:(fc\d)_)?(.*?)(?:_(row|t))?", name)
    assert found is not None
    gradient, layer, words, part = found.groups("")
    return Called(words, layer, bool(gradient), part)


def outer(names: str, c_type: str = "float *", is_const: bool = False) -> list[Variable]:
    return [Variable(c.Name(name), c_type, called(name), is_const) for name in names.split()]


def states(names: str, is_trained: bool = False) -> list[Variable]:
    return [
        Variable(c.Member("t", name), "float *", called(name), is_trained=is_trained)
        for name in names.split()
    ]


ROLES: dict[str, list[Variable]] = {
    "out": outer("fc1_out fc2_out"),
    "x": outer("fc1_out fc2_out", is_const=True),
    "bias_square_avg": outer("fc1_bias_ih_l0_square_avg fc1_bias_hh_l1_square_avg"),
    "h_t": outer("fc1_h_before_t fc1_h_t"),
    "grad": outer("d_fc1_out d_fc2_act", is_const=True),
    "d_x": outer("d_fc1_out d_fc2_act"),
    "d_x_row": outer("d_fc1_out_row d_fc2_act_row"),
    "out_t": outer("fc1_h_t fc1_c_t"),
    "state": states("fc1_weight fc2_bias"),
    "param": states("fc1_weight fc2_table", is_trained=True),
    "lr": outer("lr step_size", c_type="float"),
}


@pytest.mark.parametrize("role", ROLES)
def test_names_of_roles(role: str) -> None:
    assert role_name(ROLES[role]) == role


def loops(caller: tuple[str, str], read: str, written: str, state: str = "") -> Section:
    """Loops that use these arrays."""
    return Section(caller, (), (), (*states(state), *outer(read, is_const=True), *outer(written)), ())


TRAIN, PREDICT = ("train_step", "1"), ("predict", "1")
PARAMETERS = {  # arrays that the first loops and others read and write, and the names of parameters
    "a result and its gradient": (("d_fc1_out fc1_out", "d_x"), ("d_fc2_out fc2_out", "d_y"), "d_out out d_x"),
    "the gradient is written": (("d_fc1_h fc1_out", "d_fc1_out"), ("d_fc2_h fc2_out", "d_fc2_out"), "d_h x d_out"),
    "a gradient of the same role": (("d_fc1_out x", "d_fc2_out"), ("d_fc2_out x", "d_fc1_out"), "d_out x d_x"),
    "one array of several layers": (("fc1_pooled", "fc1_out"), ("fc2_pooled", "fc2_out"), "x out"),
    "one array of a layer": (("fc1_qkv", "fc1_qk"), ("fc1_qkv", "fc1_qk"), "qkv qk"),
    "one gradient": (("d_fc1_out", "fc1_out"), ("d_fc2_out", "fc2_out"), "d_out out"),
}  # fmt: skip


@pytest.mark.parametrize("case", PARAMETERS)
def test_names_of_parameters(case: str) -> None:
    first, other, names = PARAMETERS[case]
    group = [loops(TRAIN, *first), loops(TRAIN, *other)]
    assert [parameter_name(group, k) for k in range(len(names.split()))] == names.split()


FUNCTIONS = {  # loops of two functions of the same steps, and the names of the functions
    "two layers": (
        [loops(TRAIN, "x", "fc1_out", "fc1_bias"), loops(PREDICT, "x", "fc1_out", "fc1_bias")],
        [loops(TRAIN, "x", "fc2_out", "fc2_bias"), loops(PREDICT, "x", "fc2_out", "fc2_bias")],
        ["fc1_relu", "fc2_relu"],
    ),
    "one layer, and several": (
        [loops(TRAIN, "x", "fc1_out"), loops(PREDICT, "x", "fc2_out")],
        [loops(TRAIN, "x", "fc2_out"), loops(PREDICT, "x", "fc2_out")],
        ["relu", "fc2_relu"],
    ),
    "two results": (
        [loops(TRAIN, "x", "fc1_act fc1_x_row"), loops(TRAIN, "x", "fc2_act fc2_x_row")],
        [loops(TRAIN, "x", "fc1_gate"), loops(TRAIN, "x", "fc2_gate")],
        ["relu_act", "relu_gate"],
    ),
    "two entries": (
        [loops(TRAIN, "x", "fc1_out"), loops(TRAIN, "x", "fc2_out")],
        [loops(PREDICT, "x", "fc1_out"), loops(PREDICT, "x", "fc2_out")],
        ["relu_train_step", "relu_predict"],
    ),
    "nothing": (
        [loops(TRAIN, "x", "fc1_out"), loops(TRAIN, "x", "fc2_out")],
        [loops(TRAIN, "x", "fc1_out"), loops(TRAIN, "x", "fc2_out")],
        ["relu", "relu"],
    ),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions_of_one_name_are_told_apart(case: str) -> None:
    *groups, names = FUNCTIONS[case]
    steps = dict.fromkeys((TRAIN, PREDICT), StepName("relu", False))
    assert function_names(groups, steps, [False, False]) == names


def step(name: str, functions: str, ops: str) -> StepName:
    words = [
        tuple((word, "backward") if word[0] == "d" else (word, "") for word in text.split())
        for text in (functions, ops)
    ]
    return StepName(name, False, *words)


COMMON = {  # two steps that call a function, and the name of the function
    "parameters differ": (step("w1_add_relu", "add relu", ""), step("w0_add_relu", "add relu", ""), "add_relu"),
    "the last function": (step("norm_adam", "d_norm adam", "sum mul"), step("sum_adam", "sum adam", "sum mul"), "adam"),
    "the first functions": (step("a_b_relu", "a b relu", ""), step("a_b", "a b", ""), "a_b"),
    "a phase": (step("d_a_backward", "d_a", "where"), step("a", "a", "where max"), "where"),
    "nothing": (step("relu", "relu", "max"), step("tanh", "tanh", "tanh"), "loops"),
    "no name of C": (step("a_tanh", "a tanh", ""), step("tanh_b", "tanh b", ""), "tanh_array"),
}  # fmt: skip


@pytest.mark.parametrize("case", COMMON)
def test_a_function_of_different_steps_is_named_after_what_they_have_in_common(case: str) -> None:
    first, other, name = COMMON[case]
    both = [loops(TRAIN, "x", "fc1_out"), loops(PREDICT, "x", "fc2_out")]
    for steps in ({TRAIN: first, PREDICT: other}, {TRAIN: other, PREDICT: first}):
        assert function_names([both], steps, [False]) == [name]
    assert function_names([both[:1]], {TRAIN: first}, [False]) == [first.name]


NUMBERS_OF = {  # a statement with the number 7, and the name of a parameter for it
    "a term of an index": (c.Element(c.Name("x"), c.Sum((c.Name("i"), c.number(7)))), "offset"),
    "an index": (c.Unary("&", c.Element(c.Name("x"), c.number(7))), "offset"),
    "a factor of an index": (c.Element(c.Name("x"), c.Binary("*", c.Name("i"), c.number(7))), "stride"),
    "how many are copied": (c.Call(COPY, (c.Name("x"), c.Name("x"), c.number(7))), "count"),
    "how many rows are copied": (
        c.Call(COPY, (c.Name("x"), c.Name("x"), c.Binary("*", c.number(7), c.Name("x")))),
        "count",
    ),
}


@pytest.mark.parametrize("case", NUMBERS_OF)
def test_roles_of_numbers(case: str) -> None:
    expr, role = NUMBERS_OF[case]
    (x,) = outer("x")
    found = section_of((counted("i", 64, (c.ExprStatement(expr),)),), TRAIN, {x.name: x})
    assert found is not None
    assert [n.role for n in found.numbers if n.literal.text == "7"] == [role]
