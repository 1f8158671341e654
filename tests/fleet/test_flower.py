"""Flower as the server, in .venv-fleet, which `./scons test` makes: strategies are what they are in PyTorch, and what
cannot work is one line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from federated_problem import MU, Problem
from federated_torch import adam, averaging, in_pytorch

PYTHON = ROOT / ".venv-fleet/bin/python"
ONE_LINE = {
    "unknown": "--strategy FedAdm is unknown; did you mean FedAdam?",
    "option": "--strategy FedAdam has no et; it has fraction_train",
    "missing": "needs strategy: write --strategy DifferentialPrivacyServerSideFixedClipping,strategy=VALUE",
    "value": "--strategy: expected eta=NUMBER, got eta=much",
    "compares": "--strategy Krum compares clients, and --per-node 3 makes clients that are the mean of boards",
    "draws": "--per-round draws clients, not boards: leave out --per-node, or --per-round",
    "trees": "the strategy FedXgbBagging cannot use what boards report, their weights, num-examples and train_loss",
    "clipping": "round 1: no board answered: the server's config has clipping_norm, which boards do not follow",
}
REPLIES = {
    "clipping": "the server's config has clipping_norm, which boards do not follow; they follow proximal-mu",
    "type": "the server's config has steps='many': expected int",
    "encoding": "differences as 's4': expected f32, s8, or the largest",
    "range": "mu=-1.0: expected finite numbers",
    "none": "board 2: net: round 1: the loss is not finite",
    "no weight": "the weights of a round miss 0.weight",
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.slow
def test_flower_trains_boards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert PYTHON.exists(), f"{PYTHON} is missing: ./scons test makes it"
    words = [PYTHON, "-P", ROOT / "tests/support/flower_runs.py", tmp_path]
    path = f"{ROOT / 'tests/support'}:{ROOT}"
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    check_strategies(tmp_path)
    assert found["replies"].pop("passes") == 24
    assert found["replies"].keys() == REPLIES.keys()
    for name, reason in found["replies"].items():
        assert REPLIES[name] in reason and "\n" not in reason
    assert (found["bad board"]["samples"], found["bad board"]["answered"]) == (13, 2)
    assert ["board 1" in text for text in found["bad board"]["failed"]] == [True]
    assert found["another version"].startswith(
        "Flower 1.43.0 is installed, and boards in this process need 1.42.x; run:"
    )
    check_commands(found["commands"], tmp_path)
    trained, rejected = found["deployment"]
    assert "round 2    6 boards " in trained and "the weights of round 2 are app/round-00002.npz" in trained
    assert "the strategy Krum compares clients, and one is the mean of 3 boards" in rejected
    with capsys.disabled():
        measured = found["1,000 boards"]
        print(f"\n1,000 boards, a round: {measured.pop('megabytes'):.0f} MB")
        for name, (seconds, of_processors) in measured.items():
            print(f"    {name:<15}{seconds:6.2f} s, {of_processors:.2f} s of processors")


def check_strategies(folder: Path) -> None:
    """Ten rounds of boards with few classes; a client may be the mean of boards."""
    problem = Problem()
    rules: dict[str, Callable[[], Any]] = {
        "fedavg": lambda: in_pytorch(problem, averaging()),
        "fedprox": lambda: in_pytorch(problem, averaging(), MU),
        "fedadam": lambda: in_pytorch(problem, adam(0.03)),
    }
    wanted = {name: rule() for name, rule in rules.items()}
    for a, b in (("fedavg", "fedprox"), ("fedavg", "fedadam")):
        assert np.abs(wanted[a][0] - wanted[b][0]).max() > 1e-3
    for name in (*rules, "fedavg of one client", "fedadam of one client"):
        with np.load(folder / f"{name}.npz") as weights:
            for slot, want in zip(problem.slots, wanted[name.partition(" ")[0]], strict=True):
                np.testing.assert_allclose(weights[slot.name], want, rtol=0, atol=1e-5)


def check_commands(found: dict[str, Any], folder: Path) -> None:
    for name, message in ONE_LINE.items():
        code, _, err = found.pop(name)
        assert code == 1 and err.startswith("error: ") and err.count("\n") == 1 and message in err, (
            name,
            err,
        )
    assert {name: code for name, (code, _, _) in found.items()} == dict.fromkeys(found, 0)
    assert "round 1    6 boards " in found["krum"][1]
    assert "continues after round 2" in found["rest"][1]
    with np.load(folder / "whole/round-00004.npz") as one, np.load(folder / "parts/round-00004.npz") as other:
        assert one.keys() == other.keys() and all(np.array_equal(one[n], other[n]) for n in one)
