"""An edited model with the same parameters: its firmware, checkpoints and weights are used only on request."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.device.session import Session

pytestmark = pytest.mark.cc
STOPPED = (
    "error: checkpoints: the checkpoints are of another program, with other operations, loss or optimizer: "
    "train --fresh starts with the initial weights, train --continue goes on from the weights of the newest checkpoint "
    "(status -74)"
)


@pytest.fixture
def edited(made, tmp_path, monkeypatch):
    """(before, after) -> the model file with this text in place of that; the working folder is an empty one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net" / "model.py"
    path.parent.mkdir()
    text = (made / "net" / "model.py").read_text()
    path.write_text(text)
    (path.parent / "data.py").write_text((made / "net" / "data.py").read_text())

    def edit(before, after):
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after))
        return path

    return edit


def run(capsys, *words):
    """Exit code, standard output and the last line of the errors, of a command on the host's own board."""
    capsys.readouterr()
    code = main([words[0], "net/model.py", "--board", "host", "--kernels", "ref", *map(str, words[1:])])
    out, err = capsys.readouterr()
    return code, out, err.splitlines()[-1] if err else ""


def test_an_edited_model_asks_before_it_goes_on(edited, capsys, tmp_path):
    assert run(capsys, "train", "--tests", 0)[0] == 0
    assert run(capsys, "pull", "--out", "before.npz")[0] == 0
    edited("nn.Tanh()", "nn.ReLU()")
    for words in (
        ("train", "--tests", 0),
        ("pull", "--out", "w.npz"),
        ("predict",),
        ("hil", "--steps", 2),
    ):
        if words[0] == "predict":
            words = ("predict", "--port", "exec:build/host/net+kernels=ref/link.elf")
        code, _, said = run(capsys, *words)
        assert (code, said) == (1, STOPPED), words
    code, out, _ = run(capsys, "train", "--tests", 0, "--epochs", 2, "--continue")
    assert code == 0 and "continues from a checkpoint of another program, step 33\n" in out
    assert "33 steps" in out
    code, out, _ = run(capsys, "train", "--tests", 0, "--epochs", 3)  # now it is its own
    assert code == 0 and "another program" not in out and "continues at step 66" in out
    edited("nn.ReLU()", "nn.LeakyReLU(0.2)")
    code, out, _ = run(capsys, "train", "--tests", 0, "--fresh")
    assert code == 0 and "33 steps" in out
    assert run(capsys, "pull", "--out", "after.npz")[0] == 0


def test_a_learning_rate_is_no_other_program(edited, capsys):
    """And the model's number counts, not the firmware's."""
    assert run(capsys, "train", "--tests", 0, "--log", "one.csv")[0] == 0
    port = ("--port", "exec:build/host/net+kernels=ref/link.elf")
    edited("lr=0.01", "lr=0.05")
    code, out, _ = run(capsys, "train", "--tests", 0, "--epochs", 2, "--log", "two.csv", *port)
    assert code == 0 and "continues at step 33" in out
    assert run(capsys, "pull", "--out", "ours.npz")[0] == 0
    (edited("lr=0.05", "lr=0.01").parents[1] / "build" / "host" / "net+kernels=ref" / "flash.bin").unlink()
    assert run(capsys, "train", "--tests", 0)[0] == 0
    assert run(capsys, "train", "--tests", 0, "--epochs", 2, "--lr", 0.05)[0] == 0
    assert run(capsys, "pull", "--out", "theirs.npz")[0] == 0
    ours, theirs = np.load("ours.npz"), np.load("theirs.npz")
    assert all(np.array_equal(ours[n], theirs[n]) for n in ours.files)


@pytest.mark.parametrize(
    "words",
    [("train",), ("pull", "--out", "w.npz"), ("predict",), ("push", "w.npz"), ("hil",)],
    ids=lambda words: words[0],
)
def test_the_board_runs_another_program(words, edited, made, capsys):
    """Firmware of the model before the edit, on a port."""
    edited("nn.Tanh()", "nn.ReLU()")
    shapes = {"0.weight": (16, 20), "0.bias": 16, "2.weight": (4, 16), "2.bias": 4}
    np.savez("w.npz", **{name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    code, _, said = run(capsys, *words, "--port", f"exec:{made / 'link.elf'}")
    wanted = (
        r"error: the board runs another program: 'net', whose parameters are the same, but not its operations, loss or "
        r"optimizer \(program [0-9a-f]{8}, this one is [0-9a-f]{8}\); build and upload its firmware"
    )
    assert code == 1 and re.fullmatch(wanted, said), said


def test_weights_move_by_name_into_a_changed_model(edited, capsys):
    """--partial: parameters of the same name and shape; the others, and the optimizer's state, are the board's."""
    assert run(capsys, "train", "--tests", 0)[0] == 0
    assert run(capsys, "pull", "--out", "w.npz")[0] == 0
    edited("nn.Tanh(), nn.Linear(16, 4)", "nn.ReLU(), nn.Linear(16, 4), nn.Tanh(), nn.Linear(4, 4)")
    edited("nn.Linear(20, 16)", "nn.Linear(20, 16, bias=False)")
    code, _, said = run(capsys, "push", "w.npz")
    assert code == 1 and "names differ: missing 4.weight, 4.bias" in said and "--partial" in said
    code, out, _ = run(capsys, "push", "w.npz", "--partial", "--save")
    assert code == 0 and out == (
        "w.npz: 3 arrays sent to net on host, the board is at step 0, checkpoint 2; not sent: 0.bias; "
        "unchanged on the board: 4.weight, 4.bias\n"
    )
    assert run(capsys, "pull", "--out", "after.npz")[0] == 0
    old, new = np.load("w.npz"), np.load("after.npz")
    session = Session("net/model.py", "host")
    first = {s.name: s.init.array() for s in session.program.slots}
    for name in ("0.weight", "2.weight", "2.bias"):
        assert np.array_equal(old[name], new[name])
    for name in ("4.weight", "4.bias", "0.weight.exp_avg"):
        assert np.array_equal(first[name], new[name])
    trainer = session.model.on_host()
    trainer.load_state_dict({n: old[n] for n in old.files if n != "_steps"}, strict=False)
    assert np.array_equal(trainer.state_dict()["2.weight"], old["2.weight"])
    np.savez("other.npz", **{"0.weight": np.zeros((3, 3))})
    code, _, said = run(capsys, "push", "other.npz", "--partial")
    assert (code, said) == (
        1,
        "error: other.npz: no array has the name and the shape of a parameter of net",
    )
