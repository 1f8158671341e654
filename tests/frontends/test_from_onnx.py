"""Networks and files of ONNX: as exporters write them, as text, and as the commands import them."""

import sys

import onnx
import pytest
from onnx_networks import NETWORKS

import autodiff_gen as ag
from autodiff_gen import nn
from autodiff_gen.check import compare_onnx
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError, ToolError
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.onnx.convert import convert
from autodiff_gen.model.loader import load_file


@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_those_of_the_reference_implementation(name):
    made = NETWORKS[name]()
    program = convert(made, name)
    assert all(shape[0] is None for n, shape in program.shapes.items() if n in program.inputs), "a free batch"
    report, good = compare_onnx.compare(program, made, name)
    assert good, report


def test_a_classifier_of_scikit_learn_trains_on_its_scores(tmp_path):
    """Not on its labels or probabilities: the loss contains the softmax."""
    file = tmp_path / "net.onnx"
    onnx.save(NETWORKS["scikit-learn, logistic"](), file)
    assert main(["import", str(file), "--out", str(tmp_path / "net")]) == 0
    text = (tmp_path / "net" / "model.py").read_text()
    assert "return self.linearclassifier(x)" in text and "loss=nn.CrossEntropyLoss()" in text
    assert main(["check", str(file)]) == 0


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
    monkeypatch.setattr(compare_onnx, "TOLERANCE", -1.0)
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


def test_it_needs_the_package_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(
        ToolError,
        match=r"the package onnx, which is not installed; run: .+ -m pip install 'onnx>=1.20'  # the extra \[onnx\]$",
    ):
        ag.from_onnx("net.onnx")
