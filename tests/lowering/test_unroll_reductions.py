"""Which sums are written out, which grow side by side, and which keep loops of their own."""

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.files import emit


def body(make, *shapes):
    """The C of a function of inputs x0, x1, ..."""
    xs = [ag.Input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    text = emit(compile_function(ag.function(xs, [make(*xs)]), "f"))["f.c"]
    return text[text.index("/* 1 ") : text.index("return F_OK")]


def dot(a, b):
    return F.sum(a * b, 1)


@pytest.mark.parametrize(
    "make, shapes, has, has_not",
    [
        (
            dot,
            [(3, 4), (3, 4)],
            ["x0[i * 4 + 0] * x1[i * 4 + 0] + x0[i * 4 + 1] * x1[i * 4 + 1] +"],
            ["sum += "],
        ),
        (dot, [(3, 8), (3, 8)], ["x0[i * 8 + 7] * x1[i * 8 + 7];"], ["sum += "]),
        (dot, [(20, 9), (20, 9)], ["sum += x0[i * 9 + j] * x1[i * 9 + j];"], []),
        (lambda a: F.sum(F.exp(a), 1), [(3, 4)], ["sum += ag_expf(x0[i * 4 + j]);"], []),
        (lambda a: F.sum(a, 0), [(9, 2)], ["sum += x0[i * 2 + 0];", "sum2 += x0[i * 2 + 1];"], ["int32_t j"]),
        (lambda a: F.sum(a * a, 0), [(9, 17)], ["sum += x0[j * 17 + i] * x0[j * 17 + i];"], ["sum2"]),
        (lambda a: F.sum(a * a, 0), [(17, 2)], ["sum += x0[j * 2 + i] * x0[j * 2 + i];"], ["sum2"]),
        (lambda a: F.amax(a, 1), [(17, 4)], ["amax = (x0[i * 4 + j] > amax"], ["amax2"]),
    ],
)
def test_shapes_of_sums(make, shapes, has, has_not):
    text = " ".join(body(make, *shapes).split())
    assert all(part in text for part in has), text
    assert not any(part in text for part in has_not), text


def test_what_a_deeper_loop_reads_in_every_turn_is_a_local():
    text = body(lambda a, b: a * F.reshape(b, (3, 1)), (3, 20), (3,))
    assert "const float x1_1 = x1[i];" in text and "x0[i * 20 + j] * x1_1;" in text
