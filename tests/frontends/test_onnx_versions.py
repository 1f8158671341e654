"""Files of ONNX of all opsets, of onnxruntime's optimizer, and in evaluation or training mode."""

import numpy as np
import pytest
from onnx.helper import make_node
from onnx_networks import NUMBERS, of_nodes

import autodiff_gen as ag
from autodiff_gen.check import compare_onnx
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.frontends.onnx.read import read as onnx_read


def test_a_dropout_is_a_layer_in_evaluation_mode():
    made = of_nodes(make_node("Dropout", ["x", "p"], ["y"], "/fc/drop/Dropout"), p=np.float32(0.2))
    text, _ = network_source(convert(made, "net"))
    assert "nn.Dropout(p=0.2)" in text and text.endswith("net.eval()\n")
    made = of_nodes(make_node("Dropout", ["x", "p", "t"], ["y"]), p=np.float32(0.2), t=np.True_)
    assert "eval" not in network_source(convert(made, "net"))[0]


def test_an_earlier_opset_is_converted():
    """Softmax before opset 13 is over all axes from `axis` on."""
    made = of_nodes(make_node("Softmax", ["x"], ["y"]), shape=(2, 3, 4), opset=11)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    found = ag.function([v := ag.Input("x", x.shape)], [ag.from_onnx(made)(v)]).on_host(kernels="ref")(x)
    e = np.exp(x)
    np.testing.assert_allclose(found[0], e / e.sum((1, 2), keepdims=True), rtol=1e-5)


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
    """... which writes custom ops, and LayerNormalization at any opset."""
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
            report, good = compare_onnx.compare(convert(onnx_read(made, name), name), made, name)
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
    report, good = compare_onnx.compare(convert(onnx_read(made, "net"), "net"), made, "net")
    assert good, report
