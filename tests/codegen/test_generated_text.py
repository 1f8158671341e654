"""The text of generated C: headings, names, shared geometry, lines that fit; and how trees are printed."""

from __future__ import annotations

import re

import numpy as np
import pytest
from compiled_examples import files
from generated_c import c_of
from placed_loops import counted

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.codegen.legend import legend
from autodiff_gen.codegen.line_breaking import WIDTH, folded
from autodiff_gen.ir.identifiers import Scope
from autodiff_gen.lowering.c import c_ast as c

MODELS = ("mnist", "xor", "lenet", "gesture", "attention", "keywords", "w5", "w6")


def source(model: str) -> str:
    return files(model)[f"{model}.c"]


HEADINGS = {
    "mnist": ["forward: layer0", "forward: layer2", "loss", "backward: layer2", "backward: layer0"],
    "xor": ["forward, loss and backward: layer0", "update: layer2", "update: layer0"],
    "gesture": [
        "forward: gru", "forward: head", "loss", "backward: head, gru", "update", "update: gru", "update: head",
    ],
    "keywords": [
        "forward: conv",
        *(f"forward: block{k}.{part}" for k in (1, 2, 3, 4) for part in ("depthwise", "pointwise")),
        "forward and backward: block4.pointwise", "forward: classifier", "loss", "backward: classifier",
    ],
}  # fmt: skip


@pytest.mark.parametrize("model", HEADINGS)
def test_headings_of_a_training_step(model: str) -> None:
    function = source(model).partition("_train_step(")[2].partition("\n}\n")[0]
    found = re.findall(r"/\* ---- (.*) ---- \*/", function)
    assert found[: len(HEADINGS[model])] == HEADINGS[model]


@pytest.mark.parametrize("model", MODELS)
def test_no_line_is_too_long(model: str) -> None:
    for name, text in files(model).items():
        long = [line for line in text.split("\n") if len(line) > WIDTH and name.endswith(".c")]
        assert not [line for line in long if "size_is_as_planned" not in line], name


def test_no_number_is_added_to_a_name_that_ends_in_one() -> None:
    """`fc12` would be a layer; the second array of fc1 is fc1_2."""
    scope = Scope()
    assert [scope.fresh(name) for name in ("fc1", "fc1", "d_sum", "d_sum", "fc1")] == [
        "fc1", "fc1_2", "d_sum", "d_sum_2", "fc1_3",
    ]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_geometry_is_written_once(model: str) -> None:
    text = source(model)
    tables = re.findall(r"static const ag_(\w+_shape) (\w+) = \{(.*?)\};", text, re.DOTALL)
    assert len({(struct, fields) for struct, _, fields in tables}) == len(tables)
    for _, name, _ in tables:
        assert re.search(rf"&{name}[,)]", text), name


@pytest.mark.parametrize("model", ["keywords", "keywords_int8"])
def test_values_of_constants_come_after_all_code(model: str) -> None:
    """One declaration before it names them."""
    code, _, values = source(model).partition("\n/* ---- constants ---- */\n")
    sizes = re.findall(r"^static const \w+ (\w+\[\d+\]) = \{", values, re.MULTILINE)
    declared = re.findall(r"^static const (?:int8_t|int32_t|float) ([^;=]+);", code, re.MULTILINE)
    assert len(sizes) > 10 and sorted(sizes) == sorted(
        ", ".join(declared).replace("\n       ", "").split(", ")
    )
    assert f"{model}_strstatus(" in code and not re.search(r"^    -?\d[^=()]*,$", code, re.MULTILINE)


@pytest.mark.parametrize("model", MODELS)
def test_a_pointer_is_declared_at_its_first_use(model: str) -> None:
    """Between the comment and the statements of a step that reads or writes it."""
    for step in re.split(r"\n    /\* (?=\d+ )", source(model))[1:]:
        for name in re.findall(r"^ +\w+ \*const (\w+) = ", step, re.MULTILINE):
            assert len(re.findall(rf"\b{name}\b", step.partition("*/")[2])) > 1, (name, step[:80])


A, B, C, K = (c.Name(x) for x in "abck")
PRINTED: list[tuple[c.Expr, str]] = [
    (c.Binary("*", c.total([A, B]), C), "(a + b) * c"),
    (c.Binary("*", A, c.Binary("*", B, C)), "a * (b * c)"),
    (c.Binary("-", A, c.Binary("-", B, C)), "a - (b - c)"),
    (c.total([A], [C]), "a - c"),
    (c.total([A, B], [C]), "a + (b - c)"),  # GCC 12.2 deletes loops with the index `i * 20 + 4 - j`
    (c.total([c.times(A, 4), c.times(B, -2), c.number(4), c.times(C, -1)]), "a * 4 + (4 - b * 2 - c)"),
    (c.total([c.total([c.number(4)], [A]), B]), "(4 - a) + b"),
    (c.Element(c.Binary("+", A, B), c.total([c.number(4)], [K])), "a[b + (4 - k)]"),
    (c.Unary("-", c.Literal("-1.0f")), "-(-1.0f)"),
    (c.Cast("float", c.Binary("*", A, B)), "(float)(a * b)"),
    (c.Element(A, c.times(K, 10)), "a[k * 10 + 0]"),
    (c.Unary("&", c.Element(A, c.times(K, 10))), "&a[k * 10]"),
    (c.Element(c.Binary("+", A, B), K), "a[b + k]"),
    (c.Element(c.Cast("uint8_t *", c.Binary("+", A, B)), K), "((uint8_t *)(a + b))[k]"),
    (c.plus(A, [c.times(K, 10)]), "a + (ptrdiff_t)k * 10"),
    (c.plus(A, [c.number(4), c.times(K, 10)]), "a + (4 + k * 10)"),
    (c.plus(A, [c.number(40), c.times(K, -10)]), "a + (40 - k * 10)"),
    (c.Binary("||", c.Binary("&&", A, c.Binary("||", B, C)), A), "a && (b || c) || a"),
    (c.Conditional(A, B, c.Conditional(A, B, C)), "a ? b : a ? b : c"),
    (c.Member("t", "w"), "t->w"),
]


DESCENDING = {  # inputs of four axes -> what reads a part of them
    "flips": lambda x: F.flip(x, (1, 3)),
    "flip of a permute": lambda x: F.flip(F.permute(x, (0, 3, 1, 2)), (1,)),
    "permute of a flip": lambda x: F.permute(F.flip(x, (3,)), (0, 3, 1, 2)),
    "steps": lambda x: x[:, ::-2, 3:0:-1, 1::2],
    "roll of a flip": lambda x: F.roll(F.flip(x, (2, 3)), (1, 2), (1, 3)),
    "pad": lambda x: F.pad(x, (2, 2, 1, 1), "reflect"),
    "flip of a sum": lambda x: F.sum(F.flip(x, (1, 2, 3)), (1, 3)),
    "convolution of a flip": lambda x: F.flip(F.conv2d(F.flip(x, (1,)), np.ones((2, 6, 2, 3), "f4")), (1, 2)),
    "product": lambda x: F.matmul(F.flip(x, (3,)), F.permute(F.flip(x, (2,)), (0, 1, 3, 2))),
    "state of a scan": lambda x: F.cumsum(F.flip(x, (1,)), 1),
}


@pytest.mark.parametrize("batch_axis", [0, None])
def test_no_index_ends_in_a_constant_less_a_variable(batch_axis: int | None) -> None:
    """Each index that counts downwards is in parentheses: for the other form GCC 12.2 deletes loops."""
    x = ag.Input("x", (3, 6, 4, 5), batch_axis=batch_axis)
    found = 0
    for made in DESCENDING.values():
        text = c_of([x], [made(x)])
        for index in re.findall(r"\[([^]]*)\]", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
            found += " - " in index
            outside = re.sub(r"\([^()]*\)", "", index)
            assert " - " not in outside or re.fullmatch(r"\d+ - \w+", index), index
    assert found > len(DESCENDING)


@pytest.mark.parametrize("expr, text", PRINTED, ids=[text for _, text in PRINTED])
def test_expressions(expr: c.Expr, text: str) -> None:
    assert PRINTER.expression(expr) == text


def test_a_long_statement_is_cut_at_blanks() -> None:
    call = c.Call("kernel", tuple(c.Name(f"argument_{k}") for k in range(12)))
    lines = PRINTER.lines([c.For("i", c.number(3), (c.ExprStatement(call),))])
    assert lines[0] == "for (int32_t i = 0; i < 3; i++) {" and lines[-1] == "}"
    assert max(map(len, lines)) <= WIDTH - 4
    assert " ".join(line.strip() for line in lines[1:-1]) == PRINTER.expression(call) + ";"


CUTS = [
    ("xxxxxx = aaaaaaaaaa + bbbbbbbbbb;", ["xxxxxx =", "  aaaaaaaaaa + bbbbbbbbbb;"]),
    ("x = aaaaaaaaaaaaaaaaaa * bbbb + cccc * dddd;", ["x = aaaaaaaaaaaaaaaaaa * bbbb +", "  cccc * dddd;"]),
    ("x = f(aaaaaaaa, bbb * (c + d), eeeeeeee);", ["x = f(aaaaaaaa, bbb * (c + d),", "  eeeeeeee);"]),
    ("aaaaaaaaa[i * 10 + j] = bbb[k + 4] * ccccc;", ["aaaaaaaaa[i * 10 + j] =", "  bbb[k + 4] * ccccc;"]),
    ("aaaaaaaaaa(bbbbbbbbbbbb, ccc) ? ddd : eeee;", ["aaaaaaaaaa(bbbbbbbbbbbb, ccc) ?", "  ddd : eeee;"]),
    ("words that are not a formula, but prose here", ["words that are not a formula,", "  but prose here"]),
    ("static\0void\0ffffffffffff(int\0a, float\0*b)", ["static void ffffffffffff(int a,", "  float *b)"]),
    ("a" * 33 + " + b", ["a" * 33 + " +", "  b"]),
]


@pytest.mark.parametrize("text, lines", CUTS)
def test_where_a_long_line_is_cut(text: str, lines: list[str]) -> None:
    assert folded(text, 32, "  ") == lines


def test_a_block_that_is_all_of_a_loop_has_no_braces_of_its_own() -> None:
    body = (c.declare("float", "x", c.Literal("0.0f")), c.Assign(A, c.Name("x")))
    said = ["for (int32_t i = 0; i < 3; i++) {", "    float x = 0.0f;", "    a = x;", "}"]
    assert PRINTER.lines([c.For("i", c.number(3), body)]) == said
    assert PRINTER.lines([c.For("i", c.number(3), (c.Block((c.Block(body),)),))]) == said


VECTOR = c.Name("x")
AT = c.Element(VECTOR, c.Name("i"))
MAXIMUM = c.Template("({0} > {1} || {0} != {0}) ? {0} : {1}", (AT, AT), 0, (0, 0), ())
LEGEND: dict[str, tuple[c.Statement, str]] = {  # a statement, and how the legend of a file with it begins
    "a pointer": (c.Declare("float *", (("x", VECTOR),), True, "[8] memory of step 1"), "Beside a pointer"),
    "another pointer": (c.Declare("float *", (("x", VECTOR),), True, "read before it is overwritten"), ""),
    "a product": (c.Comment("y[2,4] = x[2,3] . w[3,4]", "1"), "In comments, a . b"),
    "a transpose": (c.Comment("y[2,4] = (x[4,2] + w)'", "1"), "In comments, x'"),
    "a possessive": (c.Comment("the layer's bias", "1"), ""),
    "a local value": (c.Comment("let a = x + w\ny[2,4] = a / exp(a)", "1"), "In comments, let"),
    "let in a line": (c.Comment("y[2,4] = let x", "1"), ""),
    "no product": (c.Comment("y[2,4] = x", "1"), ""),
    "blocks": (counted("i", 8, (), blocks=(c.BlockOperand("x_block", VECTOR, True, False),)), "AG_BLOCKS("),
    "registers": (counted("i", 8, (c.Array("float", "sums", 4, "0.0f"),), step=4), "A loop that moves"),
    "micro-batches": (counted("start", 8, (), step=4), ""),
    "an array of each element": (counted("i", 8, (c.Array("float", "sums", 4, "0.0f"),)), ""),
    "a maximum": (
        c.Assign(AT, c.Template("({0} > {1} || {0} != {0}) ? {0} : {1}", (AT, AT), 0, (0, 0), ())),
        "A maximum",
    ),
}


@pytest.mark.parametrize("case", LEGEND)
def test_a_file_explains_what_occurs_in_it(case: str) -> None:
    statement, begins = LEGEND[case]
    said = legend([(statement,)])
    assert (
        said.startswith(f"How to read this file:\n{begins}") and said.count("\n") == 1 if begins else not said
    )


@pytest.mark.parametrize("model", MODELS)
def test_a_file_explains_the_marks_in_its_comments(model: str) -> None:
    """Also the marks in comments of functions that steps have in common."""
    legends, others = [], []
    for comment in re.findall(r"/\*.*?\*/", source(model), re.DOTALL):
        (legends if comment.startswith("/* How to read") else others).append(comment)
    (explained,) = legends
    text = "\n".join(others)
    marks = {"a . b": r"[\w\])] \. [\w(]", "x'": r"[\w\])]'(?!\w)", "let": r"^ *(?:/\*|\*)[ \d.]* let "}
    occur = {mark for mark, pattern in marks.items() if re.search(pattern, text, re.MULTILINE)}
    assert {mark for mark in marks if f"In comments, {mark} " in explained} == occur


def test_comments_of_declarations_are_in_one_column() -> None:
    declared = [
        c.Declare("float *", ((name, c.Member("t", "arena")),), True, "[4]") for name in ("x", "longer")
    ]
    assert PRINTER.lines(declared) == [
        "float *const x = t->arena;      /* [4] */",
        "float *const longer = t->arena; /* [4] */",
    ]


def test_a_comment_for_which_the_column_leaves_no_room_is_above() -> None:
    notes = {"a_longer_name": "[4]", "x": "a" * 61, "y": "b" * 62}
    declared = [c.Declare("float *", ((name, c.Member("t", "arena")),), True, notes[name]) for name in notes]
    assert PRINTER.lines(declared) == [
        "float *const a_longer_name = t->arena; /* [4] */",
        f"float *const x = t->arena;             /* {notes['x']} */",
        f"/* {notes['y']} */",
        "float *const y = t->arena;",
    ]
