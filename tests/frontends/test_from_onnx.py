"""Networks of ONNX as ours: as exporters write them, training, and files."""

import io
import re
import sys
import warnings

import numpy as np
import onnx
import pytest
from checkout import ROOT
from onnx.helper import make_node
from onnx_networks import NETWORKS, model, of_nodes

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.check import onnx_original
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError, ShapeError, ToolError
from autodiff_gen.frontends.imported.network import network
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.frontends.onnx.read import read as onnx_read
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.model.loader import load_file
from autodiff_gen.passes.training.resolve_mode import resolved


@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_those_of_the_reference_implementation(name):
    made = NETWORKS[name]()
    program = convert(made, name)
    assert all(shape[0] is None for n, shape in program.shapes.items() if n in program.inputs), "a free batch"
    report, good = onnx_original.compare(program, made, name)
    assert good, report


def test_a_dropout_is_a_layer_in_evaluation_mode():
    made = of_nodes(make_node("Dropout", ["x", "p"], ["y"], "/fc/drop/Dropout"), p=np.float32(0.2))
    text, _ = network_source(convert(made, "net"))
    assert "nn.Dropout(p=0.2)" in text and text.endswith("net.eval()\n")
    made = of_nodes(make_node("Dropout", ["x", "p", "t"], ["y"]), p=np.float32(0.2), t=np.True_)
    assert "eval" not in network_source(convert(made, "net"))[0]


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
    report, good = onnx_original.compare(convert(made, "net"), made, "net")
    assert good, report


@pytest.mark.parametrize("mode", ("half_pixel", "pytorch_half_pixel"))
def test_bilinear_images_are_interpolated(mode):
    """... whatever attributes of other modes an exporter writes."""
    options = {"mode": "linear", "coordinate_transformation_mode": mode, "nearest_mode": "floor"}
    node = make_node("Resize", ["x", "", "s"], ["y"], **options)
    made = of_nodes(node, shape=("n", 2, 4, 3), s=np.float32([1, 1, 2, 2]))
    program = convert(made, "net")
    assert [call.function for call in program.calls] == ["interpolate"]
    report, good = onnx_original.compare(program, made, "net")
    assert good, report


def test_images_of_a_size_that_follows_the_batch_are_interpolated():
    """As PyTorch's exporter writes `Upsample(size=...)`: the batch of the sizes is that of the image."""
    nodes = (
        make_node("Shape", ["x"], ["shape"], end=2),
        make_node("Concat", ["shape", "wanted"], ["s"], axis=0),
        make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear"),
    )
    made = of_nodes(*nodes, shape=("n", 2, 4, 3), wanted=np.int64([6, 5]))
    program = convert(made, "net")
    assert [call.function for call in program.calls] == ["interpolate"]
    report, good = onnx_original.compare(program, made, "net")
    assert good, report


def test_an_initializer_stays_a_parameter_after_castlike():
    """As PyTorch's exporter writes the scale of a group normalisation."""
    text = """net (float[n,4] x) => (float[n,4] y) {
        like = CastLike (w, x)
        y = Mul (x, like)
    }"""
    (weight,) = ag.from_onnx(model(text, w=(4,))).parameters()
    assert weight.shape == (4,)


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
    """... after as many iterations as in the reference implementation; a nested branch reads what an iteration made."""
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
    report, good = onnx_original.compare(program, made, "net")
    assert good, report


def test_an_earlier_opset_is_converted():
    """Softmax before opset 13 is that of all axes from `axis` on."""
    made = of_nodes(make_node("Softmax", ["x"], ["y"]), shape=(2, 3, 4), opset=11)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    found = ag.function([v := ag.Input("x", x.shape)], [ag.from_onnx(made)(v)]).on_host(kernels="ref")(x)
    e = np.exp(x)
    np.testing.assert_allclose(found[0], e / e.sum((1, 2), keepdims=True), rtol=1e-5)


NUMBERS = np.random.default_rng(4).uniform(0.5, 1.5, (2, 1, 4, 4)).astype(np.float32)
OF_OPSET = {
    "BatchNormalization": lambda opset: of_nodes(
        make_node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["y"]),
        opset=opset,
        **dict(zip(("scale", "shift", "mean", "var"), NUMBERS[0, 0], strict=True)),
    ),
    "RNN": lambda opset: of_nodes(
        make_node("RNN", ["x", "w", "r"], ["steps"], hidden_size=4),
        make_node("Squeeze", ["steps", "one"], ["y"]),
        shape=(3, 2, 4),
        opset=opset,
        **dict(zip("wr", NUMBERS, strict=True)),
        one=np.int64([1]),
    ),
}


@pytest.mark.parametrize("op", OF_OPSET)
def test_arguments_of_opset_13(op):
    """Later opsets call them by other names, or have more."""
    first, later = (convert(OF_OPSET[op](opset), "net") for opset in (13, 17))
    assert repr(first.calls) == repr(later.calls) and first.weights.keys() == later.weights.keys()
    for name, weight in first.weights.items():
        np.testing.assert_array_equal(weight.array, later.weights[name].array, name)


def test_an_error_without_words_has_its_name(monkeypatch):
    def run(*_):
        raise AssertionError

    monkeypatch.setattr("onnx.reference.ReferenceEvaluator.run", run)
    made = of_nodes(make_node("Neg", ["c"], ["d"]), make_node("Add", ["x", "d"], ["y"]), c=NUMBERS[0, 0, 0])
    with pytest.raises(ag.AutodiffError, match="cannot be computed: its operands do not fit each other"):
        ag.from_onnx(made)


def test_a_number_among_names_of_modules():
    made = of_nodes(
        make_node("Gemm", ["x", "body.0.weight"], ["h"], name="/body/0/Gemm"),
        make_node("Add", ["h", "0.bias"], ["y"], name="/0/Add"),
        **{"body.0.weight": NUMBERS[0, 0], "0.bias": NUMBERS[0, 0, 0]},
    )
    net = ag.from_onnx(made)
    assert [name for name, _ in net.named_parameters()] == ["body.0.weight", "0.bias"]


def test_a_classifier_of_scikit_learn_trains_on_its_scores(tmp_path):
    """Not on its labels or probabilities: the loss contains the softmax."""
    file = tmp_path / "net.onnx"
    onnx.save(NETWORKS["scikit-learn, logistic"](), file)
    assert main(["import", str(file), "--out", str(tmp_path / "net")]) == 0
    text = (tmp_path / "net" / "model.py").read_text()
    assert "return self.linearclassifier(x)" in text and "loss=nn.CrossEntropyLoss()" in text
    assert main(["check", str(file)]) == 0


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
    report, good = onnx_original.compare(convert(made, "net"), made, "net")
    assert good, report


@pytest.mark.parametrize("part", ("s = Constant <value_int = 3> ()", "s = Constant <value_ints = [3, 1]> ()"))
def test_parts_as_a_sequence(part):
    """As PyTorch's exporter writes split: a size, of which the last part may be smaller, or the size of each part."""
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
    report, good = onnx_original.compare(convert(made, "net"), made, "net")
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
    report, good = onnx_original.compare(convert(made, "net"), made, "net")
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
    report, good = onnx_original.compare(convert(made, "net"), made, "net")
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


def test_channels_last_are_not_transposed_in_the_generated_code(tmp_path):
    onnx.save(NETWORKS["Keras, colours"](), tmp_path / "net.onnx")
    assert main(["build", str(tmp_path / "net.onnx"), "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "net.c").read_text()
    assert "conv2d_pool(" in text and "permute(" not in text


LAYERS = {
    "Keras, colours": ("conv2d=nn.Conv2d(3, 8, 3, padding=1)", "dense=nn.Linear(256, 4)"),
    "Keras": ("conv2d=nn.Conv2d(1, 8, 3, padding=1)", "dense=nn.Linear(16, 4)"),
    "Keras LSTM": ("lstm=nn.LSTM(3, 4)", "lstm_2=nn.LSTM(4, 4)", "matmul=nn.Linear(4, 2)"),
    "Keras GRU": (
        "matmul=nn.Linear(3, 8)",
        "matmul_2=nn.Linear(4, 8)",
        ".shape[0]",
        ".shape[0]",
        "F.stack((",
    ),
    "MATLAB": (
        "nn.Conv2d(3, 4, 3, stride=2, padding=1)",
        "nn.BatchNorm2d(4)",
        "net.eval()",
    ),
    "PyTorch": ("nn.Embedding(3, 8)", "nn.LayerNorm(8)", "F.reshape(y, (-1, 6, 2, 4))"),
    "scikit-learn": ("nn.Linear(6, 4)", "nn.Linear(4, 3)"),
    "scikit-learn, logistic": ("nn.Linear(6, 3)", "F.argmax(x, -1)"),
    "scikit-learn, linear": ("nn.Linear(6, 3)", "nn.Linear(6, 2)"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_text_has_layers_and_no_arithmetic_of_shapes(name):
    text, _ = network_source(convert(NETWORKS[name](), name))
    assert not [word for word in LAYERS[name] if word not in text], text
    assert text.count(".shape") == sum(".shape" in word for word in LAYERS[name])


def torch_export(module, example, **options):
    """The ModelProto that PyTorch's exporter writes."""
    import torch

    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            (torch.zeros(2, *example[1:]),),
            file,
            dynamo=False,
            opset_version=17,
            input_names=["x"],
            dynamic_axes={"x": {0: "n"}},
            **options,
        )
    return onnx.load_from_string(file.getvalue())


EXPORTED = [
    "mobilenet_v1",
    "resnet8",
    "mobilenet_v3",
    "shufflenet",
    "gru",
    "lstm",
    "cells",
    "transformer",
    "attention",
    "vit",
]


@pytest.mark.torch
@pytest.mark.parametrize("name", EXPORTED)
def test_networks_of_pytorchs_exporter(name):
    import torch
    import torch_networks

    torch.manual_seed(1)
    make, example = torch_networks.NETWORKS[name]
    made = torch_export(make().eval(), example)
    report, good = onnx_original.compare(convert(made, name), made, name)
    assert good, report


@pytest.mark.torch
@pytest.mark.cc
@pytest.mark.parametrize(
    ("norm", "renamed"),
    [
        (lambda nn: nn.BatchNorm2d(4, momentum=0.2), {}),
        (lambda nn: nn.GroupNorm(2, 4), {"1.bias": "1_2.bias"}),
    ],
    ids=["batch", "group"],
)
def test_training_is_that_of_pytorch(norm, renamed):
    """A network that is exported for training; its parameters keep their names. A GroupNorm is exported as an
    InstanceNormalization, whose ones and zeros are no parameters, and a product and a sum, which have."""
    import torch

    torch.manual_seed(2)
    theirs = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        norm(torch.nn),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 3),
    )
    options = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    made = torch_export(theirs.train(), (1, 1, 6, 6), **options)
    net = ag.from_onnx(made)
    net.train()
    trained = ag.Model.supervised(
        net, input=(4, 1, 6, 6), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1, momentum=0.9)
    )
    trainer = trained.on_host(kernels="ref")
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1, momentum=0.9)
    numbers = np.random.default_rng(1)
    for _ in range(3):
        x, label = numbers.normal(size=(4, 1, 6, 6)).astype(np.float32), numbers.integers(0, 3, 4)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(label))
        loss.backward()
        optimizer.step()
        assert trainer.train_step(x, label.astype(np.uint8)) == pytest.approx(loss.item(), rel=1e-4)
    state = trainer.state_dict()
    their_state = {renamed.get(name, name): tensor for name, tensor in theirs.state_dict().items()}
    assert {name for name in state if not name.endswith("momentum_buffer")} == their_state.keys()
    for name, tensor in their_state.items():
        if name.endswith("num_batches_tracked"):
            continue  # the file does not have it
        np.testing.assert_allclose(
            state[name].ravel(), tensor.numpy().ravel(), rtol=1e-3, atol=1e-5, err_msg=name
        )


def test_from_onnx_takes_a_path_and_returns_a_module(tmp_path):
    onnx.save(NETWORKS["Keras"](), tmp_path / "net.onnx")
    net = ag.from_onnx(tmp_path / "net.onnx")
    assert isinstance(net, nn.Module)
    assert list(net.state_dict()) == [
        f"{layer}.{role}" for layer in ("conv2d", "conv2d_1", "dense") for role in ("weight", "bias")
    ]


def test_a_file_and_its_folder_are_the_same_model(tmp_path, capsys):
    file = tmp_path / "net.onnx"
    onnx.save(NETWORKS["MATLAB"](), file)
    assert main(["import", str(file), "--out", str(tmp_path / "net")]) == 0
    direct, written = load_file(str(file)), load_file(str(tmp_path / "net"))
    assert direct.made.state_names == written.made.state_names
    assert "softmax" not in (tmp_path / "net" / "model.py").read_text()  # the loss contains it
    outputs = [tmp_path / "a", tmp_path / "b"]
    for given, out in zip((file, tmp_path / "net"), outputs, strict=True):
        assert main(["build", str(given), "--out", str(out)]) == 0
    assert (outputs[0] / "net.c").read_text() == (outputs[1] / "net.c").read_text()


def test_check_compares_with_the_reference_implementation(tmp_path, capsys, monkeypatch):
    file = tmp_path / "net.onnx"
    onnx.save(NETWORKS["Keras"](), file)
    assert main(["check", str(file)]) == 0
    assert "everything agrees" in capsys.readouterr().out
    monkeypatch.setattr(onnx_original, "TOLERANCE", -1.0)
    assert main(["check", str(file)]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_external_data(tmp_path):
    onnx.save(
        NETWORKS["MATLAB"](),
        tmp_path / "net.onnx",
        save_as_external_data=True,
        location="w",
        size_threshold=0,
    )
    assert "conv.weight" in ag.from_onnx(tmp_path / "net.onnx").state_dict()
    (tmp_path / "w").unlink()
    with pytest.raises(
        ModelError, match=r"the weight '\w+' is in the file 'w' beside it, which is missing or short"
    ):
        ag.from_onnx(tmp_path / "net.onnx")


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


# Ops of onnxruntime's optimizer: op -> operands, shapes of weights, attributes; x has the shape [n, 3, 4].
OPTIMIZED = {
    "Attention": ("x w v", {"w": (4, 12), "v": (12,)}, {"num_heads": 2}),
    "Attention, causal": ("x w v", {"w": (4, 12), "v": (12,)}, {"num_heads": 2, "unidirectional": 1}),
    "BiasGelu": ("x v", {"v": (4,)}, {}),
    "FastGelu": ("x v", {"v": (4,)}, {}),
    "FusedConv": ("x w v x", {"w": (3, 3, 1), "v": (3,)}, {"activation": "Relu"}),
    "FusedConv, HardSigmoid": (
        "x w",
        {"w": (3, 1, 1)},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4], "group": 3},
    ),
    "FusedGemm": (
        "w u v",
        {"w": (3, 4), "u": (4, 4), "v": (4,)},
        {"activation": "LeakyRelu", "activation_alpha": 0.3, "alpha": 0.5, "transB": 1},
    ),
    "FusedMatMul": ("x x", {}, {"transA": 1, "alpha": 0.5}),
    "FusedMatMul, weight": ("x w", {"w": (5, 4)}, {"transB": 1}),
    "Gelu": ("x", {}, {}),
    "MultiHeadAttention": ("x x x v", {"v": (12,)}, {"num_heads": 2}),
    "QuickGelu": ("x", {}, {"alpha": 1.3}),
    "SkipLayerNormalization": ("x x v u w", dict.fromkeys("uvw", (4,)), {"epsilon": 1e-3}),
    "SkipSimplifiedLayerNormalization": ("x x v", {"v": (4,)}, {"epsilon": 1e-3}),
    ".LayerNormalization": ("x v u", dict.fromkeys("uv", (4,)), {"epsilon": 1e-3}),
    ".SimplifiedLayerNormalization": ("x v", {"v": (4,)}, {"epsilon": 1e-3}),
}


@pytest.mark.parametrize("opset", (11, 14, 17))
def test_files_of_the_optimizer_of_onnxruntime(opset, subtests):
    """... which writes ops of its own, and LayerNormalization at any opset."""
    numbers = np.random.default_rng(0)
    for name, (operands, shapes, attributes) in OPTIMIZED.items():
        with subtests.test(name):
            op = name.partition(",")[0]
            domain = "" if op.startswith(".") else "com.microsoft"
            node = make_node(op.lstrip("."), operands.split(), ["z"], domain=domain, **attributes)
            weights = {n: numbers.normal(size=s).astype("f4") for n, s in shapes.items()}
            made = of_nodes(
                node,
                make_node(*("Identity", ["z"]) if "x" in operands else ("Add", ["z", "x"]), ["y"]),
                shape=("n", 3, 4),
                opset=opset,
                **weights,
            )
            report, good = onnx_original.compare(convert(onnx_read(made, name), name), made, name)
            assert good, report


@pytest.mark.parametrize("opset", (7, 9, 13, 14, 15))
@pytest.mark.parametrize("training", (False, True))
def test_check_runs_the_reference_in_evaluation_mode(opset, training):
    """... whose BatchNormalization before opset 14 is in training mode."""
    normalized = dict(zip(("scale", "shift", "mean", "var"), NUMBERS[0, 0], strict=True))
    mode = {"training_mode": 1} if training and opset >= 14 else {}
    drop = ["r"] if opset < 12 else ["r", "ratio", *(["mode"] if training else [])]
    made = of_nodes(
        make_node("BatchNormalization", ["x", *normalized], ["r"], momentum=0.5, **mode),
        make_node("Dropout", drop, ["y"]),
        opset=opset,
        ratio=np.float32(0.7),
        mode=np.True_,
        **normalized,
    )
    report, good = onnx_original.compare(convert(onnx_read(made, "net"), "net"), made, "net")
    assert good, report


# Initializers in several layouts: name -> nodes, shapes, and the same by PyTorch.
TIED = {
    "Gemm, MatMul": (
        "a = Gemm <transB = 1> (x, w) b = Tanh (a) y = MatMul (b, w)",
        {"w": (4, 4)},
        lambda x, w: (x @ w.T).tanh() @ w,
    ),
    "Transpose, biases": (
        "a = MatMul (x, w) b = Add (a, c) d = Tanh (b) t = Transpose (w) e = MatMul (d, t) y = Add (e, g)",
        {"w": (4, 3), "c": (3,), "g": (4,)},
        lambda x, w, c, g: (x @ w + c).tanh() @ w.T + g,
    ),
    "Conv, Reshape, Gemm": (
        "u = Reshape (x, image) v = Conv (u, w) f = Flatten (v) b = Tanh (f) r = Reshape (w, rows) y = Gemm (b, r)",
        {"w": (4, 4, 1, 1)},
        lambda x, w: (x @ w[..., 0, 0].T).tanh() @ w[..., 0, 0],
    ),
    "Gather, MatMul": (
        "i = ArgMax <axis = 1, keepdims = 0> (x) e = Gather (w, i) b = Tanh (e) y = MatMul (b, w)",
        {"w": (4, 4)},
        lambda x, w: w[x.argmax(1)].tanh() @ w,
    ),
    "parts that overlap": (
        "p = Slice (w, zero, four) q = Slice (w, one, five) a = MatMul (x, p) b = Tanh (a) y = MatMul (b, q)",
        {"w": (5, 4)},
        lambda x, w: (x @ w[:4]).tanh() @ w[1:],
    ),
    "Expand": ("p = Expand (w, rows) y = MatMul (x, p)", {"w": (1, 4)}, lambda x, w: x @ w.expand(4, 4)),
    "Concat": (
        "d = Concat <axis = 1> (x, x) q = Concat <axis = 0> (w, v) a = MatMul (d, q) b = Tanh (a) y = MatMul (b, w)",
        {"w": (4, 4), "v": (4, 4)},
        lambda x, w, v: (x @ w + x @ v).tanh() @ w,
    ),
    "of length 1": (
        "l = ReduceL2 <axes = [0]> (w) u = Div (w, l) b = MatMul (x, u) t = Tanh (b) y = Gemm <transB = 1> (t, w)",
        {"w": (4, 4)},
        lambda x, w: (x @ (w / w.norm(dim=0))).tanh() @ w.T,
    ),
    "Mul, Sub": ("m = Mul (x, w) b = Tanh (m) y = Sub (b, w)", {"w": (4,)}, lambda x, w: (x * w).tanh() - w),
    "LayerNormalization, Sub, Gemm": (
        "l = LayerNormalization (x, w, c) m = Sub (l, c) y = Gemm (m, k, w)",
        {"w": (4,), "c": (4,), "k": (4, 4)},
        lambda x, w, c, k: (
            ((x - x.mean(1, True)) / (x.var(1, False, keepdim=True) + 1e-5).sqrt() * w + c - c) @ k + w
        ),
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", TIED)
def test_an_initializer_in_several_layouts_is_one_parameter(name):
    """... in the layout of the file, and gets the gradient of all."""
    import torch

    text, shapes, function = TIED[name]
    places = {"zero": [0], "one": [1], "four": [4], "five": [5], "rows": [4, 4], "image": [-1, 4, 1, 1]}
    made = model(
        f"net (float[n,4] x) => (float[n,4] y) {{ {text} }}",
        **shapes,
        **{n: np.int64(v) for n, v in places.items()},
    )
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in made.graph.initializer if t.name in shapes}
    theirs = {n: torch.tensor(a, requires_grad=True) for n, a in arrays.items()}
    array = np.random.default_rng(5).normal(size=(3, 4)).astype("f4")
    function(torch.tensor(array), *theirs.values()).square().sum().backward()
    x = ag.Input("x", (3, 4))
    net = ag.from_onnx(made)
    loss = F.sum(F.square(net(x)))
    ours = dict(net.named_parameters())
    state = net.state_dict()
    assert sorted(state[n].shape for n in ours) == sorted(
        s if n != "k" else (4, 4) for n, s in shapes.items()
    )
    feeds = {x: array, **{v: state[n] for n, v in ours.items()}}
    gradients = evaluate(ag.grad(loss, list(ours.values())), feeds)
    for parameter, found in zip(ours, gradients, strict=True):
        (wanted,) = (
            t.grad.numpy() if np.array_equal(arrays[n], state[parameter]) else t.grad.numpy().T
            for n, t in theirs.items()
            if np.array_equal(np.sort(arrays[n], None), np.sort(state[parameter], None))
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=parameter)


@pytest.mark.parametrize(("transposed", "shared"), ((False, False), (True, False), (False, True)))
def test_the_program_of_the_page_writes_trained_weights_into_the_file(
    transposed, shared, tmp_path, monkeypatch, capsys
):
    nodes = (
        make_node("MatMul", ["x", "c1.w"], ["p"], "c1/MatMul"),
        make_node("Add", ["p", "c1.b"], ["s"], "c1/Add"),
        make_node("Gemm", ["s", "fc.weight", "fc.bias"], ["y"], "fc/Gemm", transB=int(transposed)),
        make_node("Transpose", ["fc.weight"], ["t"]),
        make_node("MatMul", ["y", "t"], ["z"]),
    )
    shapes = {"c1.w": (4, 4), "c1.b": (1, 4), "fc.weight": (4, 4), "fc.bias": (4,)}
    start = {
        n: np.random.default_rng(k).normal(size=s).astype("f4") for k, (n, s) in enumerate(shapes.items())
    }
    monkeypatch.chdir(tmp_path)
    made = of_nodes(*nodes, outputs=("z",), **start) if shared else of_nodes(*nodes[:3], **start)
    onnx.save(made, "net.onnx")
    trained = {n: (a + 1).astype("f4") for n, a in ag.from_onnx("net.onnx").state_dict().items()}
    np.savez("trained.npz", **trained, **{"optimizer.step": np.float32(3)})
    page = (ROOT / "docs" / "importing.md").read_text()
    exec(
        next(text for text in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "CopyFrom" in text),
        {},
    )
    assert capsys.readouterr().out == "not in the file: ['optimizer.step']\n"
    found = ag.from_onnx("trained.onnx").state_dict()
    assert found.keys() == trained.keys()
    for name, array in trained.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_what_pytorchs_exporter_notes_of_initializers_says_what_is_trained():
    """A parameter that is computed with, one with several transposes, one whose rows are read, one with
    a transpose, a buffer, and zeros that were folded."""
    nodes = [
        make_node("Exp", ["scale"], ["e"]),
        make_node("Mul", ["x", "e"], ["a"]),
        make_node("Transpose", ["head.weight"], ["t"]),
        make_node("MatMul", ["a", "t"], ["b"]),
        make_node("MatMul", ["b", "t"], ["c"]),
        make_node("Transpose", ["head.weight"], ["u"]),
        make_node("MatMul", ["c", "u"], ["d"]),
        make_node("Mul", ["d", "mean"], ["f"]),
        make_node("Add", ["f", "zeros"], ["g"]),
        make_node("Transpose", ["positions.weight"], ["q"], perm=[1, 0]),
        make_node("Gather", ["q", "places"], ["p"]),
        make_node("Mul", ["g", "p"], ["h"]),
        make_node("Transpose", ["last.weight"], ["v"], perm=[1, 0]),
        make_node("MatMul", ["h", "v"], ["y"]),
    ]
    numbers = np.random.default_rng(3)
    weights = {
        "scale": numbers.normal(size=4),
        "head.weight": numbers.normal(size=(4, 4)),
        "mean": np.full(4, 2),
        "positions.weight": numbers.normal(size=(4, 3)),
        "last.weight": numbers.normal(size=(4, 4)),
    }
    weights["zeros"] = np.zeros(4)
    made = of_nodes(*nodes, **{n: a.astype("f4") for n, a in weights.items()}, places=np.array([1]))
    kind, folded = "pkg.torch.export.graph_signature.InputSpec.kind", "pkg.onnxscript.optimizer.folded_from"
    notes = {"scale": (kind, "PARAMETER"), "head.weight": (kind, "PARAMETER"), "mean": (kind, "BUFFER")}
    notes |= dict.fromkeys(("positions.weight", "last.weight"), (kind, "PARAMETER"))
    notes["zeros"] = (folded, "['val_0', 'val_1']")
    for name, (key, value) in notes.items():
        about = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, weights[name].shape)
        about.metadata_props.add(key=key, value=value)
        made.graph.value_info.append(about)
    net = ag.from_onnx(made)
    state = net.state_dict()
    assert sorted(array.shape for array in state.values()) == [(4,), (4, 3), (4, 4), (4, 4)]
    assert len(list(net.parameters())) == 4 and state.keys() > {
        "head.weight",
        "last.weight",
        "positions.weight",
    }
    x = ag.Input("x", (2, 4))
    y = net(x)
    feeds = {parameter: state[name] for name, parameter in net.named_parameters()}
    value = evaluate([y], {x: np.ones((2, 4)), **feeds})[0]
    w, row = weights["head.weight"], weights["positions.weight"][:, 1]
    wanted = 2 * (np.exp(weights["scale"]) * np.ones((2, 4))) @ w.T @ w.T @ w.T
    np.testing.assert_allclose(value, wanted * row @ weights["last.weight"].T, rtol=1e-6)
    del made.graph.value_info[:]  # as other exporters write it
    assert len(list(ag.from_onnx(made).parameters())) > 2


def test_it_needs_the_package_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ToolError,
        match=r"the package onnx, which is not installed; run: .+ -m pip install 'onnx>=1.20'  # the extra \[onnx\]$",
    ):
        ag.from_onnx("net.onnx")
