"""Networks that PyTorch's exporter writes as ONNX: results, training, and which initializers are parameters."""

import io
import warnings

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from onnx_networks import model, of_nodes

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.check import compare_onnx
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.ir.interpreter import evaluate


def test_images_of_a_size_that_follows_the_batch_are_interpolated():
    """As PyTorch's exporter writes `Upsample(size=...)`: the sizes have the image's batch."""
    nodes = (
        make_node("Shape", ["x"], ["shape"], end=2),
        make_node("Concat", ["shape", "wanted"], ["s"], axis=0),
        make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear"),
    )
    made = of_nodes(*nodes, shape=("n", 2, 4, 3), wanted=np.int64([6, 5]))
    program = convert(made, "net")
    assert [call.function for call in program.calls] == ["interpolate"]
    report, good = compare_onnx.compare(program, made, "net")
    assert good, report


def test_an_initializer_stays_a_parameter_after_castlike():
    """As PyTorch's exporter writes the scale of a group normalisation."""
    text = """net (float[n,4] x) => (float[n,4] y) {
        like = CastLike (w, x)
        y = Mul (x, like)
    }"""
    (weight,) = ag.from_onnx(model(text, w=(4,))).parameters()
    assert weight.shape == (4,)


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
    report, good = compare_onnx.compare(convert(made, name), made, name)
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
