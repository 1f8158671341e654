"""Operators of ONNX with their forms of operands: branches and loops, sequences, indices, masks, random numbers."""

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from onnx_networks import NUMBERS, model, of_nodes

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.check import compare_onnx
from autodiff_gen.errors import ShapeError
from autodiff_gen.frontends.imported.network import network
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.passes.training.resolve_mode import resolved


@pytest.mark.parametrize("condition", (True, False))
def test_a_branch_that_is_known(condition):
    """... which also reads a product: the sum after it is not joined with it then."""
    text = """net (float[n,4] x) => (float[n,4] y) {
        p = MatMul (x, w)
        s = Add (p, b)
        c = If (chosen) <then_branch = a () => (float[n,4] t) { t = Relu (p) },
                         else_branch = d () => (float[n,4] e) { e = Neg (p) }>
        y = Add (s, c)
    }"""
    made = model(text, w=(4, 4), b=(4,), chosen=np.bool_(condition))
    report, good = compare_onnx.compare(convert(made, "net"), made, "net")
    assert good, report


@pytest.mark.parametrize("mode", ("half_pixel", "pytorch_half_pixel"))
def test_bilinear_images_are_interpolated(mode):
    """... whatever attributes of other modes an exporter writes."""
    options = {"mode": "linear", "coordinate_transformation_mode": mode, "nearest_mode": "floor"}
    node = make_node("Resize", ["x", "", "s"], ["y"], **options)
    made = of_nodes(node, shape=("n", 2, 4, 3), s=np.float32([1, 1, 2, 2]))
    program = convert(made, "net")
    assert [call.function for call in program.calls] == ["interpolate"]
    report, good = compare_onnx.compare(program, made, "net")
    assert good, report


@pytest.mark.cc
@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements"])
def test_indices_of_an_input_count_from_the_end(op: str) -> None:
    """... on the host and in the generated C, which rejects an index below -n."""
    from onnx.reference import ReferenceEvaluator

    operands = "x, i, x" if op == "ScatterElements" else "x, i"
    axis = "" if op == "GatherND" else "<axis = 1>"
    shape = "3" if op == "GatherND" else "3,3,4" if op == "Gather" else "3,4"
    places = "3,2" if op == "GatherND" else "3,4"
    made = model(
        f"net (float[3,4] x, int64[{places}] i) => (float[{shape}] y) {{ y = {op} {axis} ({operands}) }}"
    )
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    rows = [[-1, 1], [2, -4], [-3, 0]] if op == "GatherND" else [[-1, 1, -4, 2], [1, -4, 3, 2], [-2, 3, 1, 0]]
    index = np.array(rows)
    inputs = [ag.Input("x", (3, 4)), ag.Input("i", index.shape, dtype="s32")]
    f = ag.function(inputs, [ag.from_onnx(made)(*inputs)]).on_host()
    (want,) = ReferenceEvaluator(made).run(None, {"x": x, "i": index})
    np.testing.assert_array_equal(f(x, index)[0], want)
    index[0, 1] = -5
    words = "outside -4 to 3" if op == "GatherND" else "which gives the index -1, outside 0 to 3"
    with pytest.raises(ShapeError, match=f"is -5, {words}"):
        f(x, index)


def test_a_loop_ends_by_its_condition():
    """... after as many iterations as in the reference implementation; a nested branch reads an iteration's result."""
    text = """net (float[n,4] x) => (float[n,4] y) {
        k, y = Loop (, go, zero, x) <body = b (int64 i, bool on, float count, float[n,4] old)
            => (bool more, float next, float[n,4] new) {
            next = Add (count, one)
            more = Less (next, five)
            early = Less (next, three)
            a = Tanh (old)
            new = If (early) <then_branch = t () => (float[n,4] u) { u = Mul (a, next) },
                              else_branch = e () => (float[n,4] v) { v = Neg (a) }>
        }>
    }"""
    numbers = {"zero": 0, "one": 1, "three": 3, "five": 5}
    made = model(text, go=np.True_, **{n: np.float32(k) for n, k in numbers.items()})
    program = convert(made, "net")
    assert [call.function for call in program.calls].count("tanh") == 5
    report, good = compare_onnx.compare(program, made, "net")
    assert good, report


def test_an_error_without_words_has_its_name(monkeypatch):
    def run(*_):
        raise AssertionError

    monkeypatch.setattr("onnx.reference.ReferenceEvaluator.run", run)
    made = of_nodes(make_node("Neg", ["c"], ["d"]), make_node("Add", ["x", "d"], ["y"]), c=NUMBERS[0, 0, 0])
    with pytest.raises(ag.AutodiffError, match="cannot be computed: its operands do not fit each other"):
        ag.from_onnx(made)


@pytest.mark.parametrize("part", ("s = Constant <value_int = 3> ()", "s = Constant <value_ints = [3, 1]> ()"))
def test_parts_as_a_sequence(part):
    """As PyTorch's exporter writes split: a size, and the last part may be smaller, or the size of each part."""
    text = f"""net (float[n,4] x) => (float[n,3] y) {{
        {part}
        zero = Constant <value_int = 0> ()
        last = Constant <value_int = -1> ()
        a = SplitToSequence <axis = 1> (x, s)
        b = SequenceAt (a, zero)
        c = SequenceAt (a, last)
        d = SplitToSequence <axis = 1, keepdims = 0> (x)
        e = SequenceAt (d, last)
        f = Reshape (e, shape)
        g = Mul (b, f)
        y = Add (g, c)
    }}"""
    made = model(text, shape=np.array([-1, 1], np.int64))
    report, good = compare_onnx.compare(convert(made, "net"), made, "net")
    assert good, report


def test_parts_without_elements_and_one_part():
    text = """net (float[n,4] x) => (float[n,4] y) {
        all = Constant <value_int = 4> ()
        sizes = Constant <value_ints = [0, 4]> ()
        first = Constant <value_int = 0> ()
        last = Constant <value_int = 1> ()
        a = SplitToSequence <axis = 1> (x, all)
        b = SplitToSequence <axis = 1> (x, sizes)
        c = SplitToSequence <axis = 0> (rows, last)
        d = Identity (c)
        e = SequenceAt (a, first)
        f = SequenceAt (b, last)
        g = SequenceAt (d, last)
        h = Mul (e, f)
        y = Mul (h, g)
    }"""
    made = model(text, rows=np.arange(8, dtype=np.float32).reshape(2, 4))
    report, good = compare_onnx.compare(convert(made, "net"), made, "net")
    assert good, report


@pytest.mark.parametrize(
    ("attributes", "shape"),
    (({"batch_dims": 1}, ("n", 3, 4)), ({"batch_dims": 2}, ("n", 2, 3, 4)), ({}, (3, 3, 4))),
    ids=("samples", "rows", "all"),
)
def test_rows_at_tuples_of_indices(attributes, shape):
    """Of each sample, or with tuples of the batch into a tensor without."""
    values = {"x": (onnx.TensorProto.FLOAT, shape), "p": (onnx.TensorProto.FLOAT, ("n", 2, 2))}
    nodes = [
        make_node("Mul", ["p", "three"], ["scaled"]),
        make_node("Cast", ["scaled"], ["index"], to=onnx.TensorProto.INT64),
        make_node("Clip", ["index", "zero", "two"], ["places"]),
        make_node("GatherND", ["x", "places"], ["y"], **attributes),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "net",
        [onnx.helper.make_tensor_value_info(n, *v) for n, v in values.items()],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [
            onnx.numpy_helper.from_array(np.asarray(v), n)
            for n, v in (("three", np.float32(3)), ("zero", np.int64(0)), ("two", np.int64(2)))
        ],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    report, good = compare_onnx.compare(convert(made, "net"), made, "net")
    assert good, report


@pytest.mark.parametrize(
    ("node", "mean"),
    (
        (make_node("RandomNormalLike", ["x"], ["r"], mean=1.5, scale=2.0, seed=3.0), 1.5),
        (make_node("RandomNormal", [], ["r"], shape=[4]), 0.0),
        (make_node("RandomUniformLike", ["x"], ["r"], low=-1.0, high=2.0), 0.5),
        (make_node("RandomUniform", [], ["r"], shape=[1, 4], dtype=1), 0.5),
    ),
)
def test_random_numbers_are_new_in_each_step_and_their_mean_in_evaluation(node, mean):
    """As PyTorch's are that are imported."""
    net = network(convert(of_nodes(node, make_node("Mul", ["x", "r"], ["y"])), "net"), "net")
    x = ag.Input("x", (3, 4))
    given = np.float32(np.arange(12).reshape(3, 4))
    np.testing.assert_allclose(
        ag.function([x], [resolved([net(x)], False).roots[0]]).on_host()(given)[0], given * mean
    )
    trained = ag.Model(
        [x], [], {"y": net(x)}, F.mean(F.square(net(x) * ag.Param("w", [1.0]))), optim.SGD(lr=0.0)
    )
    trainer = trained.on_host()
    assert len({float(trainer.train_step(given)) for _ in range(3)}) == 3


def test_a_zip_map_is_the_tensor():
    node = make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[1, 2, 3, 4])
    program = convert(of_nodes(node, make_node("Relu", ["y"], ["z"]), outputs=("z",)), "net")
    assert [call.function for call in program.calls] == ["relu"]


MASK = np.eye(3, 4) > 0

# Operands that are computed, indices from the end, masks: nodes of x [3, 4], and constants.
OPERANDS = {
    "Clip, both": (
        "l = ReduceMin <keepdims = 0> (x) h = ReduceMax <keepdims = 0> (x) a = Div (l, two) b = Div (h, two) "
        "y = Clip (x, a, b)",
        {"two": np.float32(2)},
    ),
    "Clip, one": ("h = ReduceMean <keepdims = 0> (x) y = Clip (x, , h)", {}),
    "Pad": (
        "h = ReduceMax <keepdims = 0> (x) y = Pad (x, sides, h)",
        {"sides": np.array([1, 1, 0, 2])},
    ),
    "axes that are folded": (
        "one = Constant <value = int64[1] {1}> () axis = Sub (one, zero) y = ReduceSum (x, axis)",
        {"zero": np.array([0])},
    ),
    "Gemm": (
        "w = Tanh (x) b = ReduceSum (x, one) c = Squeeze (b, one) y = Gemm <transB = 1> (x, w, c)",
        {"one": np.array([1])},
    ),
    "LayerNormalization": (
        "s = ReduceMean <keepdims = 0> (x, zero) y = LayerNormalization (x, s, s)",
        {"zero": np.array([0])},
    ),
    "Conv of a constant": (
        "w = Unsqueeze (x, two) y = Conv (image, w)",
        {"two": np.array([2, 3]), "image": np.ones((1, 4, 2, 2), np.float32)},
    ),
    "OneHot": (
        "i = ArgMax <axis = 1, keepdims = 0> (x) k = Sub (i, five) y = OneHot <axis = 0> (k, five, values)",
        {"five": np.array(5), "values": np.float32([-2, 3])},
    ),
    "OneHot, values": (
        "l = ReduceMin (x) h = ReduceMax (x) a = Concat <axis = 0> (l, h) v = Reshape (a, all) "
        "y = OneHot (places, five, v)",
        {"five": np.array(5), "places": np.array([1, -1]), "all": np.array([-1])},
    ),
    "GatherND": ("y = GatherND (x, places)", {"places": np.array([[0, -1], [-3, -4]])}),
    "ScatterND": (
        "y = ScatterND (x, places, updates)",
        {"places": np.array([[0, -1], [-3, -4]]), "updates": np.float32([9, 8])},
    ),
    "IsInf, IsNaN": ("l = Log (x) a = IsInf (l) b = IsNaN (l) c = Or (a, b) y = Where (c, x, l)", {}),
    "masks": (
        "n = Not (mask) p = Greater (x, zero) k = And (p, n) y = Where (k, x, zero)",
        {"mask": MASK, "zero": np.float32(0)},
    ),
    "EyeLike": ("e = EyeLike <dtype = 9> (x) n = Not (e) y = Where (n, x, zero)", {"zero": np.float32(0)}),
    "Compress": ("y = Compress <axis = 1> (x, mask)", {"mask": MASK[0] | MASK[2]}),
    "NonZero": ("n = Not (mask) i = NonZero (n) t = Transpose (i) y = GatherND (x, t)", {"mask": MASK}),
}


def test_operands_that_are_computed_and_constant_masks(subtests):
    from onnx.reference import ReferenceEvaluator

    array = np.random.default_rng(6).normal(size=(3, 4)).astype("f4")
    array[1, 2] = 0
    for name, (text, constants) in OPERANDS.items():
        with subtests.test(name), np.errstate(all="ignore"):
            made = model(f"net (float[3,4] x) => (float[n] y) {{ {text} }}", opset=18, **constants)
            x = ag.Input("x", array.shape)
            net = ag.from_onnx(made)
            y, state = net(x), net.state_dict()
            (found,) = evaluate([y], {x: array, **{v: state[n] for n, v in net.named_parameters()}})
            (wanted,) = ReferenceEvaluator(made).run(None, {"x": array})
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
