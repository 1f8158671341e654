"""Networks with 8-bit weights in a fleet: the mean of rounds is rounded, right on average and the same in each run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federated_problem import Problem
from small_fleet import INTEGERS, fleet, write_data

from autodiff_gen.device.session import Session
from autodiff_gen.errors import ShapeError
from autodiff_gen.fleet import rounds_command
from autodiff_gen.fleet.rounded import rounded

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(integers=True)


def test_floats_become_integers_that_are_right_on_average(problem: Problem) -> None:
    last = np.array(
        [[0.25, -0.25, 3.0, 126.5, -128.0], [130.0, 127.4, -128.7, -1e30, 1e30], [0.0] * 5], np.float32
    )
    weights = {**problem.weights, "last": last}
    drawn = [rounded(problem.slots, weights, 0, number)["last"] for number in range(2000)]
    assert drawn[0].dtype == np.int8 and np.array_equal(
        drawn[0], rounded(problem.slots, weights, 0, 0)["last"]
    )
    np.testing.assert_allclose(np.mean(drawn, 0), np.clip(last, -128, 127), atol=0.05)
    exact = rounded(problem.slots, {**weights, "last": drawn[0]}, 1, 1)
    assert np.array_equal(exact["last"], drawn[0])
    with pytest.raises(ShapeError, match=r"weights: last is s8\[3,5\].*, got inf"):
        rounded(problem.slots, {"last": np.full((3, 5), np.inf)}, 0)


def test_channels_that_do_not_train_keep_their_constants(problem: Problem) -> None:
    given = rounded(problem.slots, problem.weights)
    held = rounded(problem.slots, {name: array + 1 for name, array in given.items()})
    changed = [(held[name] != given[name]).mean() for name in ("first.weight", "first.bias", "last")]
    assert 0 < changed[0] < 1 and changed[2] == 1


def test_the_command_trains_8_bit_weights_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A round begins with the weights in the file of the one before, whether the run was stopped or not."""
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text(INTEGERS)
    write_data()
    begun, original = [], rounds_command.run_round

    def seen(*args: Any) -> Any:
        begun.append((args[3], args[4]))
        return original(*args)

    monkeypatch.setattr(rounds_command, "run_round", seen)
    words = ["--boards", "3", "--delta", "s8", "--epochs", "2"]
    for rounds in ("3", "4"):
        assert fleet(*words, "--rounds", rounds) == 0
    assert float(re.findall(r"accuracy +([\d.]+)%", capsys.readouterr().out)[-1]) > 80.0
    assert [number for number, _ in begun] == [1, 2, 3, 4] and begun[2][1]["last"].dtype == np.int8
    for number, weights in begun[1:]:
        with np.load(f"build/fleet/m/round-{number - 1:05}.npz") as kept:
            assert all(np.array_equal(kept[name], array) for name, array in weights.items())
    with np.load("build/fleet/m/round-00004.npz") as kept:
        state = {name: kept[name] for name in kept if name != "_steps"}
    Session("m.py", "host").trainer().load_state_dict(state)
