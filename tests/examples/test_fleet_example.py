"""examples/fleet: 1,000 virtual boards with digits, and 16 emulated boards of three kinds with gestures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from console_pages import Command, matches, run, steps
from learn_environment import environment

FOLDER = ROOT / "examples" / "fleet"
COMMANDS = {
    step.line.split()[3]: step  # by its first option
    for step in steps((FOLDER / "README.md").read_text())
    if isinstance(step, Command) and step.line.startswith("autodiff-gen fleet")
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(FOLDER / "boards.toml", tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.cc
def test_a_thousand_virtual_boards(tmp_path: Path) -> None:
    """The first round of the command of the README, with fewer steps: its digits may be others."""
    command = COMMANDS["--profile"]
    assert "--rounds 12" in command.line and "--steps 10" in command.line
    line = command.line.replace("--rounds 12", "--rounds 1").replace("--steps 10", "--steps 1")
    ((_, printed, code),) = run([Command(line, "")], tmp_path, environment(tmp_path / "bin"))
    assert code == 0, printed
    kinds = "600 x stm32 (... ms a step), 200 x mps3_an547 (... ms a step), 200 x mps2_an385 (... ms a step)"
    shown = f"...\nmnist: 1,000 twins on the host as {kinds}; ... samples from ...\n...\nround 1 ...\n"
    assert matches(
        f"{shown}    virtual time 0 s to 30.0 s: ...; late: ... boards (...); vanished: ...\n...\n", printed
    )
    row = json.loads((tmp_path / "build/fleet/mnist/timeline.jsonl").read_text())
    assert len(row["visits"]) == 1000 and row["boards"] + row["failed"] == 1000 and 10 < row["failed"] < 100


@pytest.mark.qemu
@pytest.mark.slow
def test_sixteen_emulated_boards_of_three_kinds(tmp_path: Path) -> None:
    command = COMMANDS["--emulated"]
    assert "--emulated stm32=6,mps2_an385=5,mps3_an547=5" in command.line and "--rounds 3" in command.line
    ((_, printed, code),) = run([command], tmp_path, environment(tmp_path / "bin"))
    assert code == 0 and matches(command.shown, printed), printed
