"""Checkpoints in flash: power cuts after every operation, flipped bits, wear, rejections; and the STM32F4's driver."""

import re
import subprocess

import pytest
from c_build import RUNTIME, compile_c
from checkout import ROOT, C

pytestmark = pytest.mark.cc
SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STORE = [RUNTIME / "ag_store.c", RUNTIME / "ag_flash_ram.c"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    source = C / "store_sweep.c"
    return compile_c("gcc", [*STORE, source], tmp_path_factory.mktemp("store") / "sweep", SANITIZE)


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    return done.stdout


@pytest.mark.parametrize("torn", [0, 1, 7_000_000], ids=["whole", "torn", "torn otherwise"])
def test_power_cut_after_every_operation_of_200_saves(sweep, torn, record_property):
    said = run(sweep, "cuts", 200, torn)
    record_property("cuts", said)
    found = re.fullmatch(
        r"200 saves, (\d+) operations, (\d+) cuts: \d+ load the new one, \d+ the one before, 0 corrupt, 0 lost\n",
        said,
    )
    assert found and found[1] == found[2] and int(found[1]) > 200 * 30


def test_every_bit_of_the_header_and_10000_of_the_body(sweep):
    assert run(sweep, "flips", 10000) == "256 bits of the header, 10000 of the body: all detected\n"


def test_slots_wear_alike(sweep):
    assert run(sweep, "wear", 600) == "600 saves: each slot erased 100 to 100 times\n"


def test_rejections(sweep):
    assert run(sweep, "rejections") == "rejections as expected\n"


def test_the_stm32f4s_flash(tmp_path):
    """Against a model of its registers: QEMU has no flash controller there."""
    root = ROOT
    sources = [root / "boards" / "support" / "stm32f4" / "flash.c", C / "stm32f4_flash.c"]
    flags = (*SANITIZE, '-DAG_REGISTER_MODEL="stm32f4_registers.h"', f"-I{root / 'tests' / 'c'}")
    program = compile_c("gcc", [*STORE, *sources], tmp_path / "flash", flags)
    assert run(program) == "programmed, erased, rejected as the manual says\n"
