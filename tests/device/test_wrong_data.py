"""Wrong data and wrong options of `train`, `pull` and `push`: one line each."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.device.dataset import _reshaped, load_dataset
from autodiff_gen.device.weights import read_weights
from autodiff_gen.errors import DataError
from autodiff_gen.ir.types import Type, f32
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.cc


def test_a_rejected_step_is_named(words, tmp_path, capsys):
    x = np.zeros((9, 20), np.float32)
    x[6] = 3e38
    data = saved(tmp_path / "d.npz", x=x, label=np.zeros(9, np.uint8))
    assert main(words("train", "--data", data, "--batch", 3)) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: step 3, epoch 1, samples 6, 7, 8: the step was rejected: "
        "the updates cannot be proved finite (status -9)"
    )


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


X, Y = np.zeros((9, 20), np.float32), np.zeros(9, np.uint8)


WRONG = [
    (
        {"x": X.reshape(9, 4, 5), "label": Y},
        r"x has shape \[9, 4, 5\], the model takes \[samples, 20\]; it takes the array's reshape\(-1, 20\)",
    ),
    ({"x": X[:, :19], "label": Y}, r"x has shape \[9, 19\], the model takes \[samples, 20\]"),
    ({"x": X, "label": Y[:8]}, "label has 8 samples, x 9"),
    ({"x": X, "label": Y + 4}, r"label\[0\] is 4, outside 0 to 3"),
    ({"x": X, "label": Y.astype(np.float32)}, "label: expected integer class labels"),
    ({"x": X.astype(complex), "label": Y}, "has elements of dtype complex128; save numbers"),
    ({"x": np.where(np.arange(20) == 7, np.nan, X), "label": Y}, r"x\[0, 7\] is nan, no finite float32"),
    ({"x": np.float64(X) - 1e39, "label": Y}, r"x\[0, 0\] is -1e\+39, no finite float32"),
    ({"x": X}, r"missing label; the model takes x: f32\[n,20\], label: u8\[n\]"),
    ({"x": X, "label": Y, "y": Y}, "unexpected y"),
    (
        {"x": X, "label": Y, "test_x": X},
        r"missing test_label; the model takes test_x: f32\[n,20\], test_label",
    ),
    ({"x": X[:0], "label": Y[:0]}, "x has no samples"),
    (
        {"x": X, "label": np.eye(4)[Y]},
        r"label has shape \[9, 4\], the model takes \[samples\]; one-hot rows become",
    ),
    ({"x": X, "label": np.array("walk")}, r"label has shape \[\], the model takes \[samples\]"),
]


@pytest.mark.parametrize("arrays, said", WRONG, ids=[said for _, said in WRONG])
def test_wrong_data_are_one_line(words, tmp_path, capsys, arrays, said):
    assert main(words("train", "--data", saved(tmp_path / "d.npz", **arrays))) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: data ") and err.count("\n") == 1 and re.search(said, err), err


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("d.npz", "nonsense", "d.npz is no complete file of np.savez: truncated, or another format"),
        ("d.txt", "1,2", "give a .npz, a .csv, a folder of .npy or .csv files, a samples.bin, or a .py"),
        ("d.py", "x = 1", "needs a function dataset"),
        (
            "d.py",
            "def dataset():\n    return {'x': [[1, 2], [3]]}\n",
            "d.py: the file raises ValueError: setting",
        ),
        (
            "d.py",
            "def dataset():\n    return {3: [1], 'label': [0]}\n",
            "missing x; unexpected 3; the model takes",
        ),
        ("d.py", "def dataset(:\n", "d.py:1: the file raises SyntaxError: invalid syntax"),
        ("d.py", "raise SystemExit(3)\n", "d.py:1: the file raises SystemExit: 3"),
        ("d.py", "def dataset():\n    return 1 / 0\n", "d.py:2: the file raises ZeroDivisionError"),
        ("d.bin", "nonsense", "not a sample set"),
    ],
)
def test_wrong_data_files(made, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    from autodiff_gen.codegen.compiler import compile_model

    layout = link_layout(compile_model(load_model(str(made / "net" / "model.py"))[0], "net"))
    with pytest.raises(DataError) as caught:
        load_dataset(str(tmp_path / name), made / "net" / "model.py", layout)
    assert said in str(caught.value)


@pytest.mark.torch
def test_wrong_weights_are_one_line(tmp_path):
    import torch

    words = tmp_path / "words.pt"
    torch.save({"w": torch.zeros(2, dtype=torch.complex64)}, words)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3), }".ljust(117) + b"\n"
    files = []
    for k, changed in enumerate(
        (header.replace(b"%d", b"70000000000"), header.replace(b"(%d, 3)", b"((((((("))
    ):
        files.append(tmp_path / f"header{k}.npz")
        with zipfile.ZipFile(files[-1], "w") as file:
            file.writestr("w.npy", b"\x93NUMPY\1\0" + len(changed).to_bytes(2, "little") + changed)
    steps = r"_steps must be a number of steps, got .*; remove it, or run pull again"
    for file, said in (
        (
            words,
            r"words\.pt: has tensors of torch\.ComplexFloatStorage, which are no real numbers: save it by",
        ),
        (files[0], r"the array 'w' asks for 840,000,000,000 bytes of memory, the limit is"),
        (files[1], r"the array 'w' is damaged, or no array of NumPy"),
        (saved(tmp_path / "nan.npz", w=[[1, np.nan]]), r"nan\.npz: w\[0, 1\] is nan, no finite number"),
        (saved(tmp_path / "inf.npz", w=-np.inf), r"inf\.npz: w is -inf, no finite number"),
        (saved(tmp_path / "words.npz", w="one"), r"the array 'w' has elements of dtype <U3; save numbers"),
        *((saved(tmp_path / f"steps{k}.npz", _steps=v), steps) for k, v in enumerate(([1, 2], 0.5, -1))),
    ):
        with pytest.raises(DataError, match=said) as caught:
            read_weights(file)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "more, said",
    [
        (["train", "--batch", "6"], "--batch 6: the model takes 1 to 5 samples a step"),
        (["train", "--lr", "inf"], "inf is no finite float"),
        (["train", "--timeout", "0"], "must be more than 0"),
        (["pull", "--out", "w.txt"], "a file of weights is .npz or, for PyTorch, .pt or .pth"),
        (["push", "missing.npz"], "missing.npz: no such file"),
    ],
)
def test_wrong_options(words, capsys, more, said):
    assert main(words(*more)) in (1, 2)
    assert said in capsys.readouterr().err


def test_images_with_channels_last_are_told_how_to_bring_them_first():
    last = np.zeros((2, 8, 6, 3), np.float32)
    assert (
        _reshaped(last, (3, 8, 6), Type(f32, (2, 3, 8, 6)))
        == "; np.moveaxis(array, -1, 1) brings the channels first"
    )
    assert np.moveaxis(last, -1, 1).shape == (2, 3, 8, 6)
    assert _reshaped(last, (8, 3, 6), Type(f32, (2, 8, 3, 6))) == ""
