"""Operands that no op takes: each is rejected in one line that names the op and the rule."""

from __future__ import annotations

from typing import Any

import pytest

from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import apply_node, make_input
from autodiff_gen.ir.types import Dim, Type, dtype, f32, s32
from autodiff_gen.ops.images.avg_pooling import averaging
from autodiff_gen.ops.images.convolution import convolving
from autodiff_gen.ops.images.depthwise import depthwise
from autodiff_gen.ops.images.max_pooling import pooling

n = Dim(1, 4)

# op, operand types, attributes, part of the message
REJECTED: list[tuple[str, list[Type], dict[str, Any], str]] = [
    (
        "add",
        [Type(f32, (2, 3)), Type(f32, (4,))],
        {},
        r"add\(a: f32\[2,3\], b: f32\[4\]\): shapes .* do not broadcast",
    ),
    ("add", [Type(f32, (2,)), Type(s32, (2,))], {}, "dtypes differ; convert with F.to"),
    ("add", [Type(dtype("u8"), (2,)), Type(dtype("u8"), (2,))], {}, "needs floats, s32 or u32, not u8"),
    ("add", [Type(f32, (Dim(1, 4),)), Type(f32, (4,))], {}, "do not broadcast: n against 4"),
    ("exp", [Type(s32, (2,))], {}, "needs a float, not s32"),
    ("where", [Type(f32, (2,)), Type(f32, (2,)), Type(f32, (2,))], {}, "the condition must be a mask"),
    ("logical_and", [Type(f32, (2,)), Type(f32, (2,))], {}, "needs masks"),
    ("sum", [Type(f32, (2, 3))], {"axes": (2,), "keepdim": False}, "axis 2 is out of range for 2 axes"),
    ("sum", [Type(f32, (2, 3))], {"axes": (0, 0), "keepdim": False}, "an axis is named twice"),
    ("sum", [Type(dtype("bool"), (2,))], {"axes": (0,), "keepdim": False}, "needs a float, not bool"),
    ("max_with_index", [Type(f32, (2, 3))], {"axes": (0, 1), "keepdim": False}, "needs one axis"),
    ("prod", [Type(f32, (2, 3))], {"axes": (0, 1), "keepdim": False}, "needs one axis"),
    ("gelu", [Type(s32, (2,))], {}, "needs a float, not s32"),
    ("hardtanh", [Type(s32, (2,))], {"min_val": 0.0, "max_val": 1.0}, "needs a float, not s32"),
    ("floor", [Type(dtype("u8"), (2,))], {}, "needs a float, not u8"),
    (
        "matmul",
        [Type(f32, (2, 3)), Type(f32, (4, 5))],
        {},
        "the inner extents differ: 3 columns against 4 rows",
    ),
    ("pick", [Type(f32, (2, 3)), Type(f32, (2,))], {}, "the index must be of an integer dtype, not f32"),
    (
        "pick",
        [Type(f32, (2, 3)), Type(s32, (3,))],
        {},
        "the index must have the first operand's shape less its last",
    ),
    ("avg_pool2d", [Type(f32, (2, 3, 4))], averaging((2, 2), (2, 2)), r"needs 4 axes, \[n, h, w, c\], not 3"),
    ("avg_pool2d", [Type(s32, (1, 4, 4, 1))], averaging((2, 2), (2, 2)), "needs a float, not s32"),
    (
        "avg_pool2d",
        [Type(f32, (1, Dim(1, 4), 4, 1))],
        averaging((2, 2), (2, 2)),
        "only the first axis may be the batch axis",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((5, 2), (1, 1)),
        "a window of 5 does not fit into 4 with padding 0 and 0 along the height",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((2, 2), (0, 1)),
        r"stride=\(0, 1\): must be integers of at",
    ),
    (
        "avg_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        averaging((2, 2), (1, 1), (2, 0, 0, 0)),
        r"padding=\(2, 0, 0, 0\) is more than half of kernel_size=\(2, 2\)",
    ),
    (
        "avg_pool2d_dx",
        [Type(f32, (1, 2, 3, 1))],
        {**averaging((2, 2), (2, 2)), "size": (4, 4)},
        r"the gradient of an image of \[4, 4\] has \[2, 2\] windows",
    ),
    *(
        ("conv2d", [Type(f32, x), Type(f32, w)], attrs, message)
        for x, w, attrs, message in (
            (
                (1, 4, 4, 3),
                (2, 3, 3, 2),
                convolving(),
                r"the image has 3 channels, the weights are for 2 \(groups=1\)",
            ),
            (
                (1, 4, 4, 4),
                (2, 3, 3, 2),
                convolving(),
                r"the image has 4 channels, the weights are for 2 \(groups=1\)",
            ),
            (
                (1, 4, 4, 4),
                (3, 3, 3, 2),
                convolving(groups=2),
                "groups=2 must divide the 4 input channels and the 3 output",
            ),
            ((1, 4, 4, 4), (3, 3, 3, 2), convolving(groups=0), "groups=0 must divide"),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(dilation=(1, 2)),
                "a window of 5 does not fit into 4 .* along the width",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(dilation=(1, 0)),
                r"dilation=\(1, 0\): must be integers of at least 1",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3, 1),
                convolving(padding=(0, -1, 0, 0)),
                r"padding=\(0, -1, 0, 0\): must be",
            ),
            (
                (1, 4, 4, 1),
                (2, 3, 3),
                convolving(),
                r"the weights need 4 fixed axes, \[o, kh, kw, c / groups\]",
            ),
            ((Dim(1, 4), 4, 4, 1), (Dim(1, 4), 3, 3, 1), convolving(), "the weights need 4 fixed axes"),
            ((1, 4, 4), (2, 3, 3, 1), convolving(), r"needs 4 axes, \[n, h, w, c\], not 3"),
        )
    ),
    ("conv2d", [Type(f32, (1, 4, 4, 1)), Type(s32, (1, 1, 1, 1))], convolving(), "dtypes differ"),
    (
        "conv2d_dx",
        [Type(f32, (1, 2, 2, 3)), Type(f32, (3, 2, 2, 1))],
        {**convolving(), "size": (4, 4)},
        r"the result for an image of \[4, 4\] is \[n, 3, 3, 3\]",
    ),
    (
        "conv2d_dw",
        [Type(f32, (2, 3, 3, 1)), Type(f32, (1, 2, 2, 1))],
        {**convolving(), "kernel": (2, 2)},
        "2 images against 1 gradients",
    ),
    (
        "depthwise2d",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (2, 2, 3))],
        depthwise(),
        r"the weights must be \[kh, kw, 2\]",
    ),
    (
        "depthwise2d_dx",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (2, 2, 2))],
        {**depthwise(), "size": (3, 3)},
        r"the result for an image of \[3, 3\] is \[n, 2, 2, 2\]",
    ),
    (
        "depthwise2d_dw",
        [Type(f32, (1, 3, 3, 2)), Type(f32, (1, 2, 2, 1))],
        {**depthwise(), "kernel": (2, 2)},
        "both operands must have the same number of images and channels",
    ),
    (
        "max_pool2d",
        [Type(f32, (1, 40, 40, 1))],
        pooling((17, 16), (1, 1)),
        "a window of 17 x 16 elements is larger than 256; pool along one axis, then along the other",
    ),
    (
        "max_pool2d",
        [Type(f32, (1, 4, 4, 1))],
        pooling((3, 3), (1, 1), (2, 2, 0, 0)),
        r"padding=\(2, 2, 0, 0\) is more than half of a window, which spans 3",
    ),
    (
        "max_pool2d_dx",
        [Type(f32, (1, 2, 2, 1)), Type(dtype("u8"), (1, 1, 1, 1))],
        {**pooling((2, 2), (2, 2)), "size": (4, 4)},
        r"the index must be u8 of shape \[1, 2, 2, 1\]",
    ),
    (
        "max_pool2d_pick",
        [Type(f32, (1, 4, 4, 1)), Type(s32, (1, 2, 2, 1))],
        pooling((2, 2), (2, 2)),
        r"the index must be u8 of shape \[1, 2, 2, 1\]",
    ),
    ("reshape", [Type(f32, (2, 3))], {"shape": (4,)}, r"6 elements do not fill the shape \[4\]"),
    ("permute", [Type(f32, (2, 3))], {"dims": (0, 0)}, "is no permutation of 2 axes"),
    ("broadcast_to", [Type(f32, (2, 3))], {"shape": (2, 4)}, "do not broadcast|cannot be broadcast"),
    ("gather", [Type(f32, (2, 3)), Type(f32, (2, 1))], {"dim": 1}, "must be of an integer dtype, not f32"),
    (
        "gather",
        [Type(f32, (2, 3)), Type(s32, (1, 1))],
        {"dim": 1},
        "the first operand's extents, except along axis 1",
    ),
    ("gather", [Type(f32, (n, 3)), Type(s32, (2, 3))], {"dim": 0}, "axis 0 is the batch axis"),
    ("index_select", [Type(f32, (2, 3)), Type(s32, (2,))], {"dim": 2}, "dim=2 is out of range for 2 axes"),
    ("index_select", [Type(f32, (n, 3)), Type(s32, (n,))], {"dim": 1}, "cannot both have the batch axis"),
    (
        "scatter_sum",
        [Type(dtype("u8"), (2,)), Type(f32, (2,))],
        {"dim": 0, "size": 2},
        "must be of s32, not u8",
    ),
    ("scatter_sum", [Type(s32, (2,)), Type(f32, (3,))], {"dim": 0, "size": 2}, "must have the same shape"),
    (
        "scatter_sum",
        [Type(s32, (2,)), Type(s32, (2,))],
        {"dim": 0, "size": 2},
        "needs floats to add, not s32",
    ),
    (
        "index_sum",
        [Type(s32, (2,)), Type(f32, (3, 2))],
        {"dim": 0, "size": 2},
        "the values' extents from axis 0 on",
    ),
    (
        "index_sum",
        [Type(s32, (n,)), Type(f32, (2, n))],
        {"dim": 1, "size": 3},
        "the batch axis must come first",
    ),
    ("column_sums", [Type(f32, (2, 3, 4))], {}, "needs a matrix of floats"),
    ("column_sums", [Type(s32, (2, 3))], {}, "needs a matrix of floats"),
    ("cumsum", [Type(f32, (2, n))], {"dim": 0, "reverse": False}, "the batch axis must come first"),
    *(
        ("slice", [Type(f32, (5,))], {"shape": (taken,), "starts": (start,), "steps": (step,)}, "has no")
        for taken, start, step in ((4, 2, 1), (0, 0, 1), (2, -1, 1), (3, 3, -2), (2, 0, 0))
    ),
    (
        "slice",
        [Type(f32, (5,))],
        {"shape": (1, 1), "starts": (0,), "steps": (1,)},
        "a window of .* needs 1 extents",
    ),
    ("slice", [Type(f32, (n,))], {"shape": (n,), "starts": (0,), "steps": (-1,)}, "can only be taken whole"),
    (
        "assemble",
        [Type(f32, (2,)), Type(f32, (2,))],
        {"shape": (4,), "starts": ((0,), (1,)), "steps": ((1,), (1,)), "fill": 0.0},
        "parts 0 and 1 overlap",
    ),
]


def test_wrong_operands_are_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    for name, types, attrs, message in REJECTED:
        with subtests.test(f"{name}: {message}"):
            inputs = [make_input("abc"[i], t) for i, t in enumerate(types)]
            with pytest.raises(ShapeError, match=message) as caught:
                apply_node(name, *inputs, **attrs)
            assert str(caught.value).startswith(f"{name}(") and "\n" not in str(caught.value)
