"""Boards at ports, which have their samples: firmware of the host that talks through pipes and sockets."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from firmware_build import once
from small_fleet import samples, write_data, write_model

from autodiff_gen.cli.main import main
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.device.lock import FolderLock
from autodiff_gen.device.session import Session
from autodiff_gen.fleet.records import records

pytestmark = pytest.mark.cc
SIZES = (10, 11, 12)  # samples of each board


def build(folder: Path) -> None:
    """The firmware, and boards b0, b1, ... with their samples."""
    here = os.getcwd()
    os.chdir(folder)
    try:
        write_model()
        session, first = Session("m.py", "host"), 0
        for k, size in enumerate(SIZES):
            own = folder / f"b{k}"
            own.mkdir()
            shutil.copy(session.firmware, own / "link.elf")
            rows = np.arange(first, first + size)
            (own / "samples.bin").write_bytes(records(link_layout(session.program), samples(), rows))
            first += size
        write_data()
    finally:
        os.chdir(here)


@pytest.fixture(autouse=True)
def boards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    shutil.copytree(once(tmp_path_factory, "fleet-ports", build), tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def fleet(*words: str) -> int:
    return main(["fleet", "m.py", "--board", "host", *words])


PORTS = ",".join(f"exec:b{k}/link.elf" for k in range(3))


def test_boards_at_ports_train_on_their_own_samples(capsys: pytest.CaptureFixture[str]) -> None:
    """As twins with these samples do, which are a third of a data set each."""
    assert fleet("--port", PORTS, "--epochs", "2") == 0
    out = capsys.readouterr().out
    assert "m: 3 x host at a port\ndifferences of 57 numbers as f32\n" in out and "accuracy" not in out
    assert len(re.findall(r"^round \d +3 boards   loss", out, re.MULTILINE)) == 3
    assert fleet("--port", PORTS, "--rounds", "5", "--data", "data.npz", "--boards", "2") == 0
    out = capsys.readouterr().out
    assert "m: 2 twins on the host, 3 x host at a port; 60 samples from data.npz" in out
    found = re.findall(r"^round \d +5 boards   loss \S+   accuracy +([\d.]+)%", out, re.MULTILINE)
    assert len(found) == 2 and float(found[-1]) > 80
    assert fleet("--port", PORTS, "--fresh", "--rounds", "1") == 0  # boards that had round 5


@contextmanager
def at_socket(number: int, firmware: Path, first: int = 1 << 30) -> Iterator[str]:
    """Firmware that listens on a port of this host; `first` bytes from it, then the line is cut, once."""

    def serve() -> None:
        left = first
        while True:
            try:
                line, _ = server.accept()
            except OSError:
                return
            program = subprocess.Popen(
                [firmware.resolve()],
                cwd=firmware.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
            )
            assert program.stdin is not None and program.stdout is not None

            def forward(line: socket.socket = line, program: Any = program) -> None:
                with suppress(OSError):
                    while data := line.recv(4096):
                        program.stdin.write(data)

            threading.Thread(target=forward, daemon=True).start()
            while left > 0 and (data := program.stdout.read(256)):
                left -= len(data)
                line.sendall(data)
            program.kill()
            program.wait()
            line.shutdown(socket.SHUT_RDWR)
            line.close()
            left = 1 << 30

    server = socket.create_server(("127.0.0.1", number))
    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"socket://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def test_a_line_that_breaks_is_opened_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The board restarts; the round equals the round of a board whose line did not break."""
    assert fleet("--port", "exec:b0/link.elf", "--rounds", "2", "--out", "whole") == 0
    capsys.readouterr()
    for cut in (150, 300, 600):
        (Path("b0") / "flash.bin").unlink()
        with at_socket(0, Path("b0/link.elf"), cut) as port:
            assert fleet("--port", port, "--rounds", "2", "--out", f"cut{cut}", "--timeout", "5") == 0
        assert "failed" not in capsys.readouterr().out
        with np.load("whole/round-00002.npz") as one, np.load(f"cut{cut}/round-00002.npz") as other:
            assert all(np.array_equal(one[n], other[n]) for n in one)


def test_a_silent_board_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    nobody = f"socket://127.0.0.1:{free}"
    assert fleet("--port", f"exec:b0/link.elf,{nobody}", "--rounds", "2", "--steps", "2") == 0
    out = capsys.readouterr().out
    said = f"board 1: port {nobody}: cannot connect: Connection refused"
    assert f"    {said}; each round tries it again\n" in out
    assert out.count(f"{said}\n") == 2 and out.count(" 1 board, 1 failed ") == 2


def test_a_round_that_is_stopped_ends_at_once_and_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C while boards train: none is waited for."""
    begin, timer = time.monotonic(), threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    assert fleet("--port", PORTS, "--steps", "1000000000") == 130
    assert time.monotonic() - begin < 30
    assert "stopped in round 1; the same command repeats it" in capsys.readouterr().out
    assert fleet("--port", PORTS, "--rounds", "1", "--steps", "4") == 0
    assert "round 1    3 boards   loss" in capsys.readouterr().out


WRONG: dict[str, tuple[list[str], str]] = {
    "no board answers": (
        ["exec:sleep 9"],
        "no board answers: exec:sleep 9: the board is silent: no reply in 0.3 s",
    ),
    "a program that ends": (["exec:true 1"], "error: exec:true 1: the program ended"),
    "firmware that ends": (["exec:ends.elf"], "error: exec:ends.elf: the program ended"),
    "no such port": (["/dev/ttyNONE"], "port /dev/ttyNONE: cannot be opened: No such file or directory"),
    "a port twice": ([f"{PORTS},exec:b1/../b0/link.elf"], "are the same port: name each board once"),
    "a word twice": (["exec:a,exec:a"], "expected each port once"),
    "nothing": ([","], "expected each port once"),
    "another kind": (["stm33=exec:b0/link.elf"], "unknown board 'stm33'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_ports(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, message = WRONG[case]
    shutil.copy("/bin/true", "ends.elf")
    assert fleet("--timeout", "0.3", "--port", *words) in (1, 2)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1 and message in err


def test_another_program_is_rejected_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    write_model(activation="Tanh")
    assert fleet("--port", PORTS) == 1
    err = capsys.readouterr().err
    assert re.match(
        r"error: exec:b\d/link.elf: the board runs another program: 'm', whose parameters are", err
    )
    write_model(units=7)
    assert fleet("--port", PORTS) == 1
    assert re.match(r"error: exec:b\d/link.elf: the board runs another model: 'm' ", capsys.readouterr().err)


def test_a_board_or_folder_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    held: list[tuple[str, Callable[[], Any]]] = [("b1", lambda: fleet("--port", PORTS))]
    held.append(("out", lambda: fleet("--port", PORTS, "--out", "out")))
    for folder, command in held:
        Path(folder).mkdir(exist_ok=True)
        lock = FolderLock(Path(folder))
        assert command() == 1
        assert re.match(rf"error: .*{folder} is in use by process {os.getpid()} \(", capsys.readouterr().err)
        lock.release()
        assert command() == 0
        capsys.readouterr()
