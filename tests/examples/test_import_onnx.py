"""The example import_onnx: its files are what export.py and the importer make."""

import runpy

import numpy as np
import onnx
from checkout import ROOT

from autodiff_gen.frontends.files import program_of
from autodiff_gen.frontends.imported.folder import scores_of
from autodiff_gen.frontends.imported.source import network_source

FOLDER = ROOT / "examples" / "import_onnx"


def test_the_file_is_what_is_exported():
    exported = runpy.run_path(str(FOLDER / "export.py"))["network"]()
    assert onnx.load(FOLDER / "net.onnx") == exported


def test_the_model_is_what_is_imported():
    text, program = network_source(scores_of(program_of(FOLDER / "net.onnx")))
    assert text in (FOLDER / "model.py").read_text()
    assert text.count("permute") == 1
    with np.load(FOLDER / "weights.npz") as file:
        assert set(file.files) == set(program.weights)
        for name, weight in program.weights.items():
            np.testing.assert_array_equal(file[name], weight.array, err_msg=name)
