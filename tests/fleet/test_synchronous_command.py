"""`autodiff-gen fleet --synchronous`: its output and files, how it continues, and wrong input."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.gradients import GradientRank
from autodiff_gen.fleet.ranks import TwinRank
from autodiff_gen.fleet.synchronous import Synchronous

pytestmark = pytest.mark.cc
MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(5, {units}), nn.Tanh(), nn.Dropout(0.1), nn.Linear({units}, 3))
model = ag.Model.supervised(net, (4, 5), nn.CrossEntropyLoss({loss}), optim.Adam(lr=0.02){more})
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, 90)
    x = (rng.normal(size=(90, 5)) * 0.2 + np.eye(3, 5)[label]).astype(np.float32)
    np.savez("data.npz", x=x[:60], label=label[:60], test_x=x[60:], test_label=label[60:])


def write_model(units: int = 6, loss: str = "", more: str = "") -> None:
    Path("m.py").write_text(MODEL.format(units=units, loss=loss, more=more))


def fleet(*words: str) -> int:
    return main(["fleet", "m.py", "--data", "data.npz", "--synchronous", *words])


def epochs(text: str) -> list[tuple[int, int, float]]:
    """Epoch, step and accuracy of each line."""
    found = re.findall(
        r"^epoch (\d+) +step (\d+) +loss [\d.]+   accuracy +([\d.]+)%   [\d.]+ s$", text, re.MULTILINE
    )
    return [(int(epoch), int(step), float(right)) for epoch, step, right in found]


def same(one: str, other: str) -> bool:
    with np.load(one) as a, np.load(other) as b:
        return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def test_epochs_learn_and_continue(capsys: pytest.CaptureFixture[str]) -> None:
    """A run in two parts, with a stop inside an epoch of the second part, has the bits of a whole run."""
    assert fleet("--boards", "4", "--epochs", "6", "--out", "whole") == 0
    out = capsys.readouterr().out
    assert "m: 4 twins on the host; 60 samples from data.npz" in out
    assert "16 samples a step, 4 steps an epoch; gradients are a mean over the samples of all ranks" in out
    assert [e[:2] for e in epochs(out)] == [(k, 4 * k) for k in range(1, 7)] and epochs(out)[-1][2] > 80.0
    assert fleet("--boards", "4", "--epochs", "2", "--out", "parts", "--log", "log.csv") == 0
    assert fleet("--boards", "4", "--steps", "10", "--out", "parts", "--log", "log.csv") == 0
    out = capsys.readouterr().out
    assert "continues after step 8" in out and epochs(out)[-1][:2] == (3, 10)
    rows = [line.split(",")[:2] for line in Path("log.csv").read_text().splitlines()]
    assert rows == [["step", "epoch"], ["4", "1"], ["8", "2"], ["10", "3"]]
    assert fleet("--boards", "4", "--epochs", "6", "--out", "parts") == 0
    assert same("whole/step-00000024.npz", "parts/step-00000024.npz")
    assert fleet("--boards", "4", "--epochs", "6", "--out", "parts") == 0
    assert "nothing to do: parts has step 24 of 24" in capsys.readouterr().out
    words = ["--board", "host", "--data", "data.npz", "--test", "--weights", "parts/step-00000024.npz"]
    assert main(["predict", "m.py", *words]) == 0
    assert "accuracy" in capsys.readouterr().err


@pytest.mark.slow
def test_boards_over_the_link_have_the_bits_of_twins(capsys: pytest.CaptureFixture[str]) -> None:
    assert fleet("--boards", "1", "--emulated", "host=2", "--epochs", "2", "--out", "mixed") == 0
    assert "m: 1 twin on the host, 2 x host emulated" in capsys.readouterr().out
    assert fleet("--boards", "3", "--epochs", "2", "--out", "twins") == 0
    assert same("mixed/step-00000010.npz", "twins/step-00000010.npz")
    write_model(more=', accumulate="mean"')
    port = ["--board", "host", "--port", "exec:build/host/m+accumulate=mean/link.elf"]
    assert fleet("--boards", "2", *port, "--epochs", "2", "--out", "ports") == 0
    with np.load("ports/step-00000010.npz") as one, np.load("twins/step-00000010.npz") as other:
        assert all(np.array_equal(one[name], other[name]) for name in other)


def test_a_board_that_vanishes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of another rank is saved, and the run continues there to the same end."""
    assert fleet("--boards", "2", "--epochs", "2", "--out", "whole") == 0
    original = TwinRank.apply

    def vanish(rank: TwinRank, *given: Any) -> int:
        if rank.name == "twin 1" and rank.steps == 9:
            raise LinkError("the board no longer answers: APPLY got no reply in 15 s")
        return original(rank, *given)

    monkeypatch.setattr(TwinRank, "apply", vanish)
    assert fleet("--boards", "2", "--epochs", "2", "--out", "parts") == 1
    out, err = capsys.readouterr()
    assert err == "error: twin 1: the board no longer answers: APPLY got no reply in 15 s\n"
    saved = "the weights of step 10 of 16 are parts/step-00000010.npz; the same command continues there"
    assert out.endswith(f"{saved}\n")
    monkeypatch.setattr(TwinRank, "apply", original)
    assert fleet("--boards", "2", "--epochs", "2", "--out", "parts") == 0
    assert "continues after step 10" in capsys.readouterr().out
    assert same("whole/step-00000016.npz", "parts/step-00000016.npz")


def test_two_boards_with_one_identity(capsys: pytest.CaptureFixture[str]) -> None:
    assert fleet("--emulated", "host=2", "--steps", "1", "--out", "o") == 0
    shutil.copy("o/boards/0/flash.bin", "o/boards/1/flash.bin")
    assert fleet("--emulated", "host=2", "--steps", "2", "--out", "o") == 1
    assert "board 0 (host) and board 1 (host) have the same identity, " in capsys.readouterr().err


def test_no_board_is_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(rank: GradientRank, *given: Any) -> None:
        raise LinkError("the board no longer answers")

    for name in ("accumulate", "state"):
        monkeypatch.setattr(GradientRank, name, silent)
    assert fleet("--emulated", "host=1", "--out", "o") == 1
    out, err = capsys.readouterr()
    assert err == "error: board 0 (host): the board no longer answers\n"
    assert "no rank answers; the same command continues after the last epoch" in out


def test_a_loss_that_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    """No weights are saved from which the same command would fail again."""
    assert fleet("--boards", "2", "--epochs", "3", "--out", "o", "--lr", "1e38") == 1
    out, err = capsys.readouterr()
    assert err.startswith("error: twin 0: m_accumulate: the loss is not finite") and err.count("\n") == 1
    assert out.endswith("the weights of the last epoch are kept; lower --lr, or repair the data\n")
    assert not list(Path("o").glob("*.npz"))
    assert fleet("--boards", "2", "--out", "o") == 0


def test_the_loss_of_an_epoch_is_that_of_all_its_steps(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a run ended in it, or was stopped."""

    def loss(text: str) -> list[str]:
        return re.findall(r"^epoch 1 .* loss ([\d.]+) ", text, re.MULTILINE)

    assert fleet("--boards", "2", "--out", "whole") == 0
    wanted, original = loss(capsys.readouterr().out), Synchronous.step

    def stopped(group: Synchronous, *given: Any) -> float:
        if group.steps in (2, 4):
            os.kill(os.getpid(), signal.SIGINT)
        return original(group, *given)

    monkeypatch.setattr(Synchronous, "step", stopped)
    assert fleet("--boards", "2", "--out", "parts", "--steps", "1") == 0
    assert "epoch 1 " in capsys.readouterr().out
    assert [fleet("--boards", "2", "--out", "parts") for _ in range(3)] == [130, 130, 0]
    assert wanted == loss(capsys.readouterr().out) != []


def test_ctrl_c_stops_after_a_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Synchronous.step

    def stopped(group: Synchronous, *given: Any) -> float:
        if group.steps == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return original(group, *given)

    monkeypatch.setattr(Synchronous, "step", stopped)
    assert fleet("--boards", "2", "--out", "o") == 130
    out = capsys.readouterr().out
    assert (
        "stopped; the weights of step 5 of 8 are o/step-00000005.npz; the same command continues there" in out
    )


WRONG = {
    "more boards than samples": (["--boards", "61"], "61 boards for 60 samples: each needs 1 at least"),
    "rounds": (
        ["--rounds", "3"],
        "--rounds has no effect with --synchronous: say --ep",
    ),
    "mu": (["--mu", "0.1"], "--mu has no effect with --synchronous"),
    "bytes": (["--delta", "s8"], "--delta has no effect with --synchronous"),
    "few boards": (["--per-round", "2"], "--per-round has no effect with --synchronous"),
    "statistics": (["--local-buffers"], "--local-buffers has no effect with --synchronous"),
    "classes": (["--alpha", "0.5"], "--alpha has no effect with --synchronous"),
    "a strategy": (["--strategy", "FedAdam"], "--strategy has no effect with --synchronous"),
    "a norm": (["--clip", "1", "--noise", "2"], "--clip has no effect with --synchronous"),
    "noise": (["--noise", "2"], "--noise has no effect with --synchronous"),
    "an evaluation": (["--evaluate", "0.2"], "--evaluate has no effect with --synchronous"),
    "an evaluation of all": (["--evaluate", "0"], "--evaluate has no effect with --synchronous"),
    "virtual boards": (["--profile", "stm32=2"], "--profile has no effect with --synchronous"),
    "firmware without accumulate": (
        ["--port", "/dev/ttyX"],
        'give ag.Model accumulate="mean" in m.py, then build and upload it',
    ),
    "a board that is unknown": (["--emulated", "stm33=1"], "unknown board 'stm33'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, message = WRONG[case]
    assert fleet(*words) == 1
    out, err = capsys.readouterr()
    assert not out and err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_what_the_loss_and_the_schedule_say(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(loss='reduction="sum"', more=", schedule=optim.lr_scheduler.StepLR(step_size=9)")
    assert fleet("--out", "o") == 0
    assert "gradients are a sum over the samples" in capsys.readouterr().out
    assert fleet("--out", "o", "--epochs", "2", "--lr", "0.1") == 1
    assert "--lr: the model's schedule computes the learning rate" in capsys.readouterr().err
    write_model(units=7)
    assert fleet("--out", "o", "--epochs", "2") == 1
    assert "o/step-00000004.npz: " in capsys.readouterr().err


@pytest.mark.qemu
@pytest.mark.slow
def test_emulated_boards_and_twins(capsys: pytest.CaptureFixture[str]) -> None:
    """Boards of two kinds and two twins make the steps of four twins but for rounding."""
    words = ["--epochs", "2", "--timeout", "60"]
    assert fleet("--boards", "4", "--out", "twins", *words) == 0
    kinds = ["--boards", "2", "--emulated", "stm32=1,mps2_an385=1"]
    assert fleet(*kinds, "--out", "emulated", *words) == 0
    assert [e[:2] for e in epochs(capsys.readouterr().out)] == [(1, 4), (2, 8)] * 2
    with np.load("emulated/step-00000008.npz") as one, np.load("twins/step-00000008.npz") as other:
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=0, atol=1e-5, err_msg=name)
