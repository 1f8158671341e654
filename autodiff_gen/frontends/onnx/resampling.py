"""Rules of the table: images of another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.rules import Arguments, Rule, Unsupported
from .folding import is_batch


def _resize(c: Any, a: Arguments) -> Any:
    """Nearest neighbours and bilinear images by our function `interpolate`; other modes by a product with a matrix for
    each axis, which the reference implementation computes."""
    x = a["X"]
    if None in c.shape(x)[1:]:
        raise Unsupported("has a spatial axis that depends on the batch; use numbers")
    for name in ("axes", "keep_aspect_ratio_policy", "nearest_mode", "cubic_coeff_a"):
        a.get(name)  # The reference implementation reads these attributes from the node.
    wanted = _resized(c, a)
    scales = None if a.get("scales") is None else c.array(a["scales"], "scales").reshape(-1)
    shape = c.shape(x)
    regions = _regions(c, a)
    axes = [
        k
        for k, (d, s) in enumerate(zip(shape, wanted, strict=True))
        if d is not None and (d != s or regions.get(k, (0, 1)) != (0, 1))
    ]
    images = len(shape) == 4 and set(axes) <= {2, 3} and not a.get("antialias")
    exact = scales is None or all(shape[k] * float(scales[_index(c, a, k)]) == wanted[k] for k in axes)
    kind = a["mode"], a["coordinate_transformation_mode"]
    if images and exact and kind == ("nearest", "asymmetric") and a["nearest_mode"] == "floor":
        return c.emit("interpolate", x, wanted[2:])
    aligned = kind == ("linear", "align_corners")
    halves = kind == ("linear", "half_pixel")
    # The two kinds differ only for an extent of 1.
    halves |= kind == ("linear", "pytorch_half_pixel") and all(wanted[k] > 1 for k in axes)
    if images and exact and (aligned or halves):
        options = {"align_corners": True} if aligned else {}
        return c.emit("interpolate", x, wanted[2:], mode="bilinear", **options)
    for axis in axes:
        weights = _axis_weights(c, a, axis, shape[axis], wanted[axis], regions)
        y = c.emit("matmul", c.emit("movedim", x, axis, -1), c.constant(weights))
        x = c.emit("movedim", y, -1, axis)
    if regions and a.get("extrapolation_value"):  # elements outside the region are 0 so far
        zeros = np.zeros([1, *shape[1:]], np.float32)
        x = c.emit("{} + {}", x, c.constant(_reference(c, a, zeros)))
    return x


def _regions(c: Any, a: Arguments) -> dict[int, tuple[float, float]]:
    """The region of a cropped image: axis -> where the region begins and ends, relative to the extent."""
    if a["coordinate_transformation_mode"] != "tf_crop_and_resize":
        return {}
    rank = len(c.shape(a["X"]))
    axes = [k % rank for k in a.get("axes") or range(rank)]
    roi = c.array(a["roi"], "a region of interest").reshape(-1).tolist()
    return {axis: (roi[k], roi[k + len(axes)]) for k, axis in enumerate(axes)}


def _resized(c: Any, a: Arguments) -> tuple[int, ...]:
    """The result's shape for a batch of 1."""
    shape = [1 if d is None else d for d in c.shape(a["X"])]
    return tuple(_reference(c, a, np.zeros(shape, np.float32)).shape)


def _axis_weights(c: Any, a: Arguments, axis: int, size: int, wanted: int, regions: Any) -> Any:
    """The matrix [size, wanted] of an axis: the result is linear in the input, axis by axis."""
    from onnx import helper

    node = c.node.proto
    names = {
        "coordinate_transformation_mode",
        "cubic_coeff_a",
        "mode",
        "nearest_mode",
        "exclude_outside",
        "antialias",
    }
    attributes = {k: a[k] for k in names if a.get(k) is not None}
    by_scale = a.get("scales") is not None
    given = {
        "s": np.asarray([1, c.array(a["scales"], "scales").reshape(-1)[_index(c, a, axis)]], np.float32)
        if by_scale
        else np.asarray([size, wanted], np.int64)
    }
    begin, end = regions.get(axis, (0, 1))
    given["r"] = np.asarray([0, begin, 1, end], np.float32)
    inputs = ["x", "r", "s"] if by_scale else ["x", "r", "", "s"]
    made = helper.make_node(node.op_type, inputs, ["y"], **attributes)
    return c.reference(made, {"x": np.eye(size, dtype=np.float32), **given})


def _index(c: Any, a: Arguments, axis: int) -> int:
    """The place of an axis in `scales`."""
    rank = len(c.shape(a["X"]))
    return axis if not a.get("axes") else [x % rank for x in a["axes"]].index(axis)


def _reference(c: Any, a: Arguments, x: Any) -> Any:
    node = c.node.proto
    names = zip(node.input[1:], ("roi", "scales", "sizes"), strict=False)
    given = {n: _with_one_sample(c.array(c.known[n], what)) for n, what in names if n}
    return c.reference(node, {node.input[0]: x, **given})


def _with_one_sample(array: Any) -> Any:
    """A constant with sizes of the batch replaced by 1, as in `_resized`."""
    return np.where(is_batch(array), 1, array).astype(array.dtype) if array.dtype.kind == "i" else array


def _affine_grid(c: Any, a: Arguments) -> Any:
    size = tuple(1 if is_batch(d) else int(d) for d in c.numbers(a["size"], "size"))  # the batch of theta
    if len(size) != 4:
        raise Unsupported("has volumes; images have two axes")
    return c.emit("affine_grid", a["theta"], size, **({"align_corners": True} if a["align_corners"] else {}))


def _grid_sample(c: Any, a: Arguments) -> Any:
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(a["mode"], a["mode"])
    padding = a["padding_mode"]
    if len(c.shape(a["X"])) != 4:
        raise Unsupported("has volumes; images have two axes")
    options: dict[str, Any] = {} if mode == "bilinear" else {"mode": mode}
    options |= {} if padding == "zeros" else {"padding_mode": padding}
    options |= {"align_corners": True} if a["align_corners"] else {}
    return c.emit("grid_sample", a["X"], c.operand(a["grid"]), **options)


RESAMPLING: dict[str, Rule] = {"AffineGrid": _affine_grid, "GridSample": _grid_sample, "Resize": _resize}
