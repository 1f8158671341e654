"""The test table of all ops, made from the registry: every op x sample, with numbers drawn for it, and what
is compared with what."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import apply_node, make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS, Op, Sample, Value
from autodiff_gen.ir.op_kinds import Moded
from autodiff_gen.ir.types import Type, dtype
from autodiff_gen.ops.images.max_pooling import pooling

# Leaves, and ops that only passes create, after differentiation: they have no gradient and no row.
INTERNAL = {
    "input",
    "state",
    "const",
    "accumulate",
    "places",
    "matmul_rows",
    "matmul_placed",
    "assemble_placed",
    "place",
    "fused",
    "axpby",
    "column_sums_into",
    "sliding_windows",
    "conv2d_dw_into",
    "conv2d_dw_rows",
    "conv2d_dw_rows_s8_f32",
    "depthwise2d_dw_into",
    "depthwise2d_dw_rows",
    "depthwise2d_dw_rows_s8_f32",
    "index_sum_into",
    "conv2d_pool",
    "conv2d_pool_dx",
    "conv2d_pool_dw",
    "conv2d_pool_dw_into",
    "conv2d_epilogue",
    "depthwise2d_epilogue",
    "matmul_epilogue",
}
REGIONS = {"scan", "cond"}  # their operands are functions: tests/functional/test_scan.py and test_cond.py

# Quantised tensors: held to CMSIS-NN by tests/kernels/test_cmsis.py, to float64 by tests/functional/test_quantized.py.
ON_S8 = {name for name, op in OPS.items() if name.endswith("_s8") and op.torch is None}
NOT_IN_TORCH = {
    "rand_u32",
    *ON_S8,
}  # rand_u32: to runtime/ag_rng.h by test_ops_c.py, and that to its twin by test_rng.py


SAMPLED = [
    name
    for name in OPS
    if name not in INTERNAL | REGIONS and not isinstance(OPS[name].lower, Moded)  # test_modes.py
]
# Gradients that pass rounding: held to PyTorch by tests/functional/test_quantized_gradients.py.
STRAIGHT_THROUGH = {"quantize", "quantize_s32", "dequantize", "clamp_s8", *ON_S8}
OWN_GRADIENT = {"custom_gradient"}  # tests/autodiff/test_custom_gradient.py
DIFFERENTIABLE = [
    name for name in SAMPLED if OPS[name].vjp is not None and name not in STRAIGHT_THROUGH | OWN_GRADIENT
]
FLAT = {"detach", "floor", "round", "sign"}  # no gradient flows through them
ROWS = [(name, i) for name in SAMPLED for i in range(len(OPS[name].samples))]


def has_float_operand(sample: Sample) -> bool:
    return any(sample.dtypes.get(k, "f32") == "f32" for k in range(len(sample.inputs)))


GRADIENT_ROWS = [
    (name, i) for name, i in ROWS if name in DIFFERENTIABLE and has_float_operand(OPS[name].samples[i])
]


@dataclass(frozen=True, eq=False)
class Case:
    """An op applied to inputs of one sample, with arrays for them (floats hold float32 numbers) and for the
    results' gradients."""

    op: Op
    sample: Sample
    inputs: tuple[Value, ...]
    outs: tuple[Value, ...]
    arrays: tuple[Any, ...]
    dys: tuple[Any, ...]  # one per float result
    dy_inputs: tuple[Value, ...]

    @property
    def wanted(self) -> list[int]:
        """The operands that are floats."""
        return [i for i, v in enumerate(self.inputs) if v.dtype.kind == "f"]

    @property
    def float_outs(self) -> list[Value]:
        return [v for v in self.outs if v.dtype.kind == "f"]

    @property
    def feeds(self) -> dict[Value, Any]:
        return dict(zip((*self.inputs, *self.dy_inputs), (*self.arrays, *self.dys), strict=True))

    def weighted(self, outs: Sequence[Value] | None = None) -> Value:
        """The scalar sum(out * dy) over all float results."""
        terms = [F.sum(v * dy) for v, dy in zip(outs or self.float_outs, self.dy_inputs, strict=True)]
        total = terms[0]
        for t in terms[1:]:
            total = total + t
        return total

    def again(self) -> list[Value]:
        """The float results of the op, applied once more to the same inputs."""
        node = apply_node(self.op.name, *self.inputs, **self.sample.attrs)
        return [v for v in node.results if v.dtype.kind == "f"]


def drawn(sample: Sample, i: int, rng: np.random.Generator) -> Any:
    kind = dtype(sample.dtypes.get(i, "f32")).kind
    if kind == "f":
        return np.asarray(rng.uniform(*sample.domain, sample.inputs[i]), dtype=np.float32)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, sample.inputs[i]), dtype=bool)
    low, high = sample.integers.get(i, (0, sample.high))
    return np.asarray(rng.integers(low, high, sample.inputs[i]), dtype=dtype(sample.dtypes[i]).numpy)


def case(name: str, i: int, seed: int = 1) -> Case:
    """Row i of the op's table with its numbers."""
    op = OPS[name]
    sample = op.samples[i]
    rng = np.random.default_rng(zlib.crc32(f"{name} {i} {seed}".encode()))
    types = [Type(dtype(sample.dtypes.get(k, "f32")), tuple(s)) for k, s in enumerate(sample.inputs)]
    inputs = tuple(make_input("abcdef"[k], t) for k, t in enumerate(types))
    outs = apply_node(name, *inputs, **sample.attrs).results
    arrays = tuple(drawn(sample, k, rng) for k in range(len(types)))
    floats = [v for v in outs if v.dtype.kind == "f"]
    dys = tuple(np.asarray(rng.uniform(0.5, 1.5, v.shape), dtype=np.float32) for v in floats)
    dy_inputs = tuple(make_input(f"dy{k}", v.type) for k, v in enumerate(floats))
    return Case(op, sample, inputs, outs, arrays, dys, dy_inputs)


def finite_differences(y: Value, feeds: dict[Value, Any], x: Value, h: float = 1e-6) -> Any:
    """The gradient of the scalar y with respect to x, by central differences in float64."""
    at = np.array(feeds[x], dtype=np.float64)
    out = np.zeros_like(at)
    for idx in np.ndindex(at.shape):
        sides = []
        for step in (h, -h):
            moved = at.copy()
            moved[idx] += step
            (value,) = evaluate([y], {**feeds, x: moved}, float_dtype="float64")
            sides.append(float(value))
        out[idx] = (sides[0] - sides[1]) / (2 * h)
    return out


def gradient_error(y: Value, feeds: dict[Value, Any], xs: Sequence[Value]) -> float:
    """The largest difference between grad(y, xs) and finite differences, relative to the largest element (at
    least 1)."""
    found = evaluate(grad(y, list(xs)), feeds, float_dtype="float64")
    worst = 0.0
    for x, g in zip(xs, found, strict=True):
        expected = finite_differences(y, feeds, x)
        worst = max(worst, float(np.max(np.abs(g - expected)) / max(1.0, np.max(np.abs(expected)))))
    return worst


# Values and gradients (dy = 1), as in PyTorch, at ties, kinks and ends of domains, where finite differences cannot go.
# op, operands, attributes, values, gradients
INF, NAN = float("inf"), float("nan")
EDGES: list[tuple[str, list[Any], dict[str, Any], Any, list[Any]]] = [
    ("relu", [[-1.0, 0.0, 2.0]], {}, [0.0, 0.0, 2.0], [[0.0, 0.0, 1.0]]),
    ("abs", [[-2.0, 0.0, 3.0]], {}, [2.0, 0.0, 3.0], [[-1.0, 0.0, 1.0]]),
    ("sqrt", [[0.0, 4.0]], {}, [0.0, 2.0], [[INF, 0.25]]),
    ("log", [[0.0, 2.0]], {}, [-INF, np.log(2.0)], [[INF, 0.5]]),
    ("maximum", [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], {}, [2.0, 2.0, 3.0], [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]),
    ("minimum", [[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]], {}, [1.0, 2.0, 2.0], [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]),
    ("amax", [[[1.0, 3.0, 3.0]]], {"axes": (1,), "keepdim": False}, [3.0], [[[0.0, 0.5, 0.5]]]),
    ("largest", [[[1.0, 3.0, 3.0]]], {"axes": (1,), "keepdim": False}, [3.0], [[[0.0, 0.5, 0.5]]]),
    ("largest", [[[0.5, 0.25]]], {"axes": (1,), "keepdim": False}, [1.0], [[[0.0, 0.0]]]),
    ("amin", [[[3.0, 1.0, 1.0]]], {"axes": (1,), "keepdim": False}, [1.0], [[[0.0, 0.5, 0.5]]]),
    ("max_with_index", [[[1.0, 3.0, 3.0]]], {"axes": (1,), "keepdim": False}, [3.0], [[[0.0, 1.0, 0.0]]]),
    ("min_with_index", [[[3.0, 1.0, 1.0]]], {"axes": (1,), "keepdim": False}, [1.0], [[[0.0, 1.0, 0.0]]]),
    ("pow", [[0.0, 0.0, 2.0, -2.0], [2.0, 0.0, 0.0, 3.0]], {}, [0.0, 1.0, 1.0, -8.0],
     [[0.0, 0.0, 0.0, 12.0], [0.0, 0.0, np.log(2.0), NAN]]),
    ("div", [[1.0, 0.0], [0.0, 2.0]], {}, [INF, 0.0], [[INF, 0.5], [-INF, 0.0]]),
    ("detach", [[1.0, 2.0]], {}, [1.0, 2.0], [[0.0, 0.0]]),
    ("reciprocal", [[0.0, INF, -2.0]], {}, [INF, 0.0, -0.5], [[-INF, 0.0, -0.25]]),
    ("rsqrt", [[0.0, INF, 4.0]], {}, [INF, 0.0, 0.5], [[-INF, 0.0, -0.0625]]),
    ("log1p", [[-1.0, 0.0, INF]], {}, [-INF, 0.0, INF], [[INF, 1.0, 0.0]]),
    ("floor", [[-1.5, -0.0, 2.0, INF]], {}, [-2.0, 0.0, 2.0, INF], [[0.0, 0.0, 0.0, 0.0]]),
    ("round", [[-1.5, -0.5, 0.5, 1.5, 2.5, 2.6]], {}, [-2.0, 0.0, 0.0, 2.0, 2.0, 3.0], [[0.0] * 6]),
    ("sign", [[-3.0, -0.0, 0.0, INF, NAN]], {}, [-1.0, 0.0, 0.0, 1.0, 0.0], [[0.0] * 5]),
    ("erf", [[-INF, 0.0, INF]], {}, [-1.0, 0.0, 1.0], [[0.0, 2.0 / np.sqrt(np.pi), 0.0]]),
    ("hardtanh", [[-9.0, -1.0, 0.0, 1.0, INF]], {"min_val": -1.0, "max_val": 1.0},
     [-1.0, -1.0, 0.0, 1.0, 1.0], [[0.0, 0.0, 1.0, 0.0, 0.0]]),
    ("hardtanh", [[-1.0, 0.0, 3.0, 6.0, 7.0]], {"min_val": 0.0, "max_val": 6.0},
     [0.0, 0.0, 3.0, 6.0, 6.0], [[0.0, 0.0, 1.0, 0.0, 0.0]]),
    ("leaky_relu", [[-INF, -2.0, 0.0, 2.0]], {"negative_slope": 0.25}, [-INF, -0.5, 0.0, 2.0],
     [[0.25, 0.25, 0.25, 1.0]]),
    ("leaky_relu", [[-2.0, 0.0, 2.0]], {"negative_slope": 0.0}, [0.0, 0.0, 2.0], [[0.0, 0.0, 1.0]]),
    ("elu", [[-INF, 0.0, INF]], {"alpha": 1.5}, [-1.5, 0.0, INF], [[0.0, 1.5, 1.0]]),
    ("celu", [[-INF, -0.5, 0.0, 1e3, INF]], {"alpha": 0.5, "inverse": 2.0}, [-0.5, 0.5 * np.expm1(-1.0), 0.0, 1e3, INF],
     [[0.0, np.exp(-1.0), 1.0, 1.0, 1.0]]),
    ("selu", [[-INF, 0.0, INF]], {}, [-1.7580993408473766, 0.0, INF], [[0.0, 1.7580993408473766, 1.0507009873554805]]),
    ("softplus", [[-INF, 0.0, 20.0, 21.0, INF]], {"threshold": 20.0},
     [0.0, np.log(2.0), np.log1p(np.exp(20.0)), 21.0, INF], [[0.0, 0.5, 1.0 / (1.0 + np.exp(-20.0)), 1.0, 1.0]]),
    ("softplus", [[0.75, 1.0, 1.25]], {"threshold": 1.0}, [np.log1p(np.exp(0.75)), np.log1p(np.exp(1.0)), 1.25],
     [[1.0 / (1.0 + np.exp(-0.75)), 1.0 / (1.0 + np.exp(-1.0)), 1.0]]),
    ("logsigmoid", [[-INF, 0.0, INF]], {}, [-INF, -np.log(2.0), 0.0], [[1.0, 0.5, 0.0]]),
    ("softsign", [[-1.0, 0.0, 3.0]], {}, [-0.5, 0.0, 0.75], [[0.25, 1.0, 0.0625]]),
    ("hardsigmoid", [[-INF, -3.0, 0.0, 3.0, INF]], {}, [0.0, 0.0, 0.5, 1.0, 1.0], [[0.0, 0.0, 1.0 / 6.0, 0.0, 0.0]]),
    ("hardswish", [[-4.0, -3.0, 0.0, 3.0, INF]], {}, [0.0, 0.0, 0.0, 3.0, INF], [[0.0, 0.0, 0.5, 1.0, 1.0]]),
    ("prod", [[[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]]], {"axes": (1,), "keepdim": False}, [0.0, 0.0, 24.0],
     [[[0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [12.0, 8.0, 6.0]]]),
    ("max_pool2d", [[[[[1.0], [3.0], [3.0]]]]], pooling((1, 3), (1, 1)), [[[[3.0]]]], [[[[[0.0], [1.0], [0.0]]]]]),
    ("max_pool2d", [[[[[NAN], [3.0], [INF]]]]], pooling((1, 2), (1, 1)), [[[[NAN], [INF]]]],
     [[[[[1.0], [0.0], [1.0]]]]]),
    ("max_pool2d", [[[[[-INF], [-INF]]]]], pooling((1, 2), (1, 1), (0, 0, 1, 1)), [[[[-INF], [-INF], [-INF]]]],
     [[[[[2.0], [1.0]]]]]),
]  # fmt: skip


def edge(row: tuple[str, list[Any], dict[str, Any], Any, list[Any]]) -> tuple[Value, list[Value], list[Any]]:
    """The op's first result, its inputs, and their arrays."""
    name, operands, attrs, _, _ = row
    arrays = [np.asarray(a, dtype=np.float32) for a in operands]
    inputs = [make_input("abc"[i], Type(dtype("f32"), a.shape)) for i, a in enumerate(arrays)]
    return apply_node(name, *inputs, **attrs).results[0], inputs, arrays


def edge_error(row: tuple[str, list[Any], dict[str, Any], Any, list[Any]]) -> float:
    """How far value and gradients are from the table's; 0 when equal, infinities and NaN included."""
    y, inputs, arrays = edge(row)
    found = evaluate(
        [y, *grad(F.sum(y), inputs)], dict(zip(inputs, arrays, strict=True)), float_dtype="float64"
    )
    worst = 0.0
    for got, want in zip(found, [row[3], *row[4]], strict=True):
        want = np.asarray(want, dtype=np.float64)
        if not np.array_equal(np.isfinite(got), np.isfinite(want)):
            return INF
        if not np.array_equal(got[~np.isfinite(want)], want[~np.isfinite(want)], equal_nan=True):
            return INF
        finite = np.isfinite(want)
        worst = max(worst, float(np.max(np.abs(got[finite] - want[finite]), initial=0.0)))
    return worst


def torch_outputs(op: Op, tensors: Sequence[Any], attrs: Any) -> list[Any]:
    """The op's PyTorch expression over tensors a, b, c and the attributes."""
    import torch

    assert op.torch is not None
    names = dict(zip("abcdef", tensors, strict=False))
    out = eval(op.torch, {"torch": torch, "operands": list(tensors), **names, **attrs})
    return [out] if isinstance(out, torch.Tensor) else list(out)
