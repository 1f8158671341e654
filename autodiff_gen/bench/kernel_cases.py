"""The kernel calls that the benchmark measures, with the sizes of the workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..ir.kernel_call import KernelCall
from ..kernels.contract import CONTRACT
from ..ops.quantized.softmax import softmax_s8 as attributes


@dataclass(frozen=True)
class Case:
    """One call: `call` has its sizes and factors, `elements` the element count of each pointer, `macs` its
    multiply-accumulates."""

    call: KernelCall
    elements: Mapping[str, int]
    macs: int
    title: str  # the sizes: 32x784

    @property
    def family(self) -> str:
        return self.call.kernel.removesuffix("_f32")


UPDATE = {"alpha": -0.01, "beta": 1.0}  # W -= lr g
FRESH = {"alpha": 1.0, "beta": 0.0}


def cases() -> Iterator[Case]:
    """All cases, ordered by kernel family."""
    for letters in ("nn", "nt", "tn"):
        yield gemm(letters, 32, 32, 32)
    yield gemm("nt", 32, 32, 784)
    yield gemm("tn", 32, 784, 32, UPDATE)
    for kernel, factors in (("gemv_f32", FRESH), ("gemv_t_f32", FRESH), ("ger_f32", UPDATE)):
        for m, n in ((64, 128), (32, 784), (10, 32)):
            yield matrix_vector(kernel, m, n, factors)
    for n in (25_088, 72):
        yield vector(n)
    for m, n in ((256, 48), (64, 72), (144, 6)):
        yield column_sums(m, n)
    for size, inputs, outputs in ((28, 1, 6), (12, 6, 16)):
        yield from _convolutions("conv2d", size, inputs, outputs, 5)
        yield from _convolutions("conv2d_pool", size, inputs, outputs, 5)
    yield from _convolutions("conv2d", 16, 16, 48, 1)
    yield from _convolutions("conv2d", 16, 16, 32, 3, groups=16)
    yield from _convolutions("depthwise2d", 16, 48, 48, 3)
    yield convolution_s8("conv2d_s8", 16, 16, 16, 3)
    yield convolution_s8("conv2d_s8", 16, 32, 32, 1)
    yield convolution_s8("depthwise2d_s8", 16, 48, 48, 3)
    yield convolution_s8("depthwise2d_in_place_s8", 16, 48, 48, 3)
    yield dense_s8(64, 256)
    yield _with_mask(convolution_s8("conv2d_s8", 16, 16, 16, 3))
    yield _with_mask(convolution_s8("depthwise2d_s8", 16, 48, 48, 3))
    yield _with_mask(dense_s8(64, 256))
    yield softmax_s8(12, 64)
    yield from _gradients_s8("conv2d", 16, 16, 48, 1)
    yield from _gradients_s8("depthwise2d", 16, 48, 48, 3)


def gemm(letters: str, m: int, n: int, k: int, factors: Mapping[str, float] = FRESH) -> Case:
    """c[m,n] = a[m,k] . b[k,n], operands stored as the letters say."""
    lda, ldb = k if letters[0] == "n" else m, n if letters[1] == "n" else k
    sizes = {"lda": lda, "ldb": ldb, "ldc": n, "m": m, "n": n, "k": k}
    call = KernelCall(f"gemm_{letters}_f32", {}, sizes, dict(factors))
    return Case(call, {"a": m * k, "b": k * n, "c": m * n}, m * n * k, f"{m}x{n}x{k}")


def matrix_vector(kernel: str, m: int, n: int, factors: Mapping[str, float] = FRESH) -> Case:
    """A gemv or ger; m rows and n columns of the matrix."""
    call = KernelCall(kernel, {}, {"lda": n, "m": m, "n": n}, dict(factors))
    x, y = (n, m) if kernel == "gemv_f32" else (m, n)
    return Case(call, {"a": m * n, "x": x, "y": y}, m * n, f"{m}x{n}")


def column_sums(m: int, n: int) -> Case:
    """The sums of a matrix [m,n]; each addition counts as a multiply-accumulate."""
    call = KernelCall("column_sums_f32", {}, {"lda": n, "m": m, "n": n}, dict(UPDATE))
    return Case(call, {"a": m * n, "y": n}, m * n, f"{m}x{n}")


def vector(n: int) -> Case:
    """An axpby of vectors [n]."""
    return Case(KernelCall("axpby_f32", {}, {"n": n}, dict(UPDATE)), {"x": n, "y": n}, n, str(n))


def _convolutions(
    kind: str, size: int, inputs: int, outputs: int, window: int, groups: int = 1
) -> Iterator[Case]:
    """Forward, dx and dw of one convolution; windows of 3 and 1 preserve the image size."""
    shape = _geometry(size, inputs, outputs, window)
    out, groups = shape["oh"], inputs if kind == "depthwise2d" else groups
    strides = {"x_n": size * size * inputs, "x_h": size * inputs, "x_w": inputs, "x_c": 1}
    pixels = computed = out * out
    if kind == "conv2d_pool":
        half = out // 2
        shape |= {
            **strides,
            "pool_h": 2,
            "pool_w": 2,
            "pool_stride_h": 2,
            "pool_stride_w": 2,
            "ph": half,
            "pw": half,
        }
        pixels = half * half
    else:
        shape |= {"groups": groups, **strides, "ldy": outputs}
    per_pixel = outputs * window * window * (inputs // groups)
    elements = {"x": size * size * inputs, "dx": size * size * inputs, "w": per_pixel, "dw": per_pixel}
    elements |= {"y": pixels * outputs, "dy": pixels * outputs, "index": pixels * outputs, "bias": outputs}
    title = f"{size}x{size}x{inputs} to {outputs}, {window}x{window}"
    title += f", {groups} groups" if kind == "conv2d" and groups > 1 else ""
    for end, factors in (("", {}), ("_dx", {}), ("_dw", UPDATE)):
        kernel = f"{kind}{end}_f32"
        names = [p.name for p in CONTRACT[kernel].params if p.is_pointer]
        call = KernelCall(kernel, {}, {"n": 1}, dict(factors), shape)
        macs = (computed if end == "" else pixels) * per_pixel
        yield Case(call, {k: elements[k] for k in names}, macs, title)


def _gradients_s8(kind: str, size: int, inputs: int, outputs: int, window: int) -> Iterator[Case]:
    """dx and dw with one quantised operand."""
    of_floats = {case.call.kernel: case for case in _convolutions(kind, size, inputs, outputs, window)}
    for end, dtypes, sizes in (("dx", "f32_s8", {}), ("dw", "s8_f32", {"x_zero": ENCODING["x_zero"]})):
        case = of_floats[f"{kind}_{end}_f32"]
        call = replace(case.call, kernel=f"{kind}_{end}_{dtypes}", sizes={**case.call.sizes, **sizes})
        yield replace(case, call=call)


def _geometry(size: int, inputs: int, outputs: int, window: int) -> dict[str, int]:
    pad = 1 if window == 3 else 0
    out = size + 2 * pad - window + 1
    shape = {
        "h": size,
        "w": size,
        "c": inputs,
        "oh": out,
        "ow": out,
        "o": outputs,
        "kh": window,
        "kw": window,
    }
    return shape | {
        "stride_h": 1,
        "stride_w": 1,
        "pad_top": pad,
        "pad_left": pad,
        "dilation_h": 1,
        "dilation_w": 1,
    }


ENCODING = {"x_zero": -4, "y_zero": 3, "low": 3, "high": 127}  # a ReLU in the kernel's limits


def convolution_s8(kernel: str, size: int, inputs: int, outputs: int, window: int) -> Case:
    """A convolution of a quantised image."""
    groups = inputs if kernel.startswith("depthwise2d") else 1
    shape = _geometry(size, inputs, outputs, window)
    shape |= {"groups": groups, "x_n": size * size * inputs, "x_h": size * inputs, "x_w": inputs, "x_c": 1}
    shape["ldy"] = outputs
    pixels, weights = shape["oh"] * shape["ow"], outputs * window * window * (inputs // groups)
    elements = {"x": size * size * inputs, "w": weights, "y": pixels * outputs, **_scales(outputs)}
    call = KernelCall(kernel, {}, {"n": 1, **ENCODING}, {}, shape)
    return Case(call, elements, pixels * weights, f"{size}x{size}x{inputs} to {outputs}, {window}x{window}")


def dense_s8(n: int, k: int) -> Case:
    """A product of a quantised vector."""
    call = KernelCall("dense_s8", {}, {"m": 1, "n": n, "k": k, **ENCODING, "per_channel": 0})
    return Case(call, {"x": k, "w": n * k, "y": n, **_scales(n)}, n * k, f"{n}x{k}")


def _with_mask(case: Case) -> Case:
    """The same call with a mask: a bit for each result of one image or row."""
    call = replace(case.call, kernel=case.call.kernel.replace("_s8", "_within_s8"))
    return replace(case, call=call, elements={**case.elements, "within": (case.elements["y"] + 7) // 8})


def softmax_s8(m: int, n: int) -> Case:
    """Softmax of quantised rows with the scale 0.05; each element counts as a multiply-accumulate."""
    call = KernelCall("softmax_s8", {}, {"m": m, "n": n, **attributes(0.05)})
    return Case(call, {"x": m * n, "y": m * n}, m * n, f"{m}x{n}")


def _scales(channels: int) -> dict[str, int]:
    return dict.fromkeys(("bias", "multiplier", "shift"), channels)
