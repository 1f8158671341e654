"""From a node to the kernel call that computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...ir.kernel_call import Epilogue, KernelCall, Scalar
from ...ir.node import Node, Value
from ...ir.op_forms import AddedToMemory, WithEpilogue
from ...ir.op_kinds import Contraction, KernelOp, RowContraction
from ...ir.strides import Strided, dense
from ...ir.views import known_layout, layout, stored
from ...kernels.registry import Backends
from ..costs import divisors
from .select_gemm import gemm_call


def call_of(node: Node) -> KernelCall:
    """The call of a contraction or of an op that is a call."""
    lower = node.op.lower
    if isinstance(lower, KernelOp):
        types = [r.type for r in node.results]
        return lower.choose([known_layout(v) for v in node.operands], types, node.attrs)
    assert isinstance(lower, Contraction), node.op.name
    a, b = (known_layout(v) for v in node.operands[:2])
    match node.op.form:
        case WithEpilogue():
            return replace(gemm_call(a, b), epilogue=Epilogue.of(node.attrs))
        case AddedToMemory():
            alpha = Scalar(len(node.operands) - 1, node.attrs["negate"])
            return gemm_call(a, b, alpha, node.attrs["beta"])
    return gemm_call(a, b, c=stored(node.results[0]))


def call_in_place(node: Node, arena: Mapping[Value, int], backends: Backends) -> KernelCall | None:
    """The call that stores its result in the memory of operand 0, which is in the arena and which no other step reads.
    None where no kernel of the backend that serves the node can do so. arena: the values in the arena, with the number
    of steps that read each."""
    if not isinstance(node.op.lower, KernelOp):
        return None
    call, x, y = call_of(node), node.operands[0], node.results[0]
    other = replace(call, kernel=call.in_place)
    source = x.base
    last = arena.get(source) == 1 and arena.get(y, 0) > 0
    fits = source.type.dtype == y.type.dtype and source.type.bytes >= y.type.bytes
    if not other.kernel or not last or not fits or layout(x) != dense(x.type.shape):
        return None
    served = (backends.select(c.kernel, c.facts()).backend for c in (call, other))
    return other if len({*served}) == 1 else None


def row_call(node: Node, layouts: Sequence[Strided], block: tuple[int, int] | None) -> KernelCall:
    """The call that completes one row of a product by rows, or a block of rows and columns. layouts: of the
    operands."""
    a, b = layouts
    assert isinstance(node.op.lower, RowContraction)
    if node.op.lower.call is not None:
        return node.op.lower.call(layouts, 1 if block is None else block[0], node.attrs)
    if block is not None:
        rows, columns = block
        b = Strided((b.shape[0], columns), b.strides, b.offset)
        return gemm_call(Strided((rows, a.shape[1]), a.strides, a.offset), b)
    return gemm_call(
        dense((1, a.shape[1])) if is_gathered(node, a) else Strided((1, a.shape[1]), a.strides, a.offset), b
    )


def rows_at_once(node: Node, layouts: Sequence[Strided], backends: Backends | None) -> list[int]:
    """How many rows of a gradient one call may complete: divisors of the number of rows. The backend that would compute
    all rows must have a kernel for them, and that kernel must serve the whole too. A kernel may need a least number of
    channels; then only multiples of that number are taken. layouts: the layouts of the operands."""
    lower, (count, _) = node.op.lower, node.results[0].type.shape
    assert isinstance(lower, RowContraction) and lower.call is not None and isinstance(count, int)
    call = lower.call
    if backends is None:
        return divisors(count)
    made = {rows: call(layouts, rows, node.attrs) for rows in divisors(count)}
    kernels = {rows: backends.select(one.kernel, one.facts()) for rows, one in made.items()}
    whole, backend = made[count].facts(), kernels[count].backend
    served = [rows for rows, k in kernels.items() if k.backend == backend and backends.serves(k, whole)]
    return [rows for rows in served if rows % served[0] == 0]


def is_gathered(node: Node, a: Strided) -> bool:
    """Whether the rows of the first factor of a product by rows are collected before they are read: their elements are
    not contiguous, and a kernel reads each row as often as the product has columns."""
    assert isinstance(node.op.lower, RowContraction)
    return node.op.lower.call is None and a.shape[1] != 1 and a.strides[1] != 1
