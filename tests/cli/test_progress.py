"""What long commands show while they work: a line on a terminal, nothing in a pipe; and that Ctrl-C ends them."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from onnx import TensorProto, helper
from terminal import Terminal, as_stderr

from autodiff_gen import progress
from autodiff_gen.cli.main import main

MODEL = """
import signal
import autodiff_gen as ag
from autodiff_gen import nn, optim
model = ag.Model.supervised(nn.Linear(3, 2), (2, 3), nn.MSELoss(), optim.SGD(lr=0.1))
batch = lambda step: signal.raise_signal(signal.SIGINT)
"""


def small(folder: Path) -> str:
    path = folder / "small.py"
    path.write_text(MODEL)
    return str(path)


@pytest.mark.parametrize("command", ["explain", "report", "build"])
def test_a_terminal_shows_what_is_compiled(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = {"report": ["--out", str(tmp_path / "page.html")], "build": ["--out", str(tmp_path / "c")]}
    terminal = as_stderr(monkeypatch)
    assert main([command, small(tmp_path), "--board", "stm32", *out.get(command, [])]) == 0
    assert (
        re.fullmatch(r"compiling small for stm32 \(\d+ s\)", terminal.lines[1]) and terminal.lines[-1] == ""
    )
    assert "compiling" not in capsys.readouterr().out


def test_a_pipe_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", small(tmp_path), "--board", "stm32"]) == 0
    assert capsys.readouterr().err == ""


def test_parts_of_a_task_are_shown_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with progress.on_terminal(terminal), progress.doing("planning"), progress.doing("choice 2"):
        progress.step("schedule")
    progress.step("nobody sees this")
    assert "planning, choice 2, schedule (0 s)" in terminal.getvalue()
    assert "nobody" not in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")


def test_ctrl_c_ends_a_command_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", small(tmp_path), "--board", "stm32", "--ram", "4K"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_terminal_shows_the_import_and_how_long_a_step_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a network file, whose import may take long: the line is written again where no step ends."""
    node = helper.make_node("Relu", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    onnx = helper.make_model(helper.make_graph([node], "net", ends[:1], ends[1:]))
    (tmp_path / "net.onnx").write_bytes(onnx.SerializeToString())
    terminal = as_stderr(monkeypatch)
    main(["explain", str(tmp_path / "net.onnx"), "--board", "host"])
    assert "importing net.onnx (0 s)" in terminal.getvalue()
    with progress.on_terminal(terminal):
        with progress.doing("compiling"):
            progress.step("a stage")
        with progress.doing("a long step"):
            time.sleep(1.2)
    assert "a long step (1 s)" in terminal.getvalue() and "a long step, a stage" not in terminal.getvalue()
