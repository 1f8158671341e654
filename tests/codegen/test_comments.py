"""Comments of generated steps: operands, transposes, shapes and factors agree with the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen import entries, formulas
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.entries import entry_code
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import CONST, OPS, Value, topological
from autodiff_gen.ir.origin import BACKWARD
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

ROOT = Path(__file__).resolve().parents[2]
N = 3  # of the batch
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


def steps(program: Program) -> Iterator[tuple[str, list[c.Call]]]:
    """Comments of steps with the kernel calls that follow them."""
    for entry in program.entries:
        nodes = [n for plan in entry.plan.all_plans() for n in topological(plan.graph.roots)]
        tables = {n.results[0]: "table" for n in nodes if n.op is CONST}
        for statements in entry_code(entry, program, tables, {}, {}).steps:
            comment, calls = "", []
            for node in c_query.nodes(statements):
                if isinstance(node, c.Comment) and node.step:
                    yield comment, calls
                    comment, calls = node.text, []
                elif isinstance(node, c.Call) and node.function.endswith("_f32_ref"):
                    calls.append(node)
            yield comment, calls


def arguments(call: c.Call) -> tuple[str, dict[str, c.Expr]]:
    kernel = call.function.removeprefix("ag_").removesuffix("_ref")
    return kernel.removesuffix("_f32"), dict(zip(CONTRACT[kernel].param_names, call.arguments, strict=True))


def extents(text: str) -> tuple[int, ...]:
    return tuple(int(d[:-1] or 1) * N if d.endswith("n") else int(d) for d in text.split(","))


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


# Formulas are true: evaluated line by line in NumPy they agree with the interpreter, except for constants, which
# comments show with the digits of a float32.
EVALUATED: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "softmax": (lambda a: [F.softmax(a, 1)], [(3, 5)]),
    "log_softmax and its gradient": (lambda a: _with_gradient(F.sum(F.log_softmax(a, 1) * a), a), [(3, 5)]),
    "layer norm": (
        lambda a, w, b: [F.layer_norm(a, (6,), w, b), *_with_gradient(F.sum(F.exp(a)), a)],
        [(4, 6), (6,), (6,)],
    ),
    "cross-entropy": (
        lambda a, b: [F.cross_entropy(a, F.argmax(b, 1))],
        [(3, 5), (3, 5)],
    ),
    "cross-entropy and its gradient": (
        lambda a, b: _with_gradient(F.cross_entropy(a * b, F.argmax(b, 1)), a),
        [(3, 5), (3, 5)],
    ),
    "the gradient of a cross-entropy in another step": (
        lambda a, b, w: _with_gradient(F.cross_entropy(a @ w, F.argmax(b, 1)), a),
        [(3, 2000), (3, 20), (2000, 20)],
    ),
    "nll_loss of log-probabilities and its gradient": (
        lambda a, b: _with_gradient(F.nll_loss(F.log_softmax(a * b, 1), F.argmax(b, 1), reduction="sum"), a),
        [(3, 5), (3, 5)],
    ),
    "cross-entropy of other options": (
        lambda a, b: [F.cross_entropy(a, F.argmax(b, 1), label_smoothing=0.25, reduction="sum")],
        [(3, 5), (3, 5)],
    ),
    "batch norm and its gradient": (
        lambda a, w, b: [
            y := F.relu(F.batch_norm(a, None, None, w, b, eps=0.25)),
            *ag.grad(F.sum(y * a), [a, w, b]),
        ],
        [(6, 4), (4,), (4,)],
    ),
    "layer norm and its gradient": (
        lambda a, w, b: [y := F.layer_norm(a * b, (6,), w, b), *ag.grad(F.sum(F.exp(y) * a), [a, w, b])],
        [(4, 6), (6,), (6,)],
    ),
    "rms norm and its gradient": (
        lambda a, w: [y := F.rms_norm(a, (6,), w), *ag.grad(F.sum(F.exp(y) * a), [a, w])],
        [(4, 6), (6,)],
    ),
    "a layer norm in a residual block": (
        lambda a, w, b: ag.grad(F.sum(F.exp(F.layer_norm(h := a * b, (6,), w, b)) * w + F.exp(h)), [a]),
        [(4, 6), (6,), (6,)],
    ),
    "a softmax and its gradient": (
        lambda a: [y := F.softmax(a, 1), *ag.grad(F.sum(y * y * a), [a])],
        [(3, 5)],
    ),
    "a softmax of images along the channels": (lambda a: [F.softmax(a * 2.0, 1)], [(2, 4, 3, 3)]),
    "a mean of squares": (lambda a: [F.mse_loss(F.tanh(a), a), F.mean(a * a, 0)], [(3, 4)]),
    "clamps": (
        lambda a, b: [F.where(a < b, a * 2.0, b), F.relu(a - b), F.abs(a) + F.sqrt(F.exp(b))],
        [(2, 3)] * 2,
    ),
    "transposes and slices": (lambda a, b: [a[:, 1:4] * b.T[::2, :3] - F.tanh(a[:, :3])], [(2, 4), (5, 4)]),
    "permutes": (lambda a, b: [F.exp(a.permute(2, 0, 1)) * b], [(2, 3, 4), (4, 2, 3)]),
    "a result in another order that another one needs": (
        lambda a, b: [F.exp(a).permute(0, 2, 1).reshape(8, 2) @ b, F.tanh(F.exp(a))],
        [(2, 2, 4), (2, 3)],
    ),
    "sums over axes": (lambda a: [F.sum(a * a, (0, 2)), F.sum(a, 1) * 2.0, F.mean(a)], [(2, 3, 4)]),
    "parts that are joined": (
        lambda a, b: [F.cat([F.exp(a), b * 2.0, a[:, :1]], 1), F.stack([F.tanh(a), b])],
        [(2, 3), (2, 3)],
    ),
    "an inlined product": (lambda a, b: [F.sigmoid(a @ b.T) - 1.0], [(3, 4), (2, 4)]),
    "an axis added last": (lambda a, b: [(a + b.reshape(3, 1)) / (a * a + 1.0)], [(3, 4), (3,)]),
    "a polynomial that is needed twice": (
        lambda a, b: [F.tanh(p := a * b * (a + 1.0) * (b - 2.0) + a / b - b / a + a * a * b) * p - F.exp(p)],
        [(3, 4)] * 2,
    ),
    "a result that another one needs": (
        lambda a, b: [s := F.sum(F.exp(a - b) * a + b * b * a, 1, keepdim=True), F.log(s) * a - b / s * s],
        [(3, 40)] * 2,
    ),
    "a difference of differences": (lambda a, b: [a - (b - a) - (a - (b - 1.0)), a / (b / a)], [(3, 4)] * 2),
}


def _with_gradient(y: Any, x: Any) -> list[Any]:
    return [y, *ag.grad(y, [x])]


def several(axes: int | tuple[int, ...]) -> tuple[int, ...]:
    return axes if isinstance(axes, tuple) else (axes,)


MATHS: dict[str, Any] = {
    **{f: getattr(np, f) for f in ("exp", "log", "sqrt", "tanh", "square", "abs", "where")},
    "permute": np.transpose,
    "cat": lambda *x, axis: np.concatenate(x, axis),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "sum": lambda x, axis=None: np.sum(x, axis=axis, keepdims=True),
    "amax": lambda x, axis=None: np.max(x, axis=axis, keepdims=True),
    "standardize": lambda *x, eps: OPS["standardize"].ref(*x[:-1], axes=several(x[-1]), eps=eps)[0],
    "softmax": lambda x, axis: OPS["softmax"].ref(x, axes=several(axis)),
    "log_softmax": lambda x, axis: OPS["log_softmax"].ref(x, axes=several(axis)),
    "max_with_index_at": lambda x, axis: np.argmax(x, axis=axis, keepdims=True),
}


def applied(function: str) -> Callable[..., Any]:
    """A function of the library on arrays."""

    def call(*args: Any, **options: Any) -> Any:
        given: dict[Any, Any] = {}

        def operand(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            dtype = "f32" if x.dtype.kind == "f" else "s32"
            if dtype == "s32" and x.shape[-1:] == (1,):  # of a reduction, whose axis is kept here
                x = x[..., 0]
            v = ag.Input(f"a{len(given)}", x.shape, dtype)
            given[v] = x
            return v

        made = getattr(F, function)(*map(operand, args), **{k: operand(x) for k, x in options.items()})
        (value,) = evaluate([made], given, float_dtype="float64")
        return value

    return call


MATHS = {name: applied(name) for name in F.__all__} | MATHS


def backward(made: list[Value], arrays: dict[Value, Any]) -> dict[str, Callable[..., Any]]:
    """By `f_backward`, for each function f of the library that one call used: the gradient of its first
    argument for a gradient of its result."""
    calls = {n.origin.result_of: n.results[0] for n in topological(made) if n.origin.phase != BACKWARD}

    def gradient(y: Value, x: Value) -> Callable[..., Any]:
        d_y = ag.Input("d_y", y.shape)

        def call(d: Any, *_: Any) -> Any:
            return evaluate(
                [ag.grad(y, x, d_y)], arrays | {d_y: np.reshape(d, y.shape)}, float_dtype="float64"
            )[0]

        return call

    first = {call: next(iter(call.given.values()), None) for call in calls if call is not None}
    known = {call: x for call, x in first.items() if isinstance(x, Value)}
    return {f"{call.function}_backward": gradient(calls[call], x) for call, x in known.items()}


def values(program: Program) -> dict[str, Value]:
    """The stored results of the first entry's steps, by name."""
    entry = program.entries[0]
    nodes = [n for plan in entry.plan.all_plans() for n in topological(plan.graph.roots)]
    body = entries._body(entry, program, {n.results[0]: "table" for n in nodes if n.op is CONST}, {})
    return {body.bare(body.place(r)): r for step in entry.plan.steps for r in step.node.results}


@pytest.mark.parametrize("longest", [1, formulas.LONGEST, 1000])
@pytest.mark.parametrize("case", EVALUATED)
def test_formulas_are_true(case: str, longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Divided wherever a local value has a name, where they are long, and nowhere."""
    monkeypatch.setattr(formulas, "LONGEST", longest)
    make, shapes = EVALUATED[case]
    xs = [ag.Input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    made = make(*xs)
    program = compile_function(ag.function(xs, made), "f")
    graph = program.entries[0].plan.graph
    rng = np.random.default_rng(1)
    arrays = {x: rng.uniform(0.5, 2.0, x.type.shape) for x in graph.inputs}
    maths = MATHS | backward(made, {x: arrays[v] for x in xs for v in arrays if v.name == x.name})
    roots = list(graph.outputs.values())
    expected = dict(zip(graph.outputs, evaluate(roots, arrays, float_dtype="float64"), strict=True))
    known: dict[str, Any] = {x.name: a for x, a in arrays.items()}
    stored = values(program)
    computed = evaluate(list(stored.values()), arrays, float_dtype="float64")
    truth = dict(zip(stored, computed, strict=True))
    for text, _ in steps(program):
        for line in filter(None, text.split("\n")):
            line = line.partition(formulas.SAVED)[0]
            line, _, saved = line.partition(formulas.SAVES)
            known |= {name: truth[name] for name in re.findall(r"(\w+)(?:\[[\dn,]*\])?(?:, |$)", saved)}
            assert " = " in line, f"not a formula: {line}"
            left, _, right = line.partition(" = ")
            name, _, shape = left.rstrip("]").partition("[")
            right = re.sub(r"(?<=\w)\[\d+(,\d+)*\]", "", right)  # shapes of a kernel's factors
            value = eval(right.replace("'", ".T").replace(" . ", " @ "), dict(maths), known)
            if name.startswith(formulas.LET):
                known[name.removeprefix(formulas.LET)] = value
                continue
            dims = extents(shape) if shape else ()
            fits = np.size(value) == np.prod(dims)
            known[name] = np.reshape(value, dims) if fits else np.broadcast_to(value, dims)
            np.testing.assert_allclose(
                known[name].reshape(-1), truth[name].reshape(-1), rtol=1e-6, atol=1e-6, err_msg=line
            )
    for name, array in expected.items():
        np.testing.assert_allclose(
            known[name].reshape(array.shape), array, rtol=1e-6, atol=1e-6, err_msg=name
        )


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
