"""Which extent of a tensor of ONNX is the batch, and computations with the number of samples."""

import numpy as np
import pytest
from onnx_networks import model

import autodiff_gen as ag
from autodiff_gen.check import compare_onnx
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.ir.interpreter import evaluate


@pytest.mark.parametrize("batch", (2, 3))
def test_sequences_are_not_taken_for_the_batch(batch):
    """... where they are as long as the largest batch: of three, the samples are the second axis."""
    text = """net (float[n,3,2] x) => (float[n,2] y) {
        t = Transpose <perm = [1, 0, 2]> (x)
        r = Reshape (t, rows)
        doubled = Add (r, r)
        shape = Shape <start = 0, end = 1> (x)
        sizes = Concat <axis = 0> (three, shape, two)
        s = Reshape (doubled, sizes)
        y = ReduceMax <axes = [0], keepdims = 0> (s)
    }"""
    made = model(text, rows=np.int64([-1, 2]), three=np.int64([3]), two=np.int64([2]))
    x = ag.Input("x", (batch, 3, 2), batch_axis=0)
    given = np.random.default_rng(1).normal(size=(batch, 3, 2)).astype(np.float32)
    scores = ag.from_onnx(made)(x)
    assert scores.shape == (x.shape[0], 2), "follows the batch"
    (y,) = evaluate([scores], {x: given})
    np.testing.assert_array_equal(y, 2 * given.max(1))


@pytest.mark.parametrize("batch", (3, 4))
def test_the_batch_is_minus_one_after_as_many_steps_as_samples(batch):
    """A size of 4 is not taken for the largest batch where -1 is the batch: what nn.Transformer is exported as."""
    text = """net (float[n,4,2] x) => (float[n,4,2] y) {
        t = Transpose <perm = [1, 0, 2]> (x)
        rows = Reshape (t, of_rows)
        apart = Reshape (rows, of_steps)
        back = Transpose <perm = [1, 0, 2]> (apart)
        y = Sub (x, back)
    }"""
    made = model(text, of_rows=np.int64([-1, 2]), of_steps=np.int64([4, -1, 2]))
    x = ag.Input("x", (batch, 4, 2), batch_axis=0)
    (y,) = evaluate([ag.from_onnx(made)(x)], {x: np.random.default_rng(1).normal(size=(batch, 4, 2))})
    assert not y.any()


def test_integers_of_the_shape_of_the_batch():
    """... such as the token types of BERT."""
    text = """net (float[n,3] x) => (float[n,3,2] y) {
        shape = Shape (x)
        types = ConstantOfShape <value = int64[1] {1}> (shape)
        y = Gather (table, types)
    }"""
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    x = ag.Input("x", (2, 3), batch_axis=0)
    net = ag.from_onnx(model(text, table=table))
    (y,) = evaluate([net(x)], {x: np.zeros((2, 3)), **dict.fromkeys(net.parameters(), table)})
    np.testing.assert_array_equal(y, np.broadcast_to([2.0, 3.0], (2, 3, 2)))


BY_THE_BATCH = """net (float[n,4] x) => (float[n,4] y) {{
    shape = Shape (x)
    size = Gather (shape, zero)
    twice = Mul (size, two)
    number = Cast <to = 1> ({size})
    {more}
    y = {op} (x, number)
}}"""


@pytest.mark.parametrize(
    "text",
    (
        BY_THE_BATCH.format(size="size", more="", op="Div"),
        BY_THE_BATCH.format(size="twice", more="", op="Mul"),
        BY_THE_BATCH.format(size="size", more="", op="Sub"),
        BY_THE_BATCH.replace("number)", "inverse)").format(
            size="size", more="less = Sub (number, half)\n    inverse = Div (half, less)", op="Mul"
        ),
    ),
)
def test_a_number_of_samples_as_a_float(text):
    made = model(text, zero=np.int64(0), two=np.int64(2), half=np.float32(0.5))
    report, good = compare_onnx.compare(convert(made, "net"), made, "net")
    assert good, report
