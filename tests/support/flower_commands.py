"""`autodiff-gen fleet` with strategies of Flower, by the Python of .venv-fleet."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from small_fleet import BATCHES, INTEGERS

from autodiff_gen.cli.main import main

MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
model = ag.Model.supervised(net, (4, 5), nn.CrossEntropyLoss(), optim.SGD(lr=0.3))
"""
ADAPTIVE = (
    "DifferentialPrivacyServerSideAdaptiveClipping,noise_multiplier=0.1,initial_clipping_norm=0.01,strategy="
)
COMMANDS = {
    "unknown": ["--strategy", "FedAdm"],
    "option": ["--strategy", "FedAdam,et=1"],
    "missing": ["--strategy", "DifferentialPrivacyServerSideFixedClipping"],
    "no key": ["--strategy", "FedAdam,"],
    "waits": ["--strategy", "FedAvg,fraction_train=2"],
    "not finite": ["--strategy", "FedAdam,eta=1e300"],
    "empty": ["--strategy", ""],
    "value": ["--strategy", "FedAdam,eta=much"],
    "compares": ["--strategy", "Krum", "--per-node", "3"],
    "draws": ["--strategy", "FedAvg", "--per-node", "3", "--per-round", "2"],
    "trees": ["--strategy", "FedXgbBagging"],
    "clipping": [
        "--strategy",
        "DifferentialPrivacyClientSideFixedClipping,strategy=FedAvg,noise_multiplier=0.1,clipping_norm=1",
        "--local-buffers",
    ],
    "statistics": ["--strategy", f"{ADAPTIVE}FedAdam"],
    "krum": ["--strategy", "Krum,num_malicious_nodes=1", "--rounds", "1", "--out", "krum"],
    "average": ["--strategy", "FedAvg", "--rounds", "1", "--out", "average"],
    "integers": ["--strategy", "FedAdam,eta=0.5", "--rounds", "2", "--out", "integers"],
    "integers of the median": ["--strategy", "FedMedian", "--rounds", "2", "--out", "median"],
    "evaluates": ["--strategy", "FedAvg", "--rounds", "1", "--evaluate", "0.2", "--out", "evaluated"],
    "whole": ["--strategy", "FedAdam,eta=0.03", "--rounds", "4", "--out", "whole"],
    "part": ["--strategy", "FedAdam,eta=0.03", "--rounds", "3", "--out", "parts"],
    "stop": ["rm", "parts/round-00003.npz"],  # between the strategy's state and the weights of a round
    "rest": ["--strategy", "FedAdam,eta=0.03", "--rounds", "4", "--out", "parts"],
    "damage": ["rm", "-w", "parts/strategy-00004.npz"],
    "damaged": ["--strategy", "FedAdam,eta=0.03", "--rounds", "5", "--out", "parts"],
    "another state": ["rm", "parts/strategy-00004.npz"],
    "no state": ["--strategy", "FedAdam,eta=0.03", "--rounds", "5", "--out", "parts"],
    "secagg": ["--secagg", "--strategy", "FedAdam,eta=0.03", "--rounds", "2", "--out", "secagg"],
    "secagg fails": ["--secagg", "clipping_range=0.01"],
    "secagg of weights": ["--secagg", "max_weight=9"],
    "secagg of many": ["--secagg", "quantization_range=1073741824"],
    "secagg of two": ["--secagg", "--boards", "2"],
    "secagg of words": ["--secagg", "shares=3"],
    "batches by secagg": ["--secagg", "clipping_range=0.05", "--boards", "3", "--out", "batches"],
    "secagg without a threshold": ["--secagg", "reconstruction_threshold=0"],
    "secagg of a negative threshold": ["--secagg", "reconstruction_threshold=-1"],
    "secagg of an endless weight": ["--secagg", "max_weight=inf"],
    "secagg of no range": ["--secagg", "clipping_range=nan"],
    "secagg of 4 shares": ["--secagg", "num_shares=4"],
    "secagg of 7 shares": ["--secagg", "num_shares=7"],
    "secagg of half of the clients": [
        *("--secagg", "num_shares=0.5,reconstruction_threshold=2", "--rounds", "1", "--out", "half"),
    ],
    "secagg of few that are drawn": ["--secagg", "--strategy", "FedAvg,fraction_train=0.4,min_train_nodes=2"],
    "secagg of none that is drawn": ["--secagg", "--strategy", "FedAvg,fraction_train=0,min_train_nodes=0"],
    "secagg compares": ["--secagg", "--strategy", "Krum"],
    "secagg of clients that vanish": ["--profile", "v.toml", "--secagg", "--out", "vanish"],
    "virtual time": ["--profile", "p.toml", "--strategy", "FedAvg", "--rounds", "1", "--out", "virtual"],
    "moments": ["--boards", "3", "--strategy", "FedAvg", "--rounds", "3", "--out", "moments"],
    "no state to miss": ["--strategy", "FedAvg", "--rounds", "2", "--out", "average"],
}


def commands() -> dict[str, list[Any]]:
    """The command with each of COMMANDS: its exit code, and its output."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, 60)
    x = (rng.normal(size=(60, 5)) * 0.2 + np.eye(3, 5)[label]).astype(np.float32)
    np.savez("data.npz", x=x, label=label, test_x=x, test_label=label)
    Path("m.py").write_text(MODEL)
    Path("moments.py").write_text(MODEL.replace("SGD(lr=0.3)", "Adam(lr=0.02)"))
    Path("batches.py").write_text(BATCHES)
    Path("integers.py").write_text(INTEGERS)
    Path("p.toml").write_text("[a]\nboards = 6\nstep = 1\n")
    Path("v.toml").write_text("vanish = 0.7\n[a]\nboards = 6\nstep = 1\n")
    found = {}
    for name, words in COMMANDS.items():
        if words[0] == "rm":
            file = Path(words[-1])
            file.write_bytes(file.read_bytes()[:-100]) if "-w" in words else file.unlink()
            continue
        first = name.partition(" ")[0]
        model = f"{first}.py" if first in ("batches", "integers", "moments") else "m.py"
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["fleet", model, "--data", "data.npz", "--boards", "6", *words])
        found[name] = [code, out.getvalue(), err.getvalue()]
    return found
