"""Constants: values that depend only on constants and sizes are computed when the network is imported, by the reference
implementation of ONNX.

    Shape(x) -> Gather(0) -> Unsqueeze -> Concat(-1)    ->    the constant [n, -1]

In these computations a large prime number represents the batch, so that a multiple of it is a multiple of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError, quoted
from ..imported.program import ValueRef
from ..imported.rules import Unsupported
from .graph import OnnxNode
from .tying import WeightOrigin, operands_of_view, origin_of

BATCH = 1_000_000_007
# Ops whose operands are sizes of the result: they are not computed if a size is the batch.
SIZED = ("ConstantOfShape", "Expand", "EyeLike", "Pad", "Range", "Resize", "Tile", "Upsample", "OneHot")
# Ops that the reference implementation computes by a few calls of NumPy; for others it has Python loops over elements.
FOLDED = set(
    str.split("""
        Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
        Cast CastLike Ceil Celu Clip Compress Concat Constant ConstantOfShape Cos Cosh CumSum DepthToSpace Div Dropout
        Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu Gemm Greater GreaterOrEqual
        HardSigmoid HardSwish Hardmax Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max Mean Min
        Mish Mod Mul Neg NonZero Not OneHot Or PRelu Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
        ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Round
        ScatterElements ScatterND Selu Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign
        SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where
        Xor
    """)
)


@dataclass(frozen=True)
class ConstantTensor:
    """name: the name of the tensor; initializer: whether it is, or was computed from, an initializer that may be a
    parameter; learned: whether the file says that it is a parameter; untransposed: the name of the initializer that it
    transposes; origin: the initializers with more than one element that it was made from."""

    array: NDArray[Any]
    name: str = ""
    initializer: bool = False
    learned: bool = False
    untransposed: str = ""
    origin: WeightOrigin | None = None


def array_of(tensor: Any, name: str) -> NDArray[Any]:
    """The array of a TensorProto. Raises ModelError."""
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError):
        raise ModelError(
            f"{name}: the weight {quoted(tensor.name)} is damaged; export the network anew"
        ) from None


def dtype_of(array: NDArray[Any]) -> str:
    return {"f": "f32", "b": "bool"}.get(array.dtype.kind, "s32")


def ours(array: NDArray[Any]) -> NDArray[Any]:
    """A constant in a dtype that we have."""
    kinds = {"f": np.float32, "i": np.int32, "u": np.int32, "b": np.bool_}
    return array.astype(kinds[array.dtype.kind])


def fold(node: OnnxNode, given: Sequence[Any], c: Any) -> list[Any] | None:
    """The results of a node that depends on constants and sizes only; None for other nodes. A size converted to float
    becomes a call; other floats that depend on the batch raise Unsupported, here or when they are read (as NaN)."""
    if node.op in ("Shape", "Size") and isinstance(given[0], ValueRef):
        return [ConstantTensor(_sizes(node, c.sizes(given[0])))]
    constants = [x for x in given if isinstance(x, ConstantTensor)]
    if len(constants) < sum(x is not None for x in given) or node.op not in FOLDED or node.domain:
        return None
    if any(x.array.dtype.kind not in "biuf" for x in constants):
        raise Unsupported("computes with texts; use numbers")
    batch = any(x.array.dtype.kind == "i" and is_batch(x.array).any() for x in constants)
    if node.op in SIZED and batch:
        return None
    names = [n for n in node.proto.input if n]
    results = reference(
        node.proto, {n: x.array for n, x in zip(names, constants, strict=True)}, c.opset.get("", 1)
    )
    if results is None:
        return None
    initializer = any(x.initializer for x in constants)
    if any(r.dtype.kind == "f" for r in results):
        sizes = next(
            (x.array for x in constants if x.array.dtype.kind == "i" and _of_batch(x.array).any()), None
        )
        if sizes is not None and sizes.size == 1:
            if not is_batch(sizes).all():
                raise Unsupported("has a size that depends on the batch; use a number")
            return [c.emit("to", c.extent(sizes.item()), "f32")]
        if sizes is not None:
            results = [np.where(_of_batch(sizes), np.nan, r) for r in results]
    origins = [origin_of(constants)] * len(results)
    if (places := operands_of_view(node.op, constants)) is not None:
        sources = tuple(dict.fromkeys(n for x in constants if x.origin is not None for n in x.origin.names))
        parts = reference(node.proto, dict(zip(names, places, strict=True)), c.opset.get("", 1))
        origins = [WeightOrigin(sources, part) for part in parts or ()]
    matrix = node.op == "Transpose" and constants[0].initializer and results[0].ndim == 2
    origin = constants[0].name if matrix and results[0].shape == constants[0].array.shape[::-1] else ""
    outputs = zip(node.proto.output, results, origins, strict=False)
    return [ConstantTensor(r, n, initializer, untransposed=origin, origin=o) for n, r, o in outputs]


def _of_batch(sizes: NDArray[Any]) -> Any:
    """For each size of an array, whether it was computed from the batch: it is larger than other sizes are, but smaller
    than the end of a slice, which is the largest integer."""
    magnitudes = np.abs(sizes)
    return (magnitudes >= 1 << 24) & (magnitudes < 1 << 60)


def is_batch(size: Any) -> Any:
    """Whether a size, or each size of an array, is the batch or a multiple of it."""
    return (size != 0) & (size % BATCH == 0)


def _sizes(node: OnnxNode, sizes: list[int]) -> NDArray[np.int64]:
    if node.op == "Size":
        return np.asarray(np.prod(np.asarray(sizes, np.int64)), np.int64)
    limits = {a.name: a.i for a in node.proto.attribute}
    return np.asarray(sizes[limits.get("start", 0) : limits.get("end", len(sizes))], np.int64)


def reference(proto: Any, given: Mapping[str, NDArray[Any]], opset: int) -> list[NDArray[Any]] | None:
    """The results of a node in the reference implementation; None for an op that ONNX does not have."""
    from onnx import defs
    from onnx.reference import ReferenceEvaluator

    if not defs.has(proto.op_type, opset, ""):
        return None
    try:
        with np.errstate(all="ignore"):
            return [
                np.asarray(r) for r in ReferenceEvaluator(proto, opsets={"": opset}).run(None, dict(given))
            ]
    except MemoryError:
        raise
    except Exception:  # NumPy and the evaluator raise errors of many kinds
        raise Unsupported("cannot be computed: its operands do not fit each other; export it anew") from None
