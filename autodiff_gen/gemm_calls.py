"""From the layouts of a contraction's operands to one call of the gemm family: which kernel, with which
leading dimensions.

Transposes and slices are views, so they show up here as strides; no operand is moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .dtypes import Size, planned
from .kernel_contract import CONTRACT
from .layout import Strided


@dataclass(frozen=True)
class GemmCall:
    """A kernel of the contract, and what stands for its parameters: `pointers` name the roles "a", "b", "c";
    `sizes` are numbers.

    alpha and beta are added by whoever writes the call.
    """

    kernel: str
    pointers: Mapping[str, str]
    sizes: Mapping[str, Size]

    def facts(self, beta: float) -> dict[str, int | float]:
        """What a kernel table's conditions may compare: the numbers that are known when the C is generated."""
        known: dict[str, int | float] = {k: v for k, v in self.sizes.items() if isinstance(v, int)}
        return {**known, "beta": beta}

    def text(
        self, symbol: str, pointers: Mapping[str, str], alpha: str, beta: str, sizes: Mapping[str, str]
    ) -> str:
        """The C statement."""
        values = {
            **{p: pointers[role] for p, role in self.pointers.items()},
            **sizes,
            "alpha": alpha,
            "beta": beta,
        }
        return f"{symbol}({', '.join(values[p] for p in CONTRACT[self.kernel].param_names)});"


def _matrix(at: Strided) -> tuple[int, int, int, int]:
    """Planned rows and columns of the last two axes, and their strides."""
    rows, columns = planned(at.shape[-2:])
    return rows, columns, at.strides[-2], at.strides[-1]


def _stored(at: Strided) -> tuple[str, int]:
    """ "n" with the leading dimension when rows are contiguous, else "t" with that of the transpose."""
    rows, columns, row_step, column_step = _matrix(at)
    if (columns == 1 or column_step == 1) and (rows == 1 or row_step >= columns):
        return "n", row_step if rows > 1 else columns
    return "t", column_step if columns > 1 else rows


def choose(a: Strided, b: Strided) -> GemmCall:
    """The call for c[m,n] = a[m,k] . b[k,n], c dense; the operands have been made readable by kernels.

    Products of vectors become ger, those with one vector gemv; the rest is gemm. Extents of 1 are recognised
    where they are fixed.
    """
    m, k = a.shape[-2:]
    n = b.shape[-1]
    _, _, a_row, a_column = _matrix(a)
    _, _, b_row, b_column = _matrix(b)
    (ta, lda), (tb, ldb) = _stored(a), _stored(b)
    ldc = planned((n,))[0]
    if k == 1 and (m == 1 or a_row == 1) and (n == 1 or b_column == 1):
        return GemmCall("ger_f32", {"a": "c", "x": "a", "y": "b"}, {"lda": ldc, "m": m, "n": n})
    if m == 1 and (k == 1 or a_column == 1):
        sizes = {"lda": ldb, "m": k, "n": n} if tb == "n" else {"lda": ldb, "m": n, "n": k}
        return GemmCall("gemv_t_f32" if tb == "n" else "gemv_f32", {"a": "b", "x": "a", "y": "c"}, sizes)
    if n == 1 and (k == 1 or b_row == 1):
        sizes = {"lda": lda, "m": m, "n": k} if ta == "n" else {"lda": lda, "m": k, "n": m}
        return GemmCall("gemv_f32" if ta == "n" else "gemv_t_f32", {"a": "a", "x": "b", "y": "c"}, sizes)
    sizes = {"lda": lda, "ldb": ldb, "ldc": ldc, "m": m, "n": n, "k": k}
    return GemmCall(f"gemm_{ta}{tb}_f32", {"a": "a", "b": "b", "c": "c"}, sizes)
