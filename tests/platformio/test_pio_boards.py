"""Real boards, as far as they can be checked here: the environments as configuration, the profiles against what
PlatformIO publishes, and the Arduino port as C++ on the host. None of them has run."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from checkout import ROOT
from pio_project import QEMU, examples, succeed

from autodiff_gen.errors import BoardError
from autodiff_gen.targets import board, platformio

PUBLISHED = tomllib.loads(Path(__file__).with_name("published_boards.toml").read_text())
HARDWARE = (
    "adafruit_feather_f405", "nucleo_f446re", "disco_f746ng", "nucleo_h743zi", "teensy41", "pico", "nano33ble",
)  # fmt: skip
SERVED = [(i, name) for name in board.names() for i in board.load(name).platformio.get("boards", ())]


def manifest(board_id):
    """A board's file as PlatformIO has it, as far as the library reads it."""
    row = PUBLISHED[board_id]
    return {
        "build": {"cpu": row["cpu"]},
        "upload": {"maximum_ram_size": row["ram"], "maximum_size": row["flash"]},
    }


@pytest.mark.pio
@pytest.mark.parametrize("name", examples())
def test_environments_as_configuration(name, tmp_path):
    said = succeed(ROOT / "examples" / name, tmp_path, "project", "config", "--json-output")
    sections = {section: dict(options) for section, options in json.loads(said)}
    assert {s.removeprefix("env:") for s in sections if s.startswith("env:")} == {*QEMU, *HARDWARE}
    for env in HARDWARE:
        options = sections[f"env:{env}"]
        row = PUBLISHED[options["board"]]
        assert options["board"] == env and options["platform"] == row["platform"]
        assert options["framework"] == ["arduino"] and "arduino" in row["frameworks"]
        assert options["custom_autodiff_model"] == "model.py"
    for env in QEMU:
        assert sections[f"env:{env}"]["board"] in platformio.emulated()
        assert "framework" not in sections[f"env:{env}"]


@pytest.mark.parametrize(("board_id", "name"), SERVED)
def test_profiles_have_what_platformio_publishes(board_id, name):
    assert platformio.profile_of(board_id) == name
    profile, row = board.load(name), PUBLISHED[board_id]
    platformio.check_profile(profile, board_id, manifest(board_id), None)
    assert profile.region("ram").bytes == row["ram"]
    assert profile.region("flash").bytes == row["flash"]
    assert profile.target.core == row["cpu"]
    assert profile.platformio["platform"] == row["platform"]


def test_every_named_board_has_a_profile():
    assert {*HARDWARE} <= {i for i, _ in SERVED} == set(PUBLISHED)
    for name in board.names():
        own = board.load(name).platformio
        assert not own or own["board"] in own["boards"]


@pytest.mark.parametrize(
    ("profile", "board_id", "ram", "says"),
    [
        ("disco_f746ng", "nucleo_f446re", None, "has 327680 bytes of ram, but PlatformIO's board nucleo_f446re has 13"),
        ("stm32", "nucleo_f446re", None, "has 1048576 bytes of flash, but PlatformIO's board nucleo_f446re has 524288"),
        ("nano33ble", "disco_f746ng", None, "is for cortex-m4, but PlatformIO's board disco_f746ng is a cortex-m7"),
        ("stm32", "adafruit_feather_f405", 200000, "custom_autodiff_ram = 200000, but"),
    ],
)  # fmt: skip
def test_a_profile_that_contradicts_the_board(profile, board_id, ram, says):
    with pytest.raises(BoardError) as caught:
        platformio.check_profile(board.load(profile), board_id, manifest(board_id), ram)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_unknown_board_id():
    with pytest.raises(BoardError) as caught:
        platformio.profile_of("nucleo_f446rr")
    said = str(caught.value)
    assert said.startswith("no board profile serves the board 'nucleo_f446rr': set custom_autodiff_board")
    assert "did you mean 'nucleo_f446re'?" in said


ARDUINO_H = """\
#include <stdint.h>
#include <stdio.h>
struct FakeSerial {
    void begin(unsigned long) {}
    void flush() { fflush(stdout); }
    explicit operator bool() const { return true; }
    size_t write(uint8_t c) { return fwrite(&c, 1, 1, stdout); }
};
extern FakeSerial Serial;
void setup();
void loop();
inline unsigned long millis() { return 0; }
void delay(unsigned long);
"""
CORE = """\
#include "Arduino.h"
#include <stdlib.h>
FakeSerial Serial;
void delay(unsigned long) { exit(0); }
int main() { setup(); for (;;) loop(); }
"""


@pytest.mark.cc
def test_the_arduino_port_runs_an_examples_main(tmp_path):
    """With a core that prints on stdout: xor's main.c, started by the port's sketch."""
    from autodiff_gen.model.build import build

    build(str(ROOT / "examples/xor/model.py"), board.load("host"), tmp_path)
    (tmp_path / "Arduino.h").write_text(ARDUINO_H)
    (tmp_path / "core.cpp").write_text(CORE)
    c = [
        *(ROOT / "runtime").glob("*.c"),
        *(ROOT / "kernels/ref").glob("*.c"),
        ROOT / "boards/support" / platformio.PORT_DEFAULTS,
        tmp_path / "xor.c",
        tmp_path / "xor_params.c",
    ]
    includes = [f"-I{d}" for d in (tmp_path, ROOT / "runtime", ROOT / "kernels", ROOT / "kernels/ref")]
    call(["gcc", "-std=c99", "-ffp-contract=off", "-c", *includes, *map(str, c)], tmp_path)
    call(["gcc", "-std=c99", "-Dmain=ag_main", "-c", *includes, str(ROOT / "examples/xor/main.c")], tmp_path)
    main = tmp_path / "main.o"
    call(["ar", "rcs", "library.a", *(str(o) for o in tmp_path.glob("*.o") if o != main)], tmp_path)
    strict = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    port = sorted(map(str, (ROOT / "boards/support/arduino").glob("*.cpp")))
    call(
        ["g++", *strict, *includes, *port, "core.cpp", str(main), "library.a", "-lm", "-o", "sketch"],
        tmp_path,
    )
    said = call([str(tmp_path / "sketch")], tmp_path)
    assert "4 of 4 right" in said and said.endswith("exit 0\n")


def call(words, folder):
    done = subprocess.run(
        words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
