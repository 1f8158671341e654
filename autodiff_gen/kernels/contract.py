"""The kernels of `kernels/ag_kernels.h` in Python: names and parameters, in order. A test compares both."""

from __future__ import annotations

from dataclasses import dataclass

ELEMENTS = {"f32": "float", "u8": "uint8_t", "s32": "int32_t"}

# The structs of ag_shapes.h: geometry that is constant over calls. Each field is an int32_t.
STRUCTS: dict[str, tuple[str, ...]] = {
    "conv2d_shape": (
        *("h", "w", "c", "oh", "ow", "o", "kh", "kw", "stride_h", "stride_w", "pad_top", "pad_left"),
        *("dilation_h", "dilation_w", "groups", "x_n", "x_h", "x_w", "x_c", "ldy"),
    ),
    "conv2d_pool_shape": (
        *("h", "w", "c", "oh", "ow", "o", "kh", "kw", "stride_h", "stride_w", "pad_top", "pad_left"),
        *("dilation_h", "dilation_w", "x_n", "x_h", "x_w", "x_c"),
        *("pool_h", "pool_w", "pool_stride_h", "pool_stride_w", "ph", "pw"),
    ),
    "pool2d_shape": (
        *("h", "w", "c", "oh", "ow", "kh", "kw", "stride_h", "stride_w", "pad_top", "pad_bottom"),
        *("pad_left", "pad_right", "dilation_h", "dilation_w", "divisor", "count_pad"),
        *("x_n", "x_h", "x_w", "x_c"),
    ),
}

# The functions of ag_math.h that a backend may replace: ag_<name>, float to float.
FUNCTIONS = ("cosf", "erff", "expf", "expm1f", "log1pf", "logf", "sigmoidf", "sinf", "tanhf")


@dataclass(frozen=True)
class Param:
    """One C parameter: a `const` pointer is read, any other pointer is written (and read when beta != 0); the rest are
    numbers or a pointer to a struct of geometry.
    """

    name: str
    ctype: str

    @property
    def struct(self) -> str | None:
        """The struct of STRUCTS that it points to, if any."""
        name = self.ctype.removeprefix("const ag_").removesuffix(" *")
        return name if name in STRUCTS else None

    @property
    def is_pointer(self) -> bool:
        """Whether it points to elements."""
        return self.ctype.endswith("*") and self.struct is None


@dataclass(frozen=True)
class KernelSpec:
    """One kernel of the contract, e.g. `gemv_f32`; float32, row-major, sizes int32; geometry in a struct."""

    name: str
    params: tuple[Param, ...]
    math: str

    @property
    def type_name(self) -> str:
        """The C function type: `ag_gemv_f32_fn my_gemv;` declares the kernel of a user's backend."""
        return f"ag_{self.name}_fn"

    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params)

    @property
    def facts(self) -> tuple[str, ...]:
        """The call attributes that a table's condition may compare: the numeric parameters, the geometry, and `align`,
        the alignment of all arrays in bytes."""
        names: list[str] = []
        for p in self.params:
            names += STRUCTS[p.struct] if p.struct else [] if p.is_pointer else [p.name]
        return (*names, "align")

    @property
    def output(self) -> str:
        """The first parameter that the kernel writes."""
        return next(p.name for p in self.params if p.is_pointer and not p.ctype.startswith("const"))


def _spec(name: str, params: str, math: str) -> KernelSpec:
    """`params` in order: capitals are read, `NAME!` is written, of f32 or the type after a colon; `name:struct` is
    geometry, alpha and beta are float, the rest int32_t.
    """
    types = {"alpha": "float", "beta": "float"}
    parsed = []
    for word in params.split():
        label, _, kind = word.rstrip("!").partition(":")
        if kind in STRUCTS:
            parsed.append(Param(label, f"const ag_{kind} *"))
        elif label.isupper():
            const = "" if word.endswith("!") else "const "
            parsed.append(Param(label.lower(), f"{const}{ELEMENTS[kind or 'f32']} *"))
        else:
            parsed.append(Param(label, types.get(label, "int32_t")))
    return KernelSpec(name, tuple(parsed), math)


_GEMM = "A lda B ldb C! ldc m n k alpha beta"
_CONV_POOL_DW = "X DY INDEX:u8 DW! n shape:conv2d_pool_shape alpha beta"
_CONV_DW = "X DY DW! n shape:conv2d_shape alpha beta"

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
        _spec("axpby_f32", "X Y! n alpha beta", "y[n] = alpha x[n] + beta y"),
        _spec(
            "column_sums_f32",
            "A lda Y! m n alpha beta",
            "y[n] = alpha (sums of the columns of A[m,n]) + beta y",
        ),
        _spec("conv2d_f32", "X W Y! n shape:conv2d_shape", "y = x * w over windows of x"),
        _spec("conv2d_dx_f32", "DY W DX! n shape:conv2d_shape", "the adjoint of conv2d in x"),
        _spec("conv2d_dw_f32", _CONV_DW, "dw = alpha (the adjoint of conv2d in w) + beta dw"),
        _spec("depthwise2d_f32", "X W Y! n shape:conv2d_shape", "conv2d with a window for each channel"),
        _spec("depthwise2d_dx_f32", "DY W DX! n shape:conv2d_shape", "the adjoint of depthwise2d in x"),
        _spec("depthwise2d_dw_f32", _CONV_DW, "dw = alpha (the adjoint of depthwise2d in w) + beta dw"),
        _spec("max_pool2d_f32", "X Y! INDEX:u8! n shape:pool2d_shape", "y = the largest of each window of x"),
        _spec("max_pool2d_dx_f32", "DY INDEX:u8 DX! n shape:pool2d_shape", "dx = dy where index says"),
        _spec("max_pool2d_pick_f32", "X INDEX:u8 Y! n shape:pool2d_shape", "y = x where index says"),
        _spec(
            "conv2d_pool_f32",
            "X W BIAS Y! INDEX:u8! n shape:conv2d_pool_shape",
            "y = max_pool2d of x * w + bias",
        ),
        _spec(
            "conv2d_pool_dx_f32", "DY INDEX:u8 W DX! n shape:conv2d_pool_shape", "the adjoint of both in x"
        ),
        _spec("conv2d_pool_dw_f32", _CONV_POOL_DW, "dw = alpha (the adjoint of both in w) + beta dw"),
        _spec("avg_pool2d_f32", "X Y! n shape:pool2d_shape", "y = means over windows of x"),
        _spec("avg_pool2d_dx_f32", "DY DX! n shape:pool2d_shape", "the adjoint of avg_pool2d"),
        _spec(
            "scatter_sum_f32",
            "INDEX:s32 X Y! outer rows count inner",
            "y = sums of x by index of each element",
        ),
        _spec(
            "index_sum_f32",
            "INDEX:s32 X Y! outer rows count inner alpha beta",
            "y = alpha (sums of the rows of x by index) + beta y",
        ),
        _spec("cumsum_f32", "X Y! outer count inner reverse", "y = sums of x up to each element"),
    )
}
