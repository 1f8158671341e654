"""Options of `autodiff-gen fleet` that are wrong, or have no effect together: each is one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_fleet import fleet, write_data, write_model

pytestmark = pytest.mark.cc


WRONG = {
    "more boards than samples": (["--boards", "61"], "61 boards for 60 samples: each needs one at least"),
    "a large batch": (["--batch", "5"], "--batch 5: the model takes 1 to 4 samples a step"),
    "a product of rates": (
        ["--lr", "1e38", "--mu", "3e38"],
        "mu=3e+38: expected finite numbers of float32, mu",
    ),
    "a product of noise": (["--clip", "1e20", "--noise", "1e20"], "noise=1e+20: expected finite numbers of"),
    "a small product": (["--clip", "1e-30", "--noise", "1e-30"], "and a product that float32 holds"),
    "a board that is unknown": (["--emulated", "stm33=1"], "unknown board 'stm33'"),
    "a board twice": (["--emulated", "stm32=1,stm32=1"], "expected each board once"),
    "a board without a number": (["--emulated", "stm32="], "expected each board once"),
    "no boards of a kind": (
        ["--emulated", "host=1,stm32=0"],
        "argument --emulated: stm32=0: must be at least 1",
    ),
    "a board that nothing emulates": (
        ["--emulated", "teensy41=1"],
        "board teensy41 has no emulator: name the port",
    ),
    "many steps": (
        ["--steps", "4294967296"],
        "--steps: a board makes at most 4,294,967,295 local steps in a round",
    ),
    "many passes": (
        ["--epochs", "4294967295"],
        "--epochs: a board makes at most 4,294,967,295 local steps in a",
    ),
    "a condition without a name": (["--conditions", "1000"], "expected each name once, such as rate=11520"),
    "a condition that is no number": (
        ["--conditions", "loss=0.1,rate=x"],
        "rate=x: expected a number, got 'x'",
    ),
    "a port that is too large": (["--server", "http://h:99999"], "expected flower or http://HOST:PORT, got"),
    "a port that is no number": (["--server", "http://h:abc"], "expected flower or http://HOST:PORT, got"),
    "an empty strategy": (["--strategy", ""], "--strategy needs Flower 1.42, which is not installed"),
    "a server that is unknown": (
        ["--server", "flowers"],
        "argument --server: expected flower or http://HOST:PORT, got 'flowers'",
    ),
    "Flower that is absent": (
        ["--strategy", "FedAdam"],
        "--strategy needs Flower 1.42, which is not installed",
    ),
    "a server that is absent": (
        ["--server", "flower"],
        "--server flower needs Flower 1.42, which is not installed",
    ),
    "a secure server that is absent": (["--secagg"], "--secagg needs Flower 1.42, which is not installed"),
    "noise without a norm": (
        ["--noise", "0.1"],
        "--noise 0.1 is relative to the largest norm of a difference: add",
    ),
    "differences of no kind": (
        ["--delta", "top2"],
        "differences as 'top2': expected f32, s8, or the largest",
    ),
    "a share of all": (["--evaluate", "1"], "must be at least 0 and less than 1"),
    "clients without Flower": (["--per-node", "2"], "--per-node has no effect without Flower: add --server"),
    "a job without NVFlare": (
        ["--job", "j"],
        "--job has no effect without NVFlare: add --server http://HOST:PORT",
    ),
    "a device without NVFlare": (
        ["--device", "d", "--server", "flower"],
        "--device has no effect without NVFlare",
    ),
    **{
        f"{option} with NVFlare": (
            ["--server", "http://127.0.0.1:9", option, value],
            f"{option} has no effect with NVFlare: its server",
        )
        for option, value in (
            ("--rounds", "3"),
            ("--per-round", "2"),
            ("--log", "log.csv"),
            ("--tensorboard", "events"),
            ("--profile", "stm32=2"),
            ("--evaluate", "0"),
        )
    },
    "classes at ports": (
        ["--port", "/dev/ttyX", "--alpha", "1"],
        "--alpha has no effect with boards at ports only",
    ),
    "a share at ports": (
        ["--port", "/dev/ttyX", "--evaluate", "0.2"],
        "--evaluate has no effect with boards at port",
    ),
    "a board without a port": (
        ["--board", "host"],
        "--board has no effect without --port: add --port PORT, or say",
    ),
    "steps and passes": (["--steps", "1", "--epochs", "1"], "not allowed with argument"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options(
    case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
    write_data()
    monkeypatch.setitem(sys.modules, "flwr", None)  # as in an environment without Flower
    words, message = WRONG[case]
    assert fleet(*words) in (1, 2)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err
    assert not Path("build/fleet").exists()
