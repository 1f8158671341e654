"""One host at a time: a serial port, and a folder in which firmware runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest
from checkout import ROOT

from autodiff_gen.cli.main import main
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.lock import FolderLock
from autodiff_gen.device.transport import open_port

HOLDS = """
import sys, time
from autodiff_gen.device.transport import open_port
port = open_port(sys.argv[1])
print("open", flush=True)
time.sleep(600)
"""


def test_a_serial_port_that_another_process_has(tmp_path):
    """A pseudo-terminal in place of a port; the message names the other process, and this one otherwise has it."""
    master, slave = os.openpty()
    port = os.ttyname(slave)
    os.close(slave)
    (tmp_path / "holds.py").write_text(HOLDS)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, str(tmp_path / "holds.py"), port]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "open\n"
            with pytest.raises(LinkError) as caught:
                open_port(port)
        finally:
            other.kill()
    said = rf"port {port}: process {other.pid} \(.*holds\.py .*\) has it open: end it first"
    assert re.fullmatch(said, str(caught.value)), caught.value
    open_port(port).close()
    os.close(master)


def test_a_folder_is_locked_until_it_is_released(tmp_path):
    first = FolderLock(tmp_path)
    with pytest.raises(
        LinkError, match=rf" is in use by process {os.getpid()} \(.*\): wait until it ends, or stop it$"
    ):
        FolderLock(tmp_path)
    first.release()
    FolderLock(tmp_path).release()


@pytest.mark.cc
def test_a_second_command_names_the_first(words, tmp_path, capsys):
    """Both would write the same flash.bin and inputs.bin."""
    command = words("train", "--fresh", "--epochs", 100000, "--tests", 0)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "autodiff_gen", *command],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as first:
        try:
            limit = time.monotonic() + 60
            while not (tmp_path / ".board.lock").exists() or not (tmp_path / ".board.lock").read_text():
                assert time.monotonic() < limit and first.poll() is None
                time.sleep(0.02)
            for second in (words("train"), words("pull", "--out", tmp_path / "w.npz")):
                assert main(second) == 1
                said = rf"error: {tmp_path} is in use by process {first.pid} \(autodiff-gen train .*\): wait until "
                said += "it ends, or stop it\\n"
                assert re.fullmatch(said, capsys.readouterr().err)
        finally:
            first.kill()
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0  # the lock went with the process
