"""The formulas in comments of generated steps are true."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from step_comments import extents, steps

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen import entries, formulas
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import CONST, OPS, Value, topological
from autodiff_gen.ir.origin import BACKWARD

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
