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
    "no key": "--strategy: expected FedAdam,KEY=VALUE,..., got 'FedAdam,'",
    "waits": "the strategy waits for more clients than the 1 client of this run: lower its fraction_train",
    "not finite": "round 1: the strategy FedAdam made weights that are not finite: lower its options, such as eta",
    "empty": "--strategy  is unknown; it is one of ",
    "value": "--strategy: expected eta=NUMBER, got eta=much",
    "compares": "--strategy Krum compares clients, and --per-node 3 makes clients that are the mean of boards",
    "draws": "--per-round draws clients, not boards: leave out --per-node, or --per-round",
    "statistics": "--strategy DifferentialPrivacyServerSideAdaptiveClipping: the model has running statistics",
    "damaged": "parts/strategy-00004.npz is no complete file of np.savez: truncated, or another format; without",
    "secagg fails": "write --secagg clipping_range=",
    "secagg of weights": "round 1: no board answered: the client has 10 samples: write --secagg max_weight=10, or more",
    "secagg of many": "--secagg: 6 clients overflow modulus_range=4294967296: write quantization_range=536870912, or",
    "secagg of two": "--secagg hides a client among others: it needs 3 at least, and this run has 2 clients",
    "secagg of words": "--secagg: expected numbers of num_shares, reconstruction_threshold, max_weight, ",
    "batches by secagg": "differences times samples / max_weight are up to 0.1",  # of 5 batches, not of 20 samples
    "secagg without a threshold": "--secagg reconstruction_threshold=0: expected 2 or more, or a share of num_shares",
    "secagg of a negative threshold": "--secagg reconstruction_threshold=-1: expected 2 or more, or a share of ",
    "secagg of an endless weight": "--secagg max_weight=inf: expected a finite number above 0",
    "secagg of no range": "--secagg clipping_range=nan: expected a finite number above 0",
    "secagg of 4 shares": "--secagg num_shares=4: expected an odd number of 3 or more, one for each of the 6 ",
    "secagg of 7 shares": "--secagg num_shares=7: expected an odd number of 3 or more, one for each of the 6 ",
    "secagg of few that are drawn": "it needs 3 at least, and round 1 has 2 clients",
    "secagg of none that is drawn": "it needs 3 at least, and round 1 has 0 clients",
    "secagg compares": "--strategy Krum compares clients, which --secagg hides: use one of FedAvg, FedAvgM, FedProx, ",
    "secagg of clients that vanish": "clients failed, too many to open the sum of the others: board ",
    "trees": "the strategy FedXgbBagging cannot use what boards report, their weights, num-examples and train_loss",
    "clipping": "round 1: no board answered: the server's config has clipping_norm, which boards do not follow",
}
CONFIG = "error: the app's config, [tool.flwr.app.config] of its pyproject.toml, has "
DEPLOYED = {
    "compares": "the strategy Krum compares clients, and one is the mean of 3 boards",
    "busy": "    busy/gateway-1 is in use by process ",
    "no model": f"{CONFIG}no model: the path of a model file, the same on all hosts",
    "no clients": f"{CONFIG}no clients: add an integer of at least 1",
    "clients": f"{CONFIG}clients='two': expected an integer of at least 1",
    "words": "error: the options of an app or a node have a quotation without an end",
    "option": "error: unknown option '--round'; did you mean '--rounds'?",
    "not secure": "no board answered: the client has --secagg, and the server requests weights without it",
    "few": "--secagg hides a client among others: it needs 3 at least, and this run has 2 clients",
}
REPLIES = {
    "clipping": "the server's config has clipping_norm, which boards do not follow; they follow proximal-mu",
    "type": "the server's config has steps='many': expected int",
    "encoding": "differences as 's4': expected f32, s8, or the largest",
    "seed": "the server's config has seed=-1: expected at least 0",
    "round": "the server's config has server-round=-1: expected the number of a round",
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
    check_deployment(found["deployment"], tmp_path)
    check_secure(found["secure"])
    check_state(found["state"])
    check_thousand_boards(found["1,000 boards"], capsys)


def check_thousand_boards(found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Memory, and a gateway's time beyond the training, in seconds of processors of one run: Flower itself takes
    about a millisecond for each client."""
    megabytes, training = found.pop("megabytes"), found["training"][1]
    with capsys.disabled():
        print(f"\n1,000 boards, a round: {megabytes:.0f} MB")
        for name, (seconds, of_processors) in found.items():
            print(f"    {name:<15}{seconds:6.2f} s, {of_processors:.2f} s of processors")
    assert megabytes <= 1024
    for name, most in (("averaging", 1.0), ("one client", 1.0), ("1,000 clients", 3.0)):
        assert found[name][1] - training <= most, name


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
    assert "   before it, on boards " in found["evaluates"][1]
    assert "continues after round 2" in found["rest"][1]
    assert "parts has no state of FedAdam after round 4: it begins anew\nround 5 " in found["no state"][1]
    assert "    virtual time 0 s to " in found["virtual time"][1]
    assert sum("begins anew" in out for _, out, _ in found.values()) == 1
    assert equal(folder / "whole/round-00004.npz", folder / "parts/round-00004.npz")
    with (
        np.load(folder / "whole/round-00002.npz") as one,
        np.load(folder / "secagg/round-00002.npz") as other,
    ):
        for name in one:
            np.testing.assert_allclose(other[name], one[name], rtol=0, atol=1e-4)
    with (
        np.load(folder / "krum/round-00001.npz") as one,
        np.load(folder / "average/round-00001.npz") as other,
    ):
        assert np.abs(one["1.running_mean"] - other["1.running_mean"]).max() > 1e-3  # the mean of one board
    with np.load(folder / "integers/round-00002.npz") as weights:
        assert weights["last"].dtype == np.int8


def equal(one: Path, other: Path) -> bool:
    """Whether two files have the same weights."""
    with np.load(one) as a, np.load(other) as b:
        return a.keys() == b.keys() and all(np.array_equal(a[n], b[n]) for n in a)


def check_deployment(found: dict[str, str], folder: Path) -> None:
    assert "round 2    6 boards " in found["trained"]
    assert "the weights of round 2 are app/round-00002.npz" in found["trained"]
    assert "continues after round 1\nround 2 " in found["rest"]  # with the moments of FedAdam
    assert equal(folder / "app/round-00002.npz", folder / "apps/round-00002.npz")
    assert "round 3    3 boards " in found["moments"]  # a round that comes again begins where it began before
    assert equal(folder / "kept/round-00003.npz", folder / "moments/round-00003.npz")
    assert [f.name for f in sorted((folder / "kept/gateway-0").glob("twins-*"))] == [
        "twins-00002.npz",
        "twins-00003.npz",
    ]
    assert "round 1    3 boards, 1 failed" in found["busy"]
    assert "round 2    9 boards " in found["secure"]
    begun = ("compares", "busy", "not secure")
    for name, message in DEPLOYED.items():
        assert message in found[name] and found[name].count("\n") <= 4
    assert all(found[name].startswith("error: ") for name in DEPLOYED if name not in begun)


def check_secure(found: dict[str, Any]) -> None:
    """The server sees vectors of random numbers, others in each run, and no arrays; their mean is exact but for the
    rounding of SecAgg+, also where a client fails before or after the keys are shared."""
    assert found["arrays"] == 0 and len(found["masked"]) == 3
    for mean, deviation, share in found["masked"]:
        assert mean / 2**32 == pytest.approx(0.5, abs=0.2) and share == 1.0
        assert deviation / 2**32 == pytest.approx(12**-0.5, abs=0.1)
    assert 0 < found["difference"] <= found["step"] < 1e-5 < 1e-2 < found["changed"]
    for name in ("difference of two", "difference of silent"):
        assert 0 < found[name] <= found["step of two"]
    assert found["loss"][0] == pytest.approx(found["loss"][1])
    assert found["silent"] == ["1 of 3 clients did not reply"]
    assert found["not finite"] == ["differences are not finite: lower --lr"]
    assert found["counts"] == 3 * [["100 instructions a step of one", "102 instructions a step of other"]]
    assert found["setups"] == [
        "",
        "the server's secure aggregation has 2 clients in a round: expected 3 or more",
        "the server's secure aggregation has 1 shares that open a client's key: expected 2 or more",
    ]
    assert len(found["failed"]) == 1 and found["failed"][0].startswith(
        "board 1: net: round 1: a label or index"
    )


def check_state(found: dict[str, Any]) -> None:
    """Of a strategy in a strategy: moments of the inner one, and a norm that rounds change."""
    changed, loaded, other = found["norms"]
    assert changed == loaded != other == 0.01
    assert (found["loaded"], found["equal"]) == (
        [True, False],
        [True, True],
    )  # not for weights of another run
    assert found["files"] == ["strategy-00001.npz", "strategy-00002.npz"]
    words = found["wrong"].pop("words")
    assert "the array 'x' has elements of dtype object; save numbers; without strategy-00002.npz" in words
    for reason in found["wrong"].values():
        assert "which DifferentialPrivacyServerSideAdaptiveClipping does not keep" in reason
