"""Virtual time of twins: the time of a round on boards, late boards and boards that vanish."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_fleet import fleet, write_data, write_model

from autodiff_gen.codegen.instruction_estimate import instructions
from autodiff_gen.device.session import Session
from autodiff_gen.fleet import rounds_command
from autodiff_gen.fleet.conditions import read_profile, step_seconds
from autodiff_gen.fleet.virtual import AROUND, upload_bytes

pytestmark = pytest.mark.cc
PROFILE = """latency = 0.25
{more}
[a]
boards = 4
step = 0.5
rate = 1000
[b]
boards = 2
step = 2
rate = 500
{own}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_model()
    write_data()


def virtual(*words: str, more: str = "", own: str = "") -> int:
    Path("boards.toml").write_text(PROFILE.format(more=more, own=own))
    return fleet("--profile", "boards.toml", "--steps", "3", *words)


def rows(folder: str = "build/fleet/m") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(folder) / "timeline.jsonl").read_text().splitlines()]


def test_time_is_download_compute_and_upload(capsys: pytest.CaptureFixture[str]) -> None:
    assert virtual("--rounds", "2", "--delta", "s8") == 0
    out = capsys.readouterr().out
    assert "m: 6 twins on the host as 4 x a (500 ms a step), 2 x b (2 s a step); 60 samples" in out
    down, up = 4 * 57 + AROUND, 57 + 4 + AROUND
    slow = 0.25 + down / 500 + 3 * 2 + 0.25 + up / 500
    first, second = rows()
    for k, (board, kind, state, *parts) in enumerate(first["visits"]):
        rate, step = (1000, 0.5) if k < 4 else (500, 2)
        assert (board, kind, state) == (k, "ab"[k // 4], "answered")
        np.testing.assert_allclose(parts, (0, 0.25 + down / rate, 3 * step, 0.25 + up / rate), rtol=1e-5)
    assert (first["begin"], first["virtual"], first["boards"]) == (0, True, 6)
    assert second["begin"] == first["seconds"] == pytest.approx(slow)
    assert (
        f"virtual time 0 s to {slow:.3g} s: half of the boards took up to 2.33 s, board 4 (b) {slow:.3g} s\n"
        in out
    )


def test_small_batches_take_less_and_frames_that_are_lost_more() -> None:
    assert virtual("--rounds", "1", "--batch", "1", "--conditions", "loss=0.5,latency=0.01") == 0
    (row,) = rows()
    compute, download = (np.array([v[k] for v in row["visits"]]) for k in (5, 4))
    np.testing.assert_allclose(compute, [3 * 0.5 / 4] * 4 + [3 * 2 / 4] * 2)
    frame = (4 * 57 + AROUND) / 1000
    again = (download[:4] - 0.01 - frame) / (frame + 0.02)
    assert np.abs(again - again.round()).max() < 1e-4 and again.max() >= 1


def test_late_and_vanished_boards_are_reported_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    more = "vanish = 0.2\nlate = 0.4\ndelay = 6\ndeadline = 9"
    assert virtual("--rounds", "8", more=more) == 0
    out = capsys.readouterr().out
    for row in rows():
        states = [v[2] for v in row["visits"]]
        times = [sum(v[3:]) for v in row["visits"]]
        assert row["boards"] == states.count("answered") == 6 - row["failed"]
        assert row["seconds"] == pytest.approx(9.0 if row["failed"] else max(times)) and max(times) <= 9.0001
        assert all(t == pytest.approx(9.0) for t, s in zip(times, states, strict=True) if s == "late")
    found = {state for row in rows() for *_, state in [v[:3] for v in row["visits"]]}
    assert found == {"answered", "late", "vanished"}
    assert re.search(r"; late: \d boards? \(\d", out) and re.search(r"; vanished: \d boards? \(\d", out)
    assert not re.search(r"^    board", out, re.MULTILINE)  # no line for each of them
    begins = [row["begin"] for row in rows()]
    assert begins == pytest.approx(np.cumsum([0, *(row["seconds"] for row in rows())])[:-1].tolist())


def test_a_board_that_vanishes_changes_no_weights() -> None:
    """The weights equal a run without it."""
    assert virtual("--rounds", "1", "--out", "all") == 0
    assert virtual("--rounds", "1", "--out", "some", own="vanish = 1") == 0
    (row,) = rows("some")
    assert [v[2] for v in row["visits"]] == ["answered"] * 4 + ["vanished"] * 2 and row["samples"] == 40
    with np.load("all/round-00001.npz") as one, np.load("some/round-00001.npz") as other:
        assert any(not np.array_equal(one[n], other[n]) for n in one)


def test_a_run_that_is_resumed_has_the_timeline_of_one_that_was_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "vanish = 0.1\nloss = 0.1\nlate = 0.2\ndeadline = 12"
    assert virtual("--rounds", "5", "--out", "whole", "--log", "whole.csv", more=more) == 0
    original = rounds_command.run_round

    def stopped(*args: Any, **kwargs: Any) -> Any:
        if args[3] == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    words = ["--rounds", "5", "--out", "parts", "--log", "parts.csv"]
    monkeypatch.setattr(rounds_command, "run_round", stopped)
    assert virtual(*words, more=more) == 130
    monkeypatch.setattr(rounds_command, "run_round", original)
    lines = (Path("parts") / "timeline.jsonl").read_text().splitlines()
    cut = [
        *lines,
        lines[-1].replace('"round": 2', '"round": 3'),
        '{"round": 3, "be',
    ]  # of a process that ended
    (Path("parts") / "timeline.jsonl").write_text("\n".join(cut))
    assert virtual(*words, more=more) == 0
    assert rows("parts") == rows("whole")
    assert Path("parts.csv").read_text() == Path("whole.csv").read_text()
    head, *found = [line.split(",") for line in Path("whole.csv").read_text().splitlines()]
    assert head == ["step", "epoch", "loss", "lr", "accuracy", "seconds"]
    ends = [row["begin"] + row["seconds"] for row in rows("whole")]
    assert [float(r[5]) for r in found] == pytest.approx(ends, abs=1e-3)
    assert virtual(*words, "--fresh", more=more) == 0
    assert "parts.csv has rows of another run; it is now parts.1.csv" in capsys.readouterr().out
    assert rows("parts") == rows("whole")


def test_a_timeline_of_others_is_not_continued(capsys: pytest.CaptureFixture[str]) -> None:
    assert virtual("--rounds", "1", "--out", "o") == 0
    file = Path("o/timeline.jsonl")
    line = file.read_text()
    file.write_text(line.replace('"seconds": ', '"seconds": "", "of": '))
    assert virtual("--rounds", "2", "--out", "o") == 1
    assert "error: o/timeline.jsonl: line 1 is no round of autodiff-gen fleet" in capsys.readouterr().err
    file.write_text(line)
    assert fleet("--synchronous", "--boards", "2", "--steps", "1", "--out", "o") == 0
    assert (
        "o/timeline.jsonl has rounds of another run; it is now o/timeline.1.jsonl" in capsys.readouterr().out
    )
    assert not file.exists() and Path("o/timeline.1.jsonl").read_text() == line


def test_boards_over_the_link_are_in_a_timeline_with_virtual_ones() -> None:
    assert virtual("--rounds", "1", "--emulated", "host=1", "--out", "o") == 0
    (row,) = rows("o")
    assert [v[:3] for v in row["visits"]][-1] == [6, "host", "answered"] and len(row["visits"]) == 7
    assert row["seconds"] == pytest.approx(max(sum(v[3:]) for v in row["visits"]), rel=1e-5)


def test_scalars_of_rounds_for_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, int]] = []

    class SummaryWriter:
        def __init__(self, folder: str, purge_step: int | None = None) -> None:
            assert (folder, purge_step) == ("events", None)

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, step))

        def close(self) -> None:
            pass

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=SummaryWriter))
    assert virtual("--rounds", "2", "--tensorboard", "events") == 0
    assert written == [(name, k) for k in (1, 2) for name in ("loss", "lr", "accuracy")]


def test_a_step_of_a_board_is_its_instructions_by_its_clock() -> None:
    session = Session("m.py", "mps2_an385")
    found, cost = instructions(session.program)["train_step"], session.program.backends.cost
    seconds = step_seconds(session)
    assert seconds == found * cost.cycles / 25e6 and 1e-4 < seconds < 1e-1
    counted = read_profile("mps2_an385=3", {"instructions": 2.0 * found}, lambda kind: session)
    assert counted.kinds["mps2_an385"].step == pytest.approx(2 * seconds)


def test_bytes_of_differences() -> None:
    assert [upload_bytes(e, n, 240) for e in ("f32", "s8") for n in (1, 236, 237)] == [
        4,
        944,
        948,
        5,
        240,
        245,
    ]


WRONG = {
    "no number": (["--profile", "stm32"], "--profile: expected boards such as stm32=700,mps2_an385=300"),
    "a board twice": (["--profile", "a=1,a=2"], "--profile: expected boards such as"),
    "no boards": (["--profile", "stm32=0"], "stm32: expected boards = a number of at least 1, got 0"),
    "an unknown board": (["--profile", "stm33=1"], "unknown board 'stm33'"),
    "no clock": (["--profile", "host=1"], "the board file of host has no cost.cycles, target.clock_hz"),
    "no cycles": (
        ["--profile", "pico=1"],
        "give the seconds of a local step in a .toml file, as [pico] with step",
    ),
    "two numbers": (
        ["--profile", "stm32=2", "--boards", "3"],
        "--boards 3: --profile has 2; leave one of them out",
    ),
    "no profile": (["--conditions", "loss=0.1"], "--conditions describes virtual boards"),
    "a condition": (
        ["--profile", "a=1", "--conditions", "los=0"],
        "--conditions: unknown condition 'los'; did you",
    ),
    "a share": (["--profile", "a=1", "--conditions", "vanish=2"], "vanish is a share, at most 1, got 2.0"),
    "no rate": (
        ["--profile", "a=1", "--conditions", "rate=0"],
        "rate must be a number of more than 0, got 0.0",
    ),
    "a payload": (
        ["--profile", "a=1", "--conditions", "payload=62"],
        "payload must be a multiple of 4 from 60 to 240",
    ),
    "a word": (["--profile", "a=1", "--conditions", "rate=x"], "expected a number, got 'x'"),
    "no file": (["--profile", "no.toml"], "no.toml: cannot be read: No such file"),
    "nobody left": (["--profile", "v.toml"], "round 1: no board answered: vanished"),
    "no section": (["--profile", "empty.toml"], "empty.toml: has no section of a kind of board"),
    "its condition": (["--profile", "d.toml"], "d.toml: a: unknown condition 'deadline'"),
    "two speeds": (["--profile", "fast.toml"], "fast.toml: a: step and instructions exclude each other"),
    "many": (["--profile", "many.toml"], "many.toml: a: expected boards = a number of at least 1, got 1.5"),
}
TOML = {
    "v": "vanish = 1\n[a]\nboards = 3\nstep = 1",
    "empty": "rate = 100\n",
    "d": "[a]\nboards = 1\nstep = 1\ndeadline = 3",
    "fast": "[a]\nboards = 1\nstep = 1\ninstructions = 5000",
    "many": "[a]\nboards = 1.5\nstep = 1",
}


def test_wrong_profiles(capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests) -> None:
    for name, text in TOML.items():
        Path(f"{name}.toml").write_text(text)
    for case, (words, message) in WRONG.items():
        with subtests.test(case):
            assert fleet(*words) in (1, 2)
            err = capsys.readouterr().err
            assert err.startswith("error: ") and err.count("\n") == 1 and message in err
