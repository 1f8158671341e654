"""bench/memory.py: its numbers come from the program, and other programs' numbers from known workloads."""

import sys

import pytest
from checkout import ROOT

from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board, installation

sys.path.insert(0, str(ROOT / "bench"))
import memory


def test_the_rows_of_two_workloads(capsys):
    assert memory.main(["w1", "gru"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    network = {"w1": "296 (1.00x)", "gru": "101,120 (1.00x)"}
    for name in ("w1", "gru"):
        program = compile_file(load_file(name).made, name, memory.KERNELS, board.load(memory.BOARD))
        row = next(r for r in rows if r[0] == installation.title(name))
        arena, bound = program.struct_bytes - program.state_bytes, program.bound_bytes - program.state_bytes
        assert arena == bound
        assert row[1:5] == [
            f"{program.state_bytes:,}",
            f"{arena:,}",
            network[name],
            f"{program.struct_bytes:,}",
        ]
    w1 = next(r for r in rows if r[0] == "MNIST perceptron")
    assert "307,584 (3.02x)" in w1 and len(next(r for r in rows if r[0] == "GRU keywords")) == 5


def test_other_programs_have_known_workloads():
    known = installation.benchmarks()
    assert {name for rows in memory.others().values() for name in rows} <= known.keys()


@pytest.mark.parametrize(
    "words, said", [(["w9"], "unknown workload 'w9'"), (["w4", "--docs", "none.md"], "none.md: ")]
)
def test_mistakes_are_errors_of_one_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert memory.main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {said}") and error.count("\n") == 1
