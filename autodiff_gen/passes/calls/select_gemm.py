"""From the layouts of a contraction's operands to one call of the gemm family: the kernel and its leading dimensions.

Transposes and slices are views, so they show up here as strides; no operand is moved.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir.kernel_call import Factor, KernelCall, Matrix, Operand, Place, Result
from ...ir.strides import Strided
from ...ir.types import Size, planned

A, B, C = Operand(0), Operand(1), Result()


def _matrix(at: Strided) -> tuple[int, int, int, int]:
    """Planned rows and columns of the last two axes, and their strides."""
    rows, columns = planned(at.shape[-2:])
    return rows, columns, at.strides[-2], at.strides[-1]


def _stored(at: Strided) -> tuple[str, int]:
    """ "n" with the leading dimension when rows are contiguous, else "t" with the leading dimension of the
    transpose."""
    rows, columns, row_step, column_step = _matrix(at)
    if (columns == 1 or column_step == 1) and (rows == 1 or row_step >= columns):
        return "n", row_step if rows > 1 else columns
    return "t", column_step if columns > 1 else rows


def gemm_call(
    a: Strided, b: Strided, alpha: Factor = 1.0, beta: float = 0.0, c: Strided | None = None
) -> KernelCall:
    """The call for c[m,n] = alpha a[m,k] . b[k,n] + beta c. `c` is dense if no layout is given; kernels can read the
    operands.

    Products of two vectors become ger, products with one vector gemv; the rest is gemm. Extents of 1 are recognised
    where they are fixed.
    """
    m, k = a.shape[-2:]
    n = b.shape[-1]
    _, _, a_row, a_column = _matrix(a)
    _, _, b_row, b_column = _matrix(b)
    (ta, lda), (tb, ldb) = _stored(a), _stored(b)
    ldc = planned((n,))[0] if c is None or m == 1 else c.strides[-2]
    over = tuple(i for i, d in enumerate(a.shape[:-2]) if d != 1)
    factors = {"alpha": alpha, "beta": beta}

    def call(
        kernel: str, pointers: Mapping[str, Place], sizes: Mapping[str, Size], *which: bool
    ) -> KernelCall:
        """The call of this kernel. which: for each factor, whether it is transposed."""
        product = [
            Matrix(i, extents[::-1] if transposed else extents, transposed)
            for i, (extents, transposed) in enumerate(zip(((m, k), (k, n)), which, strict=True))
        ]
        return KernelCall(kernel, pointers, sizes, factors, over=over, product=(product[0], product[1]))

    if k == 1 and (m == 1 or a_row == 1) and (n == 1 or b_column == 1):
        return call("ger_f32", {"a": C, "x": A, "y": B}, {"lda": ldc, "m": m, "n": n}, False, False)
    if m == 1 and (k == 1 or a_column == 1):
        sizes = {"lda": ldb, "m": k, "n": n} if tb == "n" else {"lda": ldb, "m": n, "n": k}
        kernel = "gemv_t_f32" if tb == "n" else "gemv_f32"
        return call(kernel, {"a": B, "x": A, "y": C}, sizes, False, tb == "t")
    if n == 1 and (k == 1 or b_row == 1) and ldc == 1:
        sizes = {"lda": lda, "m": m, "n": k} if ta == "n" else {"lda": lda, "m": k, "n": m}
        kernel = "gemv_f32" if ta == "n" else "gemv_t_f32"
        return call(kernel, {"a": A, "x": B, "y": C}, sizes, ta == "t", False)
    sizes = {"lda": lda, "ldb": ldb, "ldc": ldc, "m": m, "n": n, "k": k}
    return call(f"gemm_{ta}{tb}_f32", {"a": A, "b": B, "c": C}, sizes, ta == "t", tb == "t")
