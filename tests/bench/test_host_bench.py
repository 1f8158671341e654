"""The benchmark on the host: its programs in C compute what PyTorch does, it notices one that does not, and its
table goes into the page by itself."""

import sys

import pytest
from checkout import ROOT

from autodiff_gen.targets import board

sys.path.insert(0, str(ROOT / "bench" / "host"))
import run
import table
import workload
from programs import generated, naive

LOSSES = {  # before steps 1, 2, 3 and 50, by PyTorch 2.13
    "w1": (2.453889, 2.439670, 2.367322, 2.295177),
    "w2": (2.301092, 2.341620, 2.301990, 2.268713),
    "w3b1": (2.310572, 2.298470, 2.310704, 2.230236),
    "w4": (0.752308, 0.727958, 0.707499, 0.120398),
    "w5": (4.335761, 3.993061, 3.694051, 0.066000),
    "w6": (2.529197, 2.176987, 2.492754, 2.293700),
}
RECORD = {
    "board": "host",
    "kernels": ["ref"],
    "programs": ["autodiff_gen", "PyTorch"],
    "absent": {"JAX jit": "no module"},
    "versions": "one processor",
    "results": [
        {
            "workload": name,
            "microseconds": {"autodiff_gen": 2.0, "PyTorch": 100.0},
            "disagree": [],
            "excluded": excluded,
        }
        for name, excluded in (("w1", []), ("resnet8b8", ["JAX jit"]))
    ],
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder in which the kernels are compiled once for all workloads."""
    return tmp_path_factory.mktemp("programs")


@pytest.mark.cc
@pytest.mark.parametrize("name", LOSSES)
def test_the_programs_in_c_compute_what_pytorch_does(name, built, tmp_path):
    w = workload.load(name)
    for program in (naive(w, tmp_path), generated(w, run.widest(), ["host", "ref"], built / name)):
        found = program.losses(50)
        assert [found[i] for i in (0, 1, 2, 49)] == pytest.approx(LOSSES[name], abs=2e-6)
        assert program.seconds(3) > 0


def test_the_widest_board_is_a_host():
    assert board.load(run.widest()).is_host
    assert all(board.load(name).is_host for name in run.FEATURES)


@pytest.mark.parametrize("wrong", [1.0001, float("nan")])
def test_losses_that_disagree(wrong, capsys):
    right = {run.OURS: [1.0, 2.0], run.NAIVE: [1.0, 2.0], run.EAGER: [1.0, 2.000001]}
    assert run.disagreeing("w1", right) == []
    assert run.disagreeing("w1", {**right, run.JAX: [wrong, 2.0]}) == [run.JAX]
    assert capsys.readouterr().out.startswith(
        "left out: JAX jit; w1: the loss of step 1 is 1.0000000 by PyTorch"
    )
    with pytest.raises(SystemExit, match="error: w1: the loss of step 2 is"):
        run.disagreeing("w1", {**right, run.OURS: [1.0, wrong]})


def test_the_table_takes_the_place_of_the_last(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- qemu -->\n1\n<!-- /qemu -->\n")
    for us in (3.0, 2.0):
        RECORD["results"][0]["microseconds"]["autodiff_gen"] = us
        table.write(page, table.text(RECORD, "autodiff_gen", "PyTorch"))
    text = page.read_text()
    assert "<!-- qemu -->\n1\n<!-- /qemu -->" in text and text.count("<!-- host -->") == 1
    assert "| MNIST perceptron | 2 | 100 (50x) | absent |" in text and "| MNIST perceptron | 3 |" not in text
    assert (
        "|  | autodiff_gen, us | PyTorch |\n| --- | ---: | ---: |\n| ResNet-8, batch 8 | 2 | 100 (50x) |\n"
        in text
    )
