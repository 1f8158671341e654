"""Checkpoints in flash: power cuts after every operation, flipped bits, wear, rejections; and the STM32F4's driver."""

import re
import subprocess

import pytest
from c_build import RUNTIME, compile_c
from checkout import ROOT, C

pytestmark = pytest.mark.cc
SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
STORE = [RUNTIME / f"ag_{name}.c" for name in ("store", "store_records", "store_notes", "flash_ram")]


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


@pytest.fixture(scope="module")
def fuzz_sources(root):
    host = root / "boards" / "support" / "host"
    own = [RUNTIME / f"ag_{name}.c" for name in ("samples", "console", "format")]
    return [*STORE, *own, host / "system.c", C / "image_fuzz.c"], (f"-I{host}",)


def test_images_and_sets_of_others(fuzz_sources, tmp_path, seed):
    """Checksums that fit, around anything: nothing outside the image is read, and the time is linear."""
    sources, include = fuzz_sources
    program = compile_c("gcc", sources, tmp_path / "fuzz", (*SANITIZE, *include, "-DAG_STANDALONE"))
    found = re.fullmatch(r"(\d+) images loaded, (\d+) sets opened\n", run(program, 20000, seed))
    assert found and int(found[1]) > 100 and int(found[2]) > 50


@pytest.mark.slow
def test_images_that_libfuzzer_finds(fuzz_sources, tmp_path, seed):
    sources, include = fuzz_sources
    flags = ("-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all", *include)
    program = compile_c("clang", sources, tmp_path / "fuzz", flags)
    words = ["-runs=20000", "-max_len=512", f"-seed={seed}", "corpus"]
    (tmp_path / "corpus").mkdir()
    done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_stm32f4s_random_numbers(tmp_path):
    """Against a model of its registers: QEMU has no generator there."""
    sources = [ROOT / "boards" / "support" / "stm32f4" / "random.c", C / "stm32f4_random.c"]
    flags = (*SANITIZE, '-DAG_REGISTER_MODEL="stm32f4_registers.h"', f"-I{C}")
    assert (
        run(compile_c("gcc", sources, tmp_path / "random", flags))
        == "drawn and rejected as the manual says\n"
    )


def test_the_stm32f4s_flash(tmp_path):
    """Against a model of its registers: QEMU has no flash controller there."""
    root = ROOT
    sources = [root / "boards" / "support" / "stm32f4" / "flash.c", C / "stm32f4_flash.c"]
    flags = (*SANITIZE, '-DAG_REGISTER_MODEL="stm32f4_registers.h"', f"-I{root / 'tests' / 'c'}")
    program = compile_c("gcc", [*STORE, *sources], tmp_path / "flash", flags)
    assert run(program) == "programmed, erased, rejected as the manual says\n"
