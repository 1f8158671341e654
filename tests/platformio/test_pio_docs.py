"""docs/platformio.md, block by block: the files in it make a project, and its commands are run."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT
from pio_project import free_port, pio, succeed

from autodiff_gen.targets import board

pytestmark = [pytest.mark.pio, pytest.mark.qemu]
TEXT = (ROOT / "docs" / "platformio.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def blocks(language):
    return [text.replace("CHECKOUT", str(ROOT)) for name, text in BLOCKS if name == language]


def commands():
    return [line for text in blocks("sh") for line in text.splitlines()]


def test_the_project_trains_and_the_commands_work(tmp_path):
    folder, core = tmp_path / "empty folder", tmp_path / "core"
    (folder / "src").mkdir(parents=True)
    ini, port, _ = blocks("ini")
    (folder / "platformio.ini").write_text(ini)
    (folder / "net.py").write_text(blocks("python")[0])
    (folder / "src" / "main.c").write_text(blocks("c")[0])
    for command in ("pio run", "pio run -t run"):
        assert command in commands()
        said = succeed(folder, core, *command.split()[1:])
    losses = [float(x) for x in re.findall(r"^loss ([\d.]+)$", said, re.MULTILINE)]
    assert len(losses) == 3 and losses[2] < losses[0]

    assert "pio run -t upload" in commands() and "pio device monitor" in commands()
    (folder / "platformio.ini").write_text(
        ini + port.replace("5400", str(free_port())) + "custom_qemu_timeout = 5\n"
    )
    assert "QEMU runs" in succeed(folder, core, "run", "-t", "upload")

    (folder / "src" / "main.c").rename(folder / "main.c")
    (folder / "src" / "sketch.cpp").write_text(blocks("cpp")[0])
    (folder / "platformio.ini").write_text(ini + "framework = arduino\n")
    said = succeed(folder, core, "run", "-t", "run")
    assert float(re.findall(r"^(\d\.\d{6})$", said, re.MULTILINE)[-1]) < 0.001


def test_every_block_is_known():
    """A new block needs a test, or a reason here: installing, and what test_pio_library and test_pio_export run."""
    assert [name for name, _ in BLOCKS] == ["sh", "ini", "python", "c", "sh", "ini", "sh", "cpp", "ini", "sh"]
    install = commands()[:2]
    assert install[0].startswith("pip install platformio==") and install[1].startswith("sudo apt-get install")
    pins = (ROOT / "requirements" / "test.txt").read_text() + (
        ROOT / "requirements" / "runtime.txt"
    ).read_text()
    assert all(f"{pin} " in pins for pin in re.findall(r"\S+==\S+", install[0]))
    assert blocks("ini")[2].splitlines() == [
        f"lib_deps = symlink://{ROOT}", f"lib_deps = file://{ROOT}", "lib_deps = file://library.tar.gz",
    ]  # fmt: skip
    assert commands()[-1] == "./scons board=stm32 model=xor pio"


def test_the_options_and_boards_are_the_ones_there_are(tmp_path):
    listed = set(re.findall(r"^\| `(custom_\w+)`", TEXT, re.MULTILINE))
    source = (ROOT / "platformio" / "train_library.py").read_text()
    known = re.search(r"^OPTIONS = \((.*)\)$", source, re.MULTILINE).group(1)
    ours = {f"custom_autodiff_{name}" for name in re.findall(r'"(\w+)"', known)}
    assert listed == ours | {"custom_qemu_timeout", "custom_test_timeout"}
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| `(\w+)` \|", TEXT, re.MULTILINE)
    for board_id, platform, profile in rows:
        own = board.load(profile).platformio
        assert board_id in own["boards"] and own["platform"] == platform
    assert len(rows) == 7
    assert pio(tmp_path, tmp_path, "run").returncode != 0  # no project
