"""The kernels of `kernels/ag_kernels.h` in Python: names and parameters, in order. A test holds both equal."""

from __future__ import annotations

from dataclasses import dataclass

POINTERS = ("const float *", "float *")


@dataclass(frozen=True)
class Param:
    """One C parameter: `const float *` is read, `float *` is written (and read when beta != 0)."""

    name: str
    ctype: str

    @property
    def is_pointer(self) -> bool:
        return self.ctype in POINTERS


@dataclass(frozen=True)
class KernelSpec:
    """One kernel of the contract, e.g. `gemv_f32`; float32, row-major, sizes int32."""

    name: str
    params: tuple[Param, ...]
    math: str

    @property
    def type_name(self) -> str:
        """The C function type; `ag_gemv_f32_fn my_gemv;` declares a symbol of a backend outside the tree."""
        return f"ag_{self.name}_fn"

    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params)

    @property
    def facts(self) -> tuple[str, ...]:
        """What a table's condition may compare: every parameter that is a number."""
        return tuple(p.name for p in self.params if not p.is_pointer)

    @property
    def output(self) -> str:
        """The parameter that the kernel writes."""
        return next(p.name for p in self.params if p.ctype == "float *")


def _spec(name: str, params: str, math: str) -> KernelSpec:
    """`params` in order: capitals are read, `name!` is written, Greek names are float, the rest int32_t."""
    types = {"alpha": "float", "beta": "float"}
    made = []
    for word in params.split():
        if word.endswith("!"):
            made.append(Param(word[:-1].lower(), "float *"))
        elif word.isupper():
            made.append(Param(word.lower(), "const float *"))
        else:
            made.append(Param(word, types.get(word, "int32_t")))
    return KernelSpec(name, tuple(made), math)


_GEMM = "A lda B ldb C! ldc m n k alpha beta"

CONTRACT: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        _spec("gemm_nn_f32", _GEMM, "C[m,n] = alpha A[m,k] B[k,n] + beta C"),
        _spec("gemm_nt_f32", _GEMM, "C[m,n] = alpha A[m,k] B[n,k]' + beta C"),
        _spec("gemm_tn_f32", _GEMM, "C[m,n] = alpha A[k,m]' B[k,n] + beta C"),
        _spec("gemm_tt_f32", _GEMM, "C[m,n] = alpha A[k,m]' B[n,k]' + beta C"),
        _spec("gemv_f32", "A lda X Y! m n alpha beta", "y[m] = alpha A[m,n] x[n] + beta y"),
        _spec("gemv_t_f32", "A lda X Y! m n alpha beta", "y[n] = alpha A[m,n]' x[m] + beta y"),
        _spec("ger_f32", "A! lda X Y m n alpha beta", "A[m,n] = alpha x[m] y[n]' + beta A"),
    )
}
