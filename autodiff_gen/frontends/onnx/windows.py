"""Rules of the table: convolutions and pooling; their padding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..imported.program import ValueRef
from ..imported.rules import Arguments, Rule, Unsupported

LOWEST = float(np.finfo(np.float32).min)


class WindowShape(NamedTuple):
    """The windows along the spatial axes. size: extents of the input; kernel: extents of a window; before, after:
    padding."""

    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def equal(self) -> bool:
        """Whether there is the same padding on both sides."""
        return self.before == self.after

    @property
    def padding(self) -> tuple[int, ...]:
        """The padding in the order of F.pad: the last axis first."""
        return tuple(p for both in reversed(list(zip(self.before, self.after, strict=True))) for p in both)


def window_shape(c: Any, a: Arguments, kernel: tuple[int, ...], auto_pad: str | None = None) -> WindowShape:
    """The windows of a node. auto_pad: replaces the attribute. Raises Unsupported for other than one or two spatial
    axes, or if the batch determines a spatial axis."""
    size, axes = tuple(c.shape(a["X"])[2:]), len(c.shape(a["X"])) - 2
    if axes not in (1, 2):
        raise Unsupported(f"has {axes} spatial axes; one and two are supported")
    if None in size:
        raise Unsupported("has a spatial axis that depends on the batch; use numbers")
    stride = tuple(a.get("strides") or (1,) * axes)
    dilation = tuple(a.get("dilations") or (1,) * axes)
    pads = tuple(a.get("pads") or (0,) * (2 * axes))
    before, after = pads[:axes], pads[axes:]
    auto_pad = auto_pad or a["auto_pad"]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        parts = zip(size, kernel, stride, dilation, strict=True)
        totals = [max(0, (math.ceil(d / s) - 1) * s + (k - 1) * e + 1 - d) for d, k, s, e in parts]
        less, more = tuple(t // 2 for t in totals), tuple(t - t // 2 for t in totals)
        before, after = (less, more) if auto_pad == "SAME_UPPER" else (more, less)
    elif auto_pad == "VALID":
        before = after = (0,) * axes
    return WindowShape(size, tuple(kernel), stride, dilation, before, after)


def _conv(c: Any, a: Arguments) -> Any:
    w = window_shape(c, a, tuple(d or 0 for d in c.shape(a["W"])[2:]))
    x, padding = a["X"], w.before
    if not w.equal:
        x, padding = c.emit("pad", x, w.padding), (0,) * len(w.size)
    options = {"stride": w.stride, "padding": padding, "dilation": w.dilation, "groups": a["group"]}
    return c.emit(f"conv{len(w.size)}d", x, *_weights(c, a), **_changed(options))


def _weights(c: Any, a: Arguments) -> list[Any]:
    given = [c.weight(a["W"], "weight"), c.weight(a["B"], "bias")]
    return given if given[1] is not None else given[:1]


def _changed(options: dict[str, Any]) -> dict[str, Any]:
    """The attributes that differ from the defaults of a convolution; a tuple of equal numbers becomes a number."""
    plain = {"padding": 0, "output_padding": 0}
    found = {}
    for name, value in options.items():
        if isinstance(value, tuple) and len(set(value)) == 1:
            value = value[0]
        if value != plain.get(name, 1):
            found[name] = value
    return found


def _conv_transpose(c: Any, a: Arguments) -> Any:
    kernel = tuple(d or 0 for d in c.shape(a["W"])[2:])
    w = window_shape(c, a, kernel, "NOTSET")
    before, after = list(w.before), list(w.after)
    extra = list(a.get("output_padding") or (0,) * len(kernel))
    wanted = a.get("output_shape")
    if wanted is None and a["auto_pad"].startswith("SAME"):
        wanted = tuple(d * s for d, s in zip(w.size, w.stride, strict=True))
    if wanted is not None:
        for k, size in enumerate(wanted[-len(kernel) :]):
            whole = w.stride[k] * (w.size[k] - 1) + (kernel[k] - 1) * w.dilation[k] + 1
            extra[k] = max(extra[k], size - whole)
            total = whole + extra[k] - size
            half = total // 2
            before[k], after[k] = (
                (half, total - half) if a["auto_pad"] == "SAME_UPPER" else (total - half, half)
            )
    options = {
        "stride": w.stride,
        "output_padding": tuple(extra),
        "groups": a["group"],
        "dilation": w.dilation,
    }
    function = f"conv_transpose{len(kernel)}d"
    if before == after:
        return c.emit(function, a["X"], *_weights(c, a), **_changed({**options, "padding": tuple(before)}))
    y = c.emit(function, a["X"], *_weights(c, a), **_changed(options))
    return c.emit(
        "pad", y, w._replace(before=tuple(-p for p in before), after=tuple(-p for p in after)).padding
    )


def _whole_windows(w: WindowShape, ceil_mode: bool) -> WindowShape:
    """The windows, with ceil_mode: with enough padding after the input that the last window is complete."""
    if not ceil_mode:
        return w
    after = []
    for d, k, s, e, p, q in zip(*w, strict=True):
        window = (k - 1) * e + 1
        count = math.ceil((d + p + q - window) / s) + 1
        if (count - 1) * s >= d + p:  # the last one would begin in the padding
            count -= 1
        after.append(max(q, (count - 1) * s + window - d - p))
    return w._replace(after=tuple(after))


def _max_pool(c: Any, a: Arguments) -> Any:
    w = window_shape(c, a, a["kernel_shape"])
    half = all(2 * p <= k for p, k in zip(w.before, w.kernel, strict=True))
    x, padding, ceil = a["X"], w.before, bool(a["ceil_mode"])
    if not w.equal or not half:
        x, padding, ceil = c.emit("pad", x, _whole_windows(w, ceil).padding, value=LOWEST), (0,), False
    options = {"stride": w.stride, "padding": padding, "dilation": w.dilation}
    return [_pooled(c, "max", x, w, options, ceil)]


def _pooled(c: Any, kind: str, x: Any, w: WindowShape, options: dict[str, Any], ceil: bool) -> Any:
    """A call of our pooling, whose default stride is the window."""
    kernel = w.kernel[0] if len(set(w.kernel)) == 1 else w.kernel
    given = _changed({k: v for k, v in options.items() if k != "stride"})
    if w.stride != w.kernel:
        given["stride"] = w.stride[0] if len(set(w.stride)) == 1 else w.stride
    if ceil:
        given["ceil_mode"] = True
    if options.get("count_include_pad") is False:
        given["count_include_pad"] = False
    else:
        given.pop("count_include_pad", None)
    return c.emit(f"{kind}_pool{len(w.size)}d", x, kernel, **given)


def _average_pool(c: Any, a: Arguments) -> Any:
    w = window_shape(c, a, a["kernel_shape"])
    counted, ceil = bool(a["count_include_pad"]), bool(a["ceil_mode"])
    half = all(2 * p <= k for p, k in zip(w.before, w.kernel, strict=True))
    if w.equal and half and not ceil and set(w.dilation) == {1}:
        options = {"stride": w.stride, "padding": w.before, "count_include_pad": counted or not any(w.before)}
        return _pooled(c, "avg", a["X"], w, options, False)
    whole = _whole_windows(w, ceil)
    y = _averaged(c, c.emit("pad", a["X"], whole.padding), w)
    factor = np.float32(1)
    for axis in range(len(w.size)):
        factor = np.multiply.outer(factor, w.kernel[axis] / _elements(w, whole, axis, counted))
    return c.emit("{} * {}", y, c.constant(np.asarray(factor, np.float32)))


def _averaged(c: Any, x: Any, w: WindowShape) -> Any:
    """The average pooling of padded images; where windows have gaps, a convolution of each channel."""
    if set(w.dilation) == {1}:
        return _pooled(c, "avg", x, w, {"stride": w.stride}, False)
    channels = c.shape(x)[1]
    kernel = c.constant(np.full((channels, 1, *w.kernel), 1 / math.prod(w.kernel), np.float32))
    options = {"stride": w.stride, "dilation": w.dilation, "groups": channels}
    return c.emit(f"conv{len(w.size)}d", x, kernel, **_changed(options))


def _elements(w: WindowShape, whole: WindowShape, axis: int, counted: bool) -> Any:
    """How many elements of one axis each window holds: of the input, and if `counted` of its padding."""
    d, k, s, e, before, after = (part[axis] for part in w)
    outputs = (d + before + whole.after[axis] - (k - 1) * e - 1) // s + 1
    places = np.arange(outputs)[:, None] * s + np.arange(k) * e - before
    low, high = (-before, d + after) if counted else (0, d)
    return ((places >= low) & (places < high)).sum(1)


def _global_pool(kind: str) -> Rule:
    def rule(c: Any, a: Arguments) -> Any:
        axes = len(c.shape(a["X"])) - 2
        if axes in (1, 2):
            return c.emit(f"adaptive_{kind}_pool{axes}d", a["X"], 1)
        name = {"avg": "mean", "max": "amax"}[kind]
        return c.emit(name, a["X"], tuple(range(2, axes + 2)), keepdim=True)

    return rule


def _local_response_norm(c: Any, a: Arguments) -> ValueRef:
    if a["size"] % 2 == 0:
        raise Unsupported(f"has size={a['size']}; use an odd number")
    ref: ValueRef = c.emit(
        "local_response_norm", a["X"], a["size"], alpha=a["alpha"], beta=a["beta"], k=a["bias"]
    )
    return ref


WINDOWS: dict[str, Rule] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_pool("avg"),
    "GlobalMaxPool": _global_pool("max"),
    "LRN": _local_response_norm,
    "MaxPool": _max_pool,
}
