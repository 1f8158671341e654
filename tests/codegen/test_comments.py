"""Comments of generated steps: operands, transposes, shapes and factors agree with the call."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from step_comments import N, extents, steps

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.entries import entry_code
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.node import CONST, topological
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = re.compile(
    r"(?:for each of \[[\dn,]+\]: )?(?P<y>\w+)\[(?P<shape>[\dn,]+)\] (?P<op>=|\+=|-=) (?:(?P<alpha>[^ ]+) \* )?"
    r"(?P<a>\w+)(?P<a_part>\[[^]]*:[^]]*\])?\[(?P<a_shape>[\dn,]+)\](?P<a_t>'?) \. "
    r"(?P<b>\w+)(?P<b_part>\[[^]]*:[^]]*\])?\[(?P<b_shape>[\dn,]+)\](?P<b_t>'?)"
)

# The results of the contract's kernels, on matrices as they are stored.
KERNELS: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "gemm_nn": ("a", "b", lambda a, b: a @ b),
    "gemm_nt": ("a", "b", lambda a, b: a @ b.T),
    "gemm_tn": ("a", "b", lambda a, b: a.T @ b),
    "gemm_tt": ("a", "b", lambda a, b: a.T @ b.T),
    "gemv": ("a", "x", lambda a, x: a @ x),
    "gemv_t": ("a", "x", lambda a, x: a.T @ x),
    "ger": ("x", "y", lambda x, y: np.outer(x, y)),
}


def products() -> Program:
    """Products of matrices and vectors in every order of storage, one of them batched; too large to be inlined."""
    a, b, v = ag.Input("a", (24, 40)), ag.Input("b", (40, 30)), ag.Input("v", (1, 40))
    at, bt, s = ag.Input("at", (40, 24)), ag.Input("bt", (30, 40)), ag.Input("s", (2, 3, 24, 40))
    outs = [a @ b, a @ bt.T, at.T @ b, at.T @ bt.T, v @ b, v @ bt.T, a @ v.T, at.T @ v.T, v.T @ v]
    outs += [F.matmul(s, F.transpose(s, 2, 3))]
    return compile_function(ag.function([a, b, v, at, bt, s], outs, "p"), "p")


MODELS = ("mnist", "lenet", "gesture", "attention", "w1", "w3b8", "w6")


def arguments(call: c.Call) -> tuple[str, dict[str, c.Expr]]:
    kernel = call.function.removeprefix("ag_").removesuffix("_ref")
    return kernel.removesuffix("_f32"), dict(zip(CONTRACT[kernel].param_names, call.arguments, strict=True))


def size(expr: c.Expr) -> int:
    return int(eval("*".join(w.replace("n", str(N)) for w in c_query.words(expr))))


def name(expr: c.Expr) -> str:
    return c_query.words(expr)[0]


def check_product(comment: str, kernel: str, args: dict[str, c.Expr]) -> None:
    found = PRODUCT.fullmatch(comment)
    assert found, comment
    first, second, compute = KERNELS[kernel]
    m, n, k = (size(args[d]) if d in args else 0 for d in "mnk")
    stored = {
        "gemm_nn": ((m, k), (k, n)), "gemm_nt": ((m, k), (n, k)), "gemm_tn": ((k, m), (k, n)),
        "gemm_tt": ((k, m), (n, k)), "gemv": ((m, n), (n,)), "gemv_t": ((m, n), (m,)), "ger": ((m,), (n,)),
    }[kernel]  # fmt: skip
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype("float64") for shape in stored]
    said = []
    names = {name(args[first]), name(args[second])}
    assert {found["a"], found["b"]} == names, comment
    for side in "ab":
        # the operand of this name; where both have one name, of this size, and of two as large the left one first
        pair, sizes = [name(args[first]), name(args[second])], [a.size for a in arrays]
        shape = extents(found[f"{side}_shape"])
        if len(names) == 2:
            at = pair.index(found[side])
        else:
            at = "ab".index(side) if len({*sizes}) == 1 else sizes.index(int(np.prod(shape)))
        assert np.prod(shape) == sizes[at], comment
        if arrays[at].ndim == 2:
            assert shape == arrays[at].shape, comment
        if not comment.startswith("for each"):  # each has another offset
            begins = re.search(r"\b[1-9]\d*:", found[f"{side}_part"] or "")
            assert isinstance(args[(first, second)[at]], c.Binary) == (begins is not None), comment
        matrix = arrays[at].reshape(shape)
        said.append(matrix.T if found[f"{side}_t"] else matrix)
    value, expected = said[0] @ said[1], compute(*arrays)
    assert value.shape == extents(found["shape"]), comment
    assert (value.reshape(-1) == expected.reshape(-1)).all(), comment
    target = {"gemm": "c", "gemv": "y", "ger": "a"}[kernel.partition("_")[0]]
    assert name(args[target]) == found["y"], comment
    alpha = c_query.words(args["alpha"])[0]
    negative = alpha.startswith("-") or isinstance(args["alpha"], c.Unary)
    assert args["beta"] == c.Literal("0.0f" if found["op"] == "=" else "1.0f"), comment
    assert negative == (found["op"] == "-="), comment
    assert (found["alpha"] or "1.0") == alpha.removeprefix("-").removesuffix("f"), comment


def test_parts_are_those_that_a_product_reads() -> None:
    """The last step of a sequence; queries and keys that are side by side, one of them transposed."""
    x, w, qk = ag.Input("x", (4, 5, 8)), ag.Input("w", (8, 30)), ag.Input("qk", (24, 80))
    outs = [x[:, 4] @ w, qk[:, :40] @ qk[:, 40:].T]
    text = emit(compile_function(ag.function([x, w, qk], outs, "p"), "p"))["p.c"]
    for part, shape, offset in (("x[..., 4:5, :]", (4, 5, 8), 32), ("qk[..., 40:80]", (24, 80), 40)):
        name = part.partition("[")[0]
        assert part in text and f"{name} + {offset}," in text
        assert eval(part, {name: np.arange(np.prod(shape)).reshape(shape)}).flat[0] == offset
    assert "qk[..., 0:40][24,40] . qk[..., 40:80][24,40]'" in text


def test_a_call_has_no_mode_as_the_entry_has_one() -> None:
    """The running statistics, which the mode chooses, are not among the arguments that train_step shows."""
    net = nn.Sequential(nn.Linear(8, 12), nn.BatchNorm1d(12), nn.ReLU())
    model = ag.Model.supervised(net, (6, 8), nn.MSELoss(), optim.SGD(lr=0.1))
    (said,) = (text for text, _ in steps(compile_model(model, "net")) if "batch_norm(" in text)
    assert "= relu(batch_norm(layer0_out, weight=layer1_weight, bias=layer1_bias))" in said


@pytest.mark.parametrize("model", [*MODELS, "products"])
def test_calls(model: str) -> None:
    """Products are evaluated as their comment says and as the call does; other calls name every operand."""
    program = products() if model == "products" else compile_model(load_model(model)[0], model)
    checked = 0
    for comment, calls in steps(program):
        if len(calls) != 1 or "=" not in comment:
            continue
        kernel, args = arguments(calls[0])
        if kernel in KERNELS:
            if "\n" not in comment and PRODUCT.fullmatch(comment):
                check_product(comment, kernel, args)
                checked += 1
            else:
                assert " . " in comment, comment  # a row of a product inside a loop
        else:
            for p in CONTRACT[f"{kernel}_f32"].params:
                if p.is_pointer:
                    assert re.search(rf"\b{name(args[p.name])}\b", comment), (p.name, comment)
                    checked += 1
    assert checked > 3


def test_no_comment_is_cut() -> None:
    for model in MODELS:
        for comment, _ in steps(compile_model(load_model(model)[0], model)):
            assert "..." not in comment.replace("[..., ", "["), comment
            assert not re.search(r" by [a-z_0-9]+(, [a-z_0-9]+)*$", comment, re.MULTILINE), comment


X = ag.Input("x", (5, 3))
TIMES: dict[str, tuple[Callable[[], Any], str]] = {
    "a function": (lambda: _carried(lambda c, x: F.softmax(c + x, 0)), "softmax over 5 time steps: "),
    "operators": (lambda: _carried(lambda c, x: c * x), "5 time steps: "),
    "the other direction": (
        lambda: _carried(lambda c, x: F.relu(c * x), reverse=True),
        "relu over 5 time steps, from the last to the first: ",
    ),
}


def _carried(step: Callable[[Any, Any], Any], **options: Any) -> Any:
    return F.scan(lambda c, x: (step(c, x), None), X[0], X, **options)[0]


@pytest.mark.parametrize("case", TIMES)
def test_a_loop_over_time_says_what_it_repeats(case: str) -> None:
    make, said = TIMES[case]
    texts = [text for text, _ in steps(compile_function(ag.function([X], [make()]), "f"))]
    assert [text.startswith(said) for text in texts if "time steps" in text] == [True]


def test_a_recurrent_layer_and_its_gradient_say_the_cell() -> None:
    texts = [text for text, _ in steps(compile_model(load_model("gesture")[0], "gesture"))]
    assert [text.partition(":")[0] for text in texts if "time steps" in text] == [
        "gru_cell over 32 time steps",
        "gru_cell_backward over 32 time steps, from the last to the first",
        "gru_cell over 32 time steps",
    ]


@pytest.mark.parametrize("model", MODELS)
def test_local_values_are_called_as_in_the_loops(model: str) -> None:
    """Loops declare each value that the comment of their step defines, under the same name where that is free."""
    program = compile_model(load_model(model)[0], model)
    for entry in program.entries:
        nodes = [n for plan in entry.plan.all_plans() for n in topological(plan.graph.roots)]
        tables = {n.results[0]: "table" for n in nodes if n.op is CONST}
        for statements in entry_code(entry, program, tables, {}, {}).steps:
            comments = [n.text for n in c_query.nodes(statements) if isinstance(n, c.Comment)]
            defined = re.findall(r"^let (\w+) = ", "\n".join(comments), re.MULTILINE)
            declared = {n.name for n in c_query.nodes(statements) if isinstance(n, c.Array)}
            for n in c_query.nodes(statements):
                declared |= {word for word, _ in n.variables} if isinstance(n, c.Declare) else set()
            assert {word for word in defined if not word[-1:].isdigit()} <= declared


def one_line(comment: str) -> str:
    """A comment of generated C without the marks of its lines, and without shapes after names."""
    text = " ".join(re.sub(r"\n *\* ", "\n ", comment).split())
    return re.sub(r"(?<=[\w\]])\[[\dn,]+\]", "", text)


@pytest.mark.parametrize(("model", "least"), [("gesture", 3), ("lenet", 4), ("attention", 8), ("w6", 7)])
def test_a_function_says_in_its_words_what_its_callers_say(model: str, least: int) -> None:
    """With the arguments of a call in place of the parameters, its comment is the comment of the step."""
    text = emit(compile_model(load_model(model)[0], model, None, board.load("stm32"), ram=1 << 20))[
        f"{model}.c"
    ]
    heads = re.findall(
        r"^/\*((?:(?!\*/).)*?)[Ll]oops of .*?\*/\nstatic \w*?\s?void (\w+)\((.*?)\)", text, re.M | re.S
    )
    said = {
        name: (one_line(told).rstrip(" ;"), re.findall(r"(\w+)(?:,|$)", given)) for told, name, given in heads
    }
    assert len([told for told, _ in said.values() if told]) >= least
    for comment, body in re.findall(r"/\* [\d.]+ +((?:(?!\*/).)*) \*/((?:(?!/\* [\d.]+ ).)*)", text, re.S):
        for name, given in re.findall(r"^ +(\w+)\(([^()]*)\);", body, re.M):
            told, parameters = said.get(name, ("", []))
            arguments = [a.split("->")[-1] for a in re.split(r",\s+", given)]
            new = dict(zip(parameters, arguments, strict=True)) if told else {}
            words = re.sub(r"[A-Za-z_]\w*\b(?![(=])", lambda word: new.get(word[0], word[0]), told)  # noqa: B023
            assert not told or words == one_line(comment)


def test_the_readme_shows_what_is_generated() -> None:
    shown = (ROOT / "README.md").read_text().partition("```c\n")[2].partition("```")[0]
    model = load_model("mnist")[0]
    assert shown in emit(compile_model(model, "mnist", None, board.load("stm32")))["mnist.c"]


FORMULAS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], list[str]]] = {
    "one op": (lambda a: F.tanh(a), [(2, 3)], ["out = tanh(x0)"]),
    "precedence": (lambda a, b: (a + b) * a - b, [(2, 3), (2, 3)], ["out = (x0 + x1) * x0 - x1"]),
    "a transpose": (lambda a, b: a + b.T, [(2, 3), (3, 2)], ["out = x0 + x1'"]),
    "a permute": (
        lambda a: F.exp(a.permute(2, 0, 1)),
        [(2, 3, 4)],
        ["out = exp(permute(x0, (2, 0, 1)))"],
    ),
    "a slice": (lambda a: F.exp(a[:, 1:3]), [(2, 4)], ["out = exp(x0[..., 1:3])"]),
    "a sum over one axis": (lambda a: F.sum(a * a, 1), [(2, 40)], ["out = sum(x0 * x0, axis=1)"]),
    "a sum": (lambda a: F.sum(F.exp(a)), [(2, 40)], ["out = sum(exp(x0))"]),
    "an inlined product": (lambda a, b: a @ b.T, [(2, 3), (4, 3)], ["out = x0 . x1'"]),
    "an axis added last": (lambda a, b: a * b.reshape(3, 1), [(3, 4), (3,)], ["out = x0 * x1[:, None]"]),
    "a concatenation": (
        lambda a, b: F.cat([F.exp(b), F.cat([a, b])]),
        [(2, 3), (2, 3)],
        ["out = cat(exp(x1), x0, x1, axis=0)"],
    ),
    "padding": (
        lambda a: F.pad(a, (1, 2), value=1.0),
        [(2, 3)],
        ["out = assemble([..., 1:4] = x0, 1.0 elsewhere)"],
    ),
    "an attribute": (lambda a: F.leaky_relu(a, 0.25), [(2, 3)], ["out = leaky_relu(x0, 0.25)"]),
}


@pytest.mark.parametrize("case", FORMULAS)
def test_formulas(case: str) -> None:
    make, shapes, said = FORMULAS[case]
    xs = [ag.Input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    program = compile_function(ag.function(xs, [make(*xs)]), "f")
    comments = [re.sub(r"^(\w+?)\d*(\[[^]]*\])? =", "out =", text) for text, _ in steps(program) if text]
    assert comments == said


class Siamese(nn.Module):
    """One layer for both arguments of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 8)

    def forward(self, a, b):  # type: ignore[no-untyped-def]
        return F.cosine_similarity(self.fc(a), self.fc(b), 1)


def test_arguments_of_one_name_are_no_arguments_of_a_gradient() -> None:
    made = ag.Model.supervised(
        Siamese(),
        [ag.Input(name, (4, 6)) for name in ("a", "b")],
        nn.MSELoss(),
        optim.SGD(lr=0.1),
    )
    assert "cosine_similarity_backward" not in emit(compile_model(made, "m"))["m.c"]
