"""Every op x sample of the registry: shapes, values, and gradients against finite differences and PyTorch, in
the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases import (
    DIFFERENTIABLE,
    EDGES,
    GRADIENT_ROWS,
    INTERNAL,
    ROWS,
    SAMPLED,
    case,
    edge_error,
    gradient_error,
    row_id,
    torch_outputs,
)  # fmt: skip

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.dtypes import Dim, Type, bound, dtype, f32, s32
from autodiff_gen.errors import ShapeError
from autodiff_gen.interpret import evaluate
from autodiff_gen.ir import apply, apply_node, make_input
from autodiff_gen.op import OPS, Call, Elementwise, Op, Reduce, register
from autodiff_gen.ops.avg_pooling import averaging
from autodiff_gen.ops.convolution import convolving
from autodiff_gen.ops.depthwise import depthwise
from autodiff_gen.ops.max_pooling import pooling

TOLERANCE = 1e-7  # of float64 gradients against central differences with steps of 1e-6


NOT_IN_TORCH = {"rand_u32"}  # held to runtime/ag_rng.h by test_ops_c.py, and that to its twin by test_rng.py


def test_every_op_has_samples_and_a_torch_expression() -> None:
    for name in SAMPLED:
        assert OPS[name].samples, f"{name} has no samples"
        assert OPS[name].torch or name in NOT_IN_TORCH, f"{name} has no PyTorch expression"
    for name in INTERNAL & set(OPS):
        assert OPS[name].vjp is None


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ValueError, match="'exp' is registered twice"):
        register(OPS["exp"])


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_reference_has_the_inferred_type(row: tuple[str, int]) -> None:
    c = case(*row)
    raw = c.op.ref(*c.arrays, **c.sample.attrs)
    for out, value in zip(raw if isinstance(raw, tuple) else (raw,), c.outs, strict=True):
        assert np.shape(out) == value.shape
        assert np.asarray(out).dtype.kind == value.dtype.kind


@pytest.mark.parametrize("row", GRADIENT_ROWS, ids=row_id)
def test_gradient_against_finite_differences(row: tuple[str, int]) -> None:
    c = case(*row)
    xs = [c.inputs[i] for i in c.wanted]
    if c.op.name != "detach":
        assert gradient_error(c.weighted(), c.feeds, xs) < TOLERANCE


@pytest.mark.parametrize("row", GRADIENT_ROWS, ids=row_id)
def test_gradient_where_every_input_is_used_twice(row: tuple[str, int]) -> None:
    c = case(*row)
    xs = [c.inputs[i] for i in c.wanted]
    if c.op.name != "detach":
        y = c.weighted() + 3.0 * c.weighted(c.again())
        assert gradient_error(y, c.feeds, xs) < TOLERANCE


OF_ONE_SHAPE = [
    name
    for name in DIFFERENTIABLE
    if len(OPS[name].samples[0].inputs) == 2
    and not OPS[name].samples[0].dtypes
    and not isinstance(OPS[name].lower, Call)
]


@pytest.mark.parametrize("name", OF_ONE_SHAPE)
def test_gradient_where_both_operands_are_one_value(name: str) -> None:
    low, high = OPS[name].samples[0].domain
    x, dy = make_input("x", Type(f32, (2, 2))), make_input("dy", Type(f32, (2, 2)))
    rng = np.random.default_rng(1)
    feeds = {x: rng.uniform(low, high, (2, 2)), dy: rng.uniform(0.5, 1.5, (2, 2))}
    y = F.sum(apply(name, x, x) * dy)
    assert gradient_error(y, feeds, [x]) < TOLERANCE


@pytest.mark.parametrize("row", EDGES, ids=lambda r: r[0])
def test_edges(row: Any) -> None:
    assert edge_error(row) < 1e-6


@pytest.mark.parametrize("row", GRADIENT_ROWS, ids=row_id)
def test_only_wanted_gradients_are_built(row: tuple[str, int]) -> None:
    c = case(*row)
    assert c.op.vjp is not None
    dys = [v if v.dtype.kind == "f" else None for v in c.outs]
    for k in range(len(c.inputs)):
        wanted = [i == k for i in range(len(c.inputs))]
        found = c.op.vjp(dys, c.inputs, c.outs, c.sample.attrs, wanted)
        assert len(found) == len(c.inputs)
        assert all(g is None for g, want in zip(found, wanted, strict=True) if not want)


# Shapes that follow the batch: operands (n is the batch extent), attributes.
n = Dim(1, 4)
BATCHED: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((name, [(n, 3), (3,)], {}) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "lt", "eq")),
    *((name, [(n, 3)], {}) for name in ("exp", "relu", "sigmoid", "tanh", "square", "to_s32")),
    ("add", [(n, 3), (n, 1)], {}),
    ("matmul", [(n, 3), (3, 2)], {}),
    ("matmul", [(3, n), (n, 2)], {}),
    ("matmul", [(n, 2, 3), (n, 3, 2)], {}),
    ("softplus", [(n, 3)], {"threshold": 20.0}),
    ("hardtanh", [(n, 3)], {"min_val": 0.0, "max_val": 1.0}),
    ("gelu", [(n, 3)], {}),
    ("round", [(n, 3)], {}),
    ("prod", [(n, 3)], {"axes": (1,), "keepdim": True}),
    ("prod", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("sum", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("sum", [(n, 3)], {"axes": (1,), "keepdim": True}),
    ("sum", [(n, 3)], {"axes": (0, 1), "keepdim": False}),
    ("amax", [(n, 3)], {"axes": (0,), "keepdim": True}),
    ("max_with_index", [(n, 3)], {"axes": (0,), "keepdim": False}),
    ("max_with_index", [(n, 3)], {"axes": (1,), "keepdim": False}),
    ("reshape", [(n, 6)], {"shape": (n, 2, 3)}),
    ("reshape", [(n, 6)], {"shape": (Dim(6, 4),)}),
    ("permute", [(n, 3)], {"dims": (1, 0)}),
    ("broadcast_to", [(3,)], {"shape": (n, 3)}),
    ("pick", [(n, 3), ((n,), "u8")], {}),
    ("avg_pool2d", [(n, 4, 5, 3)], averaging((2, 2), (2, 1))),
    ("gather", [(n, 5), ((n, 2), "u8")], {"dim": 1}),
    ("index_select", [(5, 2), ((n, 3), "s32")], {"dim": 0}),
    ("index_select", [(n, 5), ((2,), "u8")], {"dim": 1}),
    ("scatter_sum", [((n, 4), "s32"), (n, 4)], {"dim": 1, "size": 3}),
    ("index_sum", [((n, 2), "s32"), (n, 2, 3)], {"dim": 0, "size": 4}),
    ("cumsum", [(n, 3)], {"dim": 0, "reverse": True}),
    ("cumsum", [(n, 3, 2)], {"dim": 1, "reverse": False}),
    ("slice", [(n, 5)], {"shape": (n, 2), "starts": (0, 4), "steps": (1, -2)}),
    ("slice", [(4, n)], {"shape": (3, n), "starts": (1, 0), "steps": (1, 1)}),
    (
        "assemble",
        [(n, 3), (n, 2)],
        {"shape": (n, 6), "starts": ((0, 3), (0, 0)), "steps": ((1, 1), (1, 1)), "fill": 0.5},
    ),
    ("max_pool2d", [(n, 4, 5, 3)], pooling((2, 2), (2, 1))),
    ("conv2d", [(n, 4, 5, 2), (4, 3, 2, 1)], convolving((2, 1), (1, 0, 0, 2), groups=2)),
    ("conv2d_dx", [(n, 2, 3, 4), (4, 3, 2, 2)], convolving() | {"size": (4, 4)}),
    ("conv2d_dw", [(n, 4, 4, 2), (n, 2, 3, 4)], convolving() | {"kernel": (3, 2)}),
    ("depthwise2d", [(n, 4, 5, 2), (3, 2, 2)], depthwise((2, 1))),
    ("depthwise2d_dw", [(n, 4, 4, 2), (n, 2, 3, 2)], depthwise() | {"kernel": (3, 2)}),
]


@pytest.mark.parametrize("rows", [1, 3, 4])
@pytest.mark.parametrize("name, operands, attrs", BATCHED)
def test_batch_of_any_size(name: str, operands: list[Any], attrs: dict[str, Any], rows: int) -> None:
    """A graph over n equals the graph over that many rows, value and gradient."""
    rng = np.random.default_rng(rows)

    def build(size: int | None) -> tuple[list[Any], list[Any]]:
        fixed = (lambda s: s) if size is None else (lambda s: bound(s, size))
        inputs = []
        for i, operand in enumerate(operands):
            shape, kind = operand if isinstance(operand[-1], str) else (operand, "f32")
            inputs.append(make_input("ab"[i], Type(dtype(kind), fixed(shape))))
        settled = {k: fixed(v) if k == "shape" else v for k, v in attrs.items()}
        y = apply_first(name, inputs, settled)
        xs = [v for v in inputs if v.dtype.kind == "f"]
        gradients = grad(F.sum(F.square(y)), xs) if y.dtype.kind == "f" else []
        return inputs, [y, *gradients]

    inputs, free = build(None)
    plain, fixed = build(rows)
    arrays = [
        rng.integers(0, 3, v.shape) if v.dtype.kind != "f" else rng.uniform(0.5, 2.0, v.shape) for v in plain
    ]
    got = evaluate(free, dict(zip(inputs, arrays, strict=True)), n=rows)
    want = evaluate(fixed, dict(zip(plain, arrays, strict=True)))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def apply_first(name: str, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    return apply_node(name, *inputs, **attrs).results[0]


# op, operand types, attributes, part of the message
REFUSED: list[tuple[str, list[Type], dict[str, Any], str]] = [
    (
        "add",
        [Type(f32, (2, 3)), Type(f32, (4,))],
        {},
        r"add\(a: f32\[2,3\], b: f32\[4\]\): shapes .* do not broadcast",
    ),
    ("add", [Type(f32, (2,)), Type(s32, (2,))], {}, "dtypes differ; convert with F.to"),
    ("add", [Type(dtype("u8"), (2,)), Type(dtype("u8"), (2,))], {}, "needs floats, s32 or u32, not u8"),
    ("add", [Type(f32, (Dim(1, 4),)), Type(f32, (4,))], {}, "do not broadcast: n against 4"),
    ("exp", [Type(s32, (2,))], {}, "needs a float, not s32"),
    ("where", [Type(f32, (2,)), Type(f32, (2,)), Type(f32, (2,))], {}, "the condition must be a mask"),
    ("logical_and", [Type(f32, (2,)), Type(f32, (2,))], {}, "needs masks"),
    ("sum", [Type(f32, (2, 3))], {"axes": (2,), "keepdim": False}, "axis 2 is out of range for 2 axes"),
    ("sum", [Type(f32, (2, 3))], {"axes": (0, 0), "keepdim": False}, "an axis is named twice"),
    ("sum", [Type(dtype("bool"), (2,))], {"axes": (0,), "keepdim": False}, "needs a float, not bool"),
    ("max_with_index", [Type(f32, (2, 3))], {"axes": (0, 1), "keepdim": False}, "needs one axis"),
    ("prod", [Type(f32, (2, 3))], {"axes": (0, 1), "keepdim": False}, "needs one axis"),
    ("gelu", [Type(s32, (2,))], {}, "needs a float, not s32"),
    ("hardtanh", [Type(s32, (2,))], {"min_val": 0.0, "max_val": 1.0}, "needs a float, not s32"),
    ("floor", [Type(dtype("u8"), (2,))], {}, "needs a float, not u8"),
    (
        "matmul",
        [Type(f32, (2, 3)), Type(f32, (4, 5))],
        {},
        "the inner extents differ: 3 columns against 4 rows",
    ),
    ("pick", [Type(f32, (2, 3)), Type(f32, (2,))], {}, "the index must be of an integer dtype, not f32"),
    (
        "pick",
        [Type(f32, (2, 3)), Type(s32, (3,))],
        {},
        "the index must have the first operand's shape less its last",
    ),
    ("avg_pool2d", [Type(f32, (2, 3, 4))], averaging((2, 2), (2, 2)), r"needs 4 axes, \[n, h, w, c\], not 3"),
    ("avg_pool2d", [Type(s32, (1, 4, 4, 1))], averaging((2, 2), (2, 2)), "needs a float, not s32"),
    (
        "avg_pool2d",
        [Type(f32, (1, Dim(1, 4), 4, 1))],
        averaging((2, 2), (2, 2)),
        "only the first axis may be the batch axis",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((5, 2), (1, 1)),
        "a window of 5 does not fit into 4 with padding 0 and 0 along the height",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((2, 2), (0, 1)),
        r"stride=\(0, 1\): must be integers of at",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((2, 2), (1, 1), (2, 0, 0, 0)),
        r"padding=\(2, 0, 0, 0\) is more than half of kernel_size=\(2, 2\)",
    ),
    (
        "avg_pool2d_dx",
        [Type(f32, (1, 2, 3, 1))],
        {**averaging((2, 2), (2, 2)), "size": (4, 4)},
        r"the gradient of an image of \[4, 4\] has \[2, 2\] windows",
    ),
    *(
        ("conv2d", [Type(f32, x), Type(f32, w)], attrs, message)
        for x, w, attrs, message in (
            (
                (1, 4, 4, 3),
                (2, 3, 3, 2),
                convolving(),
                r"the image has 3 channels, the weights are for 2 \(groups=1\)",
            ),
            (
                (1, 4, 4, 4),
                (2, 3, 3, 2),
                convolving(),
                r"the image has 4 channels, the weights are for 2 \(groups=1\)",
            ),
            (
                (1, 4, 4, 4),
                (3, 3, 3, 2),
                convolving(groups=2),
                "groups=2 must divide the 4 input channels and the 3 output",
            ),
            ((1, 4, 4, 4), (3, 3, 3, 2), convolving(groups=0), "groups=0 must divide"),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(dilation=(1, 2)),
                "a window of 5 does not fit into 4 .* along the width",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(dilation=(1, 0)),
                r"dilation=\(1, 0\): must be integers of at least 1",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(padding=(0, -1, 0, 0)),
                r"padding=\(0, -1, 0, 0\): must be",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3),
                convolving(),
                r"the weights need 4 fixed axes, \[o, kh, kw, c / groups\]",
            ),
            ((Dim(1, 4), 4, 4, 1), (Dim(1, 4), 3, 3, 1), convolving(), "the weights need 4 fixed axes"),
            ((1, 4, 4), (2, 3, 3, 1), convolving(), r"needs 4 axes, \[n, h, w, c\], not 3"),
        )
    ),
    ("conv2d", [Type(f32, (1, 4, 4, 1)), Type(s32, (1, 1, 1, 1))], convolving(), "dtypes differ"),
    (
        "conv2d_dx",
        [Type(f32, (1, 2, 2, 3)), Type(f32, (3, 2, 2, 1))],
        {**convolving(), "size": (4, 4)},
        r"the result for an image of \[4, 4\] is \[n, 3, 3, 3\]",
    ),
    (
        "conv2d_dw",
        [Type(f32, (2, 3, 3, 1)), Type(f32, (1, 2, 2, 1))],
        {**convolving(), "kernel": (2, 2)},
        "2 images against 1 gradients",
    ),
    (
        "depthwise2d",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (2, 2, 3))],
        depthwise(),
        r"the weights must be \[kh, kw, 2\]",
    ),
    (
        "depthwise2d_dx",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (2, 2, 2))],
        {**depthwise(), "size": (3, 3)},
        r"the result for an image of \[3, 3\] is \[n, 2, 2, 2\]",
    ),
    (
        "depthwise2d_dw",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (1, 2, 2, 1))],
        {**depthwise(), "kernel": (2, 2)},
        "images and channels of both operands must be as many",
    ),
    (
        "max_pool2d",
        [Type(f32, (1, 40, 40, 1))],
        pooling((17, 16), (1, 1)),
        "a window of 17 x 16 elements is larger than 256; pool along one axis, then along the other",
    ),
    (
        "max_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        pooling((3, 3), (1, 1), (2, 2, 0, 0)),
        r"padding=\(2, 2, 0, 0\) is more than half of a window, which spans 3",
    ),
    (
        "max_pool2d_dx",
        [Type(f32, (1, 2, 2, 1)), Type(dtype("u8"), (1, 1, 1, 1))],
        {**pooling((2, 2), (2, 2)), "size": (4, 4)},
        r"the index must be u8 of shape \[1, 2, 2, 1\]",
    ),
    (
        "max_pool2d_pick",
        [Type(f32, (1, 4, 4, 1)), Type(s32, (1, 2, 2, 1))],
        pooling((2, 2), (2, 2)),
        r"the index must be u8 of shape \[1, 2, 2, 1\]",
    ),
    ("reshape", [Type(f32, (2, 3))], {"shape": (4,)}, r"6 elements do not fill the shape \[4\]"),
    ("permute", [Type(f32, (2, 3))], {"dims": (0, 0)}, "is no permutation of 2 axes"),
    ("broadcast_to", [Type(f32, (2, 3))], {"shape": (2, 4)}, "do not broadcast|cannot be broadcast"),
    ("gather", [Type(f32, (2, 3)), Type(f32, (2, 1))], {"dim": 1}, "must be of an integer dtype, not f32"),
    (
        "gather",
        [Type(f32, (2, 3)), Type(s32, (1, 1))],
        {"dim": 1},
        "the first operand's extents, but for axis 1",
    ),
    ("gather", [Type(f32, (n, 3)), Type(s32, (2, 3))], {"dim": 0}, "axis 0 is the batch axis"),
    ("index_select", [Type(f32, (2, 3)), Type(s32, (2,))], {"dim": 2}, "dim=2 is out of range for 2 axes"),
    ("index_select", [Type(f32, (n, 3)), Type(s32, (n,))], {"dim": 1}, "both follow the batch"),
    (
        "scatter_sum",
        [Type(dtype("u8"), (2,)), Type(f32, (2,))],
        {"dim": 0, "size": 2},
        "must be of s32, not u8",
    ),
    ("scatter_sum", [Type(s32, (2,)), Type(f32, (3,))], {"dim": 0, "size": 2}, "must have the same shape"),
    (
        "scatter_sum",
        [Type(s32, (2,)), Type(s32, (2,))],
        {"dim": 0, "size": 2},
        "needs floats to add, not s32",
    ),
    (
        "index_sum",
        [Type(s32, (2,)), Type(f32, (3, 2))],
        {"dim": 0, "size": 2},
        "the values' extents from axis 0 on",
    ),
    (
        "index_sum",
        [Type(s32, (n,)), Type(f32, (2, n))],
        {"dim": 1, "size": 3},
        "the batch axis must come first",
    ),
    ("cumsum", [Type(f32, (2, n))], {"dim": 0, "reverse": False}, "the batch axis must come first"),
    *(
        ("slice", [Type(f32, (5,))], {"shape": (taken,), "starts": (start,), "steps": (step,)}, "has no")
        for taken, start, step in ((4, 2, 1), (0, 0, 1), (2, -1, 1), (3, 3, -2), (2, 0, 0))
    ),
    (
        "slice",
        [Type(f32, (5,))],
        {"shape": (1, 1), "starts": (0,), "steps": (1,)},
        "a window of .* needs 1 extents",
    ),
    ("slice", [Type(f32, (n,))], {"shape": (n,), "starts": (0,), "steps": (-1,)}, "can only be taken whole"),
    (
        "assemble",
        [Type(f32, (2,)), Type(f32, (2,))],
        {"shape": (4,), "starts": ((0,), (1,)), "steps": ((1,), (1,)), "fill": 0.0},
        "parts 0 and 1 overlap",
    ),
]


@pytest.mark.parametrize("name, types, attrs, message", REFUSED)
def test_wrong_operands_are_refused_in_one_line(
    name: str, types: list[Type], attrs: dict[str, Any], message: str
) -> None:
    inputs = [make_input("abc"[i], t) for i, t in enumerate(types)]
    with pytest.raises(ShapeError, match=message) as caught:
        apply_first(name, inputs, attrs)
    assert str(caught.value).startswith(f"{name}(") and "\n" not in str(caught.value)


# With PyTorch


def tensors(c: Any, kind: Any) -> list[Any]:
    import torch

    floats = [
        torch.tensor(a.astype(kind), requires_grad=True) if a.dtype.kind == "f" else None for a in c.arrays
    ]
    return [t if t is not None else torch.tensor(a) for t, a in zip(floats, c.arrays, strict=True)]


def as_numpy(t: Any) -> Any:
    return t.detach().numpy(force=True)


@pytest.mark.torch
@pytest.mark.parametrize("kind, rtol", [("float64", 1e-12), ("float32", 2e-6)])
@pytest.mark.parametrize("row", [r for r in ROWS if r[0] not in NOT_IN_TORCH], ids=row_id)
def test_values_against_torch(row: tuple[str, int], kind: str, rtol: float) -> None:
    c = case(*row)
    want = torch_outputs(c.op, tensors(c, kind), c.sample.attrs)
    got = evaluate(c.outs, dict(zip(c.inputs, c.arrays, strict=True)), float_dtype=kind)
    assert len(want) == len(got)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, as_numpy(b), rtol=rtol, atol=rtol)


@pytest.mark.torch
@pytest.mark.parametrize("row", GRADIENT_ROWS, ids=row_id)
def test_gradients_of_both_orders_against_torch(row: tuple[str, int]) -> None:
    """The gradient of each input; then the gradient of sum(gradient * v), a Hessian-vector product, v =
    cos(1), cos(2), ..."""
    import torch

    c = case(*row)
    if c.op.name == "detach":
        return
    ts = tensors(c, "float64")
    leaves = [ts[i] for i in c.wanted]
    outs = [t for t in torch_outputs(c.op, ts, c.sample.attrs) if t.dtype.is_floating_point]
    y = sum((t * torch.tensor(dy, dtype=torch.float64)).sum() for t, dy in zip(outs, c.dys, strict=True))
    want = torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
    assert all(w is not None for w in want), "PyTorch has no gradient for an operand for which we have one"

    xs = [c.inputs[i] for i in c.wanted]
    first = grad(c.weighted(), xs)
    vs = [np.cos(1.0 + np.arange(max(1, np.prod(x.shape)))).reshape(x.shape) for x in xs]
    product: Any = 0.0
    for g, v in zip(first, vs, strict=True):
        product = F.sum(g * v.astype(np.float32)) + product
    got = evaluate([*first, *grad(product, xs)], c.feeds, float_dtype="float64")

    hv = sum(
        (w * torch.tensor(v.astype(np.float32), dtype=torch.float64)).sum()
        for w, v in zip(want, vs, strict=True)
    )
    second: list[Any] = [None] * len(leaves)
    if isinstance(hv, torch.Tensor) and hv.requires_grad:
        second = list(torch.autograd.grad(hv, leaves, allow_unused=True))
    both = [as_numpy(w) for w in want] + [
        np.zeros(x.shape) if w is None else as_numpy(w) for w, x in zip(second, xs, strict=True)
    ]
    for a, b in zip(got, both, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("row", EDGES, ids=lambda r: r[0])
def test_the_table_of_edges_is_torchs(row: Any) -> None:
    import torch

    name, operands, attrs, value, gradients = row
    if name == "detach":
        return
    ts = [torch.tensor(np.asarray(a, dtype=np.float64), requires_grad=True) for a in operands]
    y = torch_outputs(OPS[name], ts, attrs)[0]
    np.testing.assert_allclose(as_numpy(y), np.asarray(value), rtol=1e-12)
    for t, want in zip(torch.autograd.grad(y.sum(), ts), gradients, strict=True):
        np.testing.assert_allclose(as_numpy(t), np.asarray(want), rtol=1e-12)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, -0.5], dtype=np.float32)


def special_operands(op: Op) -> list[Any]:
    """Every pair of special numbers, or each of them."""
    if len(op.samples[0].inputs) == 1:
        return [SPECIAL]
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    return [a.ravel(), b.ravel()]


# Where PyTorch departs from its own formula: gelu(inf) is NaN and gelu(3e38) inf in its vectorised loop, and hardswish
# overflows before it divides by 6.
UNLIKE_TORCH = {
    "gelu": {np.inf: np.inf, 3e38: 3e38},
    "hardswish": {3e38: 3e38},
}

SPECIAL_OPS = [
    name
    for name in SAMPLED
    if isinstance(OPS[name].lower, Elementwise)
    and not OPS[name].samples[0].dtypes
    and not name.startswith("to_")
]


@pytest.mark.torch
@pytest.mark.parametrize("name", SPECIAL_OPS)
def test_special_numbers_as_torch(name: str) -> None:
    import torch

    arrays = special_operands(OPS[name])
    inputs = [make_input("ab"[i], Type(f32, a.shape)) for i, a in enumerate(arrays)]
    attrs = OPS[name].samples[0].attrs
    (got,) = evaluate([apply(name, *inputs, **attrs)], dict(zip(inputs, arrays, strict=True)))
    want = torch_outputs(OPS[name], [torch.tensor(a) for a in arrays], attrs)[0].numpy()
    for x, y in UNLIKE_TORCH.get(name, {}).items():
        want = np.where(arrays[0] == np.float32(x), np.float32(y), want)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-44)


REDUCTIONS = [name for name in SAMPLED if isinstance(OPS[name].lower, Reduce)]
ROWS_OF_SPECIALS = [
    [1.0, np.nan, 2.0],
    [np.inf, -np.inf, 1.0],
    [-np.inf, -np.inf, -np.inf],
    [np.inf, np.inf, np.inf],
]


@pytest.mark.torch
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_special_numbers_as_torch(name: str) -> None:
    import torch

    array = np.array(ROWS_OF_SPECIALS, dtype=np.float32)
    x = make_input("x", Type(f32, array.shape))
    attrs = {"axes": (1,), "keepdim": False}
    got = evaluate(apply_node(name, x, **attrs).results, {x: array})
    for a, b in zip(got, torch_outputs(OPS[name], [torch.tensor(array)], attrs), strict=True):
        np.testing.assert_array_equal(a, b.numpy())
