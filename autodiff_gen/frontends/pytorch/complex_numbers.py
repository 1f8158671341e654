"""Complex numbers of a network as pairs of tensors, the real and the imaginary parts: spectra, and rotations of RoPE.

Rules that take or return one have a Complex instead of a reference; an operator that moves or adds elements is
called for both parts. Discrete Fourier transforms are products with matrices of sines and cosines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .indexing import INDEXING
from .rules import Arguments, Converter, Rule, Unsupported, axis


@dataclass(frozen=True)
class Complex:
    """References to the parts, which have one shape; or the parts of a number."""

    real: Any
    imag: Any


# Operators that apply to each of the two parts as to a tensor.
BY_PARTS = {
    f"aten.{name}"
    for name in str.split(
        "add alias cat clone contiguous copy detach expand flatten flip index_select lift_fresh_copy mean movedim neg "
        "permute reshape roll select select_scatter slice slice_scatter squeeze stack sub sum t transpose unflatten "
        "unsqueeze view zeros zeros_like"
    )
}


def parts_of(given: Any, part: str) -> Any:
    """An argument with one part of each complex number in it."""
    if isinstance(given, Complex):
        return getattr(given, part)
    return tuple(parts_of(g, part) for g in given) if isinstance(given, tuple) else given


def is_complex(given: Any) -> bool:
    return isinstance(given, Complex) or (isinstance(given, tuple) and any(map(is_complex, given)))


def by_parts(rule: Rule, c: Converter, a: Arguments) -> Complex:
    """Call the rule for both parts. Raises Unsupported for real and complex tensors together."""
    a = {
        n: Complex(v, 0.0) if n in ("self", "other") and isinstance(v, int | float) else v
        for n, v in a.items()
    }
    tensors = [v for name in ("self", "other", "src", "tensors") for v in _flat(a.get(name))]
    if any(isinstance(v, Complex) for v in tensors) and not all(isinstance(v, Complex) for v in tensors):
        raise Unsupported("mixes real and complex tensors; make the real ones complex by torch.complex")
    plain = {name: None if v == "complex64" else v for name, v in a.items()}
    real, imag = (rule(c, {n: parts_of(v, part) for n, v in plain.items()}) for part in ("real", "imag"))
    return Complex(real, imag)


def _flat(given: Any) -> list[Any]:
    return (
        [v for g in given for v in _flat(g)] if isinstance(given, tuple) else [] if given is None else [given]
    )


def _product(emit: Any, x: Any, y: Any) -> Any:
    """A bilinear function of x and y. At least one of them is complex; if both are, returns the pair x, y."""
    if not isinstance(x, Complex):
        return Complex(emit(x, y.real), emit(x, y.imag))
    if not isinstance(y, Complex):
        return Complex(emit(x.real, y), emit(x.imag, y))
    return x, y


def _bilinear(c: Converter, emit: Any, x: Any, y: Any) -> Complex:
    found = _product(emit, x, y)
    if isinstance(found, Complex):
        return found
    real = c.emit("{} - {}", emit(x.real, y.real), emit(x.imag, y.imag))
    return Complex(real, c.emit("{} + {}", emit(x.real, y.imag), emit(x.imag, y.real)))


def _times(names: str, function: str) -> Rule:
    first, second = names.split()

    def rule(c: Converter, a: Arguments) -> Complex:
        return _bilinear(c, lambda x, y: c.emit(function, x, y), a[first], a[second])

    return rule


def _einsum(c: Converter, a: Arguments) -> Complex:
    if len(a["tensors"]) != 2:
        raise Unsupported("has complex numbers and not two operands; use several einsum")
    return _bilinear(c, lambda x, y: c.emit("einsum", a["equation"], x, y), *a["tensors"])


def _div(c: Converter, a: Arguments) -> Complex:
    x, y = a["self"], a["other"]
    if isinstance(y, Complex):
        size = c.emit("{} + {}", c.emit("square", y.real), c.emit("square", y.imag))
        opposite = Complex(y.real, c.emit("neg", y.imag))
        x, y = _bilinear(c, lambda p, q: c.emit("{} * {}", p, q), x, opposite), size
    return Complex(c.emit("{} / {}", x.real, y), c.emit("{} / {}", x.imag, y))


def _exp(c: Converter, a: Arguments) -> Complex:
    return _polar(c, {"abs": c.emit("exp", a["self"].real), "angle": a["self"].imag})


def _polar(c: Converter, a: Arguments) -> Complex:
    size, angle = a["abs"], a["angle"]
    parts = (c.emit("{} * {}", size, c.emit(function, angle)) for function in ("cos", "sin"))
    return Complex(*parts)


def _pair(c: Converter, x: Complex) -> Any:
    return c.emit("stack", (x.real, x.imag), -1)


def _last(c: Converter, x: Any, k: int) -> Any:
    return c.emit(f"{{}}[{':, ' * (len(c.shape(x)) - 1)}{k}]", x)


# Operators with another rule for complex operands.
OF_COMPLEX: dict[str, Rule] = {
    "aten.real": lambda c, a: parts_of(a["self"], "real"),
    "aten.imag": lambda c, a: a["self"].imag,
    "aten.view_as_real": lambda c, a: _pair(c, a["self"]),
    "aten.abs": lambda c, a: c.emit("norm", _pair(c, a["self"]), 2, -1),  # with the gradient 0 at 0
    "aten.angle": lambda c, a: c.emit("atan2", a["self"].imag, a["self"].real),
    **dict.fromkeys(
        ("aten._conj", "aten.conj_physical"),
        lambda c, a: Complex(a["self"].real, c.emit("neg", a["self"].imag)),
    ),
    "aten.resolve_conj": lambda c, a: a["self"],
    "aten.mul": _times("self other", "{} * {}"),
    "aten.matmul": _times("self other", "matmul"),
    "aten.bmm": _times("self mat2", "bmm"),
    "aten.mm": _times("self mat2", "matmul"),
    "aten.einsum": _einsum,
    "aten.div": _div,
    "aten.exp": _exp,
}


# Fourier transforms

SCALES = {
    None: (0.0, 1.0),
    "backward": (0.0, 1.0),
    "ortho": (0.5, 0.5),
    "forward": (1.0, 0.0),
}  # norm -> powers of 1 / n, of a transform and of an inverse one


def _waves(rows: int, columns: int, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """cos and sin of 2 pi j k / n; rows from n on are 0, which cuts elements off."""
    j, k = np.arange(rows)[:, None], np.arange(columns)[None]
    angle = 2.0 * math.pi * (j * k % n) / n
    shown = (j < n).astype(np.float64)
    return np.cos(angle) * shown, np.sin(angle) * shown


def _extent(c: Converter, x: Any, dim: int) -> int:
    extent = c.shape(x)[dim]
    if extent is None:
        raise Unsupported("transforms the batch; use another axis")
    return extent


def _product_along(c: Converter, x: Any, dim: int, rank: int, matrix: NDArray[Any]) -> Any:
    """x with an axis multiplied by a matrix [extent, new extent]."""
    product = c.constant(matrix.astype(np.float32))
    if dim == rank - 1:
        return c.emit("matmul", x, product)
    return c.emit("movedim", c.emit("matmul", c.emit("movedim", x, dim, -1), product), -1, dim)


def _along_axis(
    c: Converter, x: Any, dim: int, rank: int, extent: int, n: int, scale: float, inverse: bool, real: bool
) -> Any:
    """The transform of n points along an axis of `extent` elements. real: from real numbers, or to real numbers if
    inverse."""
    half = n // 2 + 1

    def along(part: Any, matrix: NDArray[Any]) -> Any:
        return _product_along(c, part, dim, rank, matrix * scale)

    if real and inverse:
        cos, sin = _waves(extent, n, n)
        k = np.arange(extent)[:, None]
        weight = np.where((k == 0) | (2 * k == n), 1.0, 2.0) * (k < half)
        if not isinstance(x, Complex):
            return along(x, cos * weight)
        return c.emit("{} - {}", along(x.real, cos * weight), along(x.imag, sin * weight))
    cos, sin = _waves(extent, half if real else n, n)
    sin = sin if inverse else -sin
    if not isinstance(x, Complex):
        return Complex(along(x, cos), along(x, sin))
    parts = ("{} - {}", along(x.real, cos), along(x.imag, sin))
    return Complex(c.emit(*parts), c.emit("{} + {}", along(x.real, sin), along(x.imag, cos)))


def _transform(inverse: bool, real: bool, axes: tuple[int, ...] | None) -> Rule:
    """A transform along `axes`, if the call names no others. None: the last axes, as many as the call has sizes, or
    all. real: the transform of the last axis is from real numbers, and is computed first; if inverse, it is to real
    numbers, and is computed last."""

    def rule(c: Converter, a: Arguments) -> Any:
        x, power = a["self"], SCALES[a.get("norm")][inverse]
        first = x.real if isinstance(x, Complex) else x
        rank, sizes = len(c.shape(first)), _numbers(a.get("n", a.get("s")))
        dims = _numbers(a.get("dim")) or axes or tuple(range(-(len(sizes) or rank), 0))
        order = list(zip(dims, sizes or (-1,) * len(dims), strict=True))
        for k, (d, size) in enumerate(order if inverse else order[::-1]):
            halved = real and k == (len(order) - 1 if inverse else 0)
            dim = axis(c, first, d)
            extent = _extent(c, first, dim)
            n = size if size > 0 else 2 * (extent - 1) if halved and inverse else extent
            x = _along_axis(c, x, dim, rank, extent, n, float(n) ** -power, inverse, halved)
        return x

    return rule


def _numbers(given: Any) -> tuple[int, ...]:
    return () if given is None else (given,) if isinstance(given, int) else tuple(given)


def _short_time(c: Converter, a: Arguments) -> Any:
    """stft of a signal that PyTorch has padded: windows, then a transform of each."""
    x, n, window = a["self"], a["n_fft"], a.get("window")
    hop = a.get("hop_length") or n // 4
    if a.get("win_length") not in (None, n):
        raise Unsupported("has a win_length that is not n_fft; pad the window with zeros")
    rank = len(c.shape(x))
    frames = INDEXING["aten.unfold"](c, {"self": x, "dimension": rank - 1, "size": n, "step": hop})
    if window is not None:
        frames = c.emit("{} * {}", frames, window)
    onesided = a.get("onesided") is not False
    scale = n**-0.5 if a.get("normalized") else 1.0
    cos, sin = _waves(n, n // 2 + 1 if onesided else n, n)
    parts = [c.emit("matmul", frames, c.constant((m * scale).astype(np.float32))) for m in (cos, -sin)]
    found = Complex(*(c.emit("transpose", part, rank - 1, rank) for part in parts))
    return found if a.get("return_complex") else _pair(c, found)


# Operators that make complex numbers of real numbers, and transforms.
COMPLEX: dict[str, Rule] = {
    "aten.view_as_complex": lambda c, a: Complex(_last(c, a["self"], 0), _last(c, a["self"], 1)),
    "aten.complex": lambda c, a: Complex(a["real"], a["imag"]),
    "aten.polar": _polar,
    **{
        f"aten.fft_{kind}fft{name}": _transform("i" in kind, "r" in kind, axes)
        for kind in ("", "i", "r", "ir")
        for name, axes in (("", (-1,)), ("2", (-2, -1)), ("n", None))
    },
    "aten.stft": _short_time,
}


def rule_of(key: str, arguments: Mapping[str, Any], table: Mapping[str, Rule]) -> Rule | None:
    """The rule of an operator with complex arguments, or that creates complex numbers; None for other operators. Raises
    Unsupported."""
    of_complex = any(is_complex(v) for v in arguments.values())
    if not of_complex and arguments.get("dtype") != "complex64":
        return None
    if key in COMPLEX and of_complex:
        return COMPLEX[key]
    if key in OF_COMPLEX:
        return OF_COMPLEX[key]
    if key in BY_PARTS:
        return lambda c, a: by_parts(table[key], c, a)
    raise Unsupported(
        "has complex numbers; compute with torch.view_as_real, or with the real and imaginary parts"
    )
