"""The board's runtime on the host: checksums, printed numbers, sample streams."""

import ctypes
import math
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from c_build import HOST, RUNTIME, compile_c, shared_library
from checkout import ROOT, C

from autodiff_gen.datasets import samples
from autodiff_gen.errors import DataError

pytestmark = pytest.mark.cc
SOURCES = [
    C / "runtime.c",
    ROOT / "boards" / "support" / "host" / "system.c",
    *sorted(RUNTIME.glob("*.c")),
]


@pytest.fixture(scope="module", params=HOST)
def library(request, tmp_path_factory):
    return shared_library(request.param, SOURCES, tmp_path_factory.mktemp(request.param) / "runtime.so")


def crc(library, start, data):
    library.crc.restype = ctypes.c_uint32
    return library.crc(ctypes.c_uint32(start), data, len(data))


@pytest.mark.parametrize("data", [b"", b"\0", b"123456789", bytes(range(256)) * 7, b"\xff" * 1001])
def test_crc_is_zlibs(library, data):
    assert crc(library, 0, data) == zlib.crc32(data)
    for cut in (0, 1, len(data) // 2, len(data)):
        assert crc(library, crc(library, 0, data[:cut]), data[cut:]) == zlib.crc32(data)


FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    0.125,
    9.5,
    99.5,
    0.05,
    0.995,
    9.9999999,
    1e9,
    123456.789,
    1e-5,
]
SPECIAL = [1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000]


@pytest.mark.parametrize("letter", ["f", "e"])
def test_floats_print_exactly(library, letter, seed):
    """Every digit as printf's, from the float's exact value; halves to even."""
    random = np.random.default_rng(seed).integers(0, 2**32, 4000, dtype=np.uint32)
    near_one = np.random.default_rng(seed).uniform(-20, 20, 2000).astype(np.float32).view(np.uint32)
    sixteenths = (np.arange(-400, 400, dtype=np.float32) / 16).view(np.uint32)  # many ties
    bits = np.concatenate(
        [np.float32(FLOATS).view(np.uint32), np.uint32(SPECIAL), random, near_one, sixteenths]
    )
    out = ctypes.create_string_buffer(64)
    function = getattr(library, f"format_{letter}32")
    for b, x in zip(bits.tolist(), bits.view(np.float32).tolist(), strict=True):
        for decimals in (0, 1, 2, 6, 9):
            wanted = "nan" if math.isnan(x) else f"{x:.{decimals}{letter}}"
            length = function(out, ctypes.c_uint32(b), decimals)
            assert (out.value.decode(), length) == (wanted, len(wanted)), (x, decimals)


def test_nine_digits_identify_a_float(library, seed):
    bits = np.random.default_rng(seed).integers(0, 0x7F800000, 3000, dtype=np.uint32)
    out = ctypes.create_string_buffer(64)
    for b in bits.tolist():
        library.format_e32(out, ctypes.c_uint32(b), 8)
        assert np.float32(float(out.value)).view(np.uint32) == b


def test_print(tmp_path):
    program = tmp_path / "print.c"
    program.write_text("void print_all(void);\nint main(void) { print_all(); return 0; }\n")
    compile_c("gcc", [program, *SOURCES], tmp_path / "print")
    said = subprocess.run([tmp_path / "print"], capture_output=True, text=True, check=True).stdout
    first, second = said.split("\n")
    assert first.split("|") == [
        *("text", "ab  ", "  ab", "  4294967295", "-2147483648", "  -7", "1,234,567,890", "  999", "0000beef"),
        *("   -0.50", "  1.23e+04"),
    ]  # fmt: skip
    assert second == "x" * 300


def made(train=3, epochs=2):
    images = np.arange(5 * 6, dtype=np.uint8).reshape(5, 2, 3)
    return samples.from_arrays(images, np.arange(5, dtype=np.uint8), train=train, epochs=epochs)


def stream(library, room=1000):
    header, records = (ctypes.c_uint32 * 7)(), ctypes.create_string_buffer(room)
    return library.read_samples(header, records, room), list(header), records.raw


def test_samples_stream(library, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    s = made()
    samples.write(Path("samples.bin"), s.to_bytes())
    status, header, records = stream(library)
    assert status == 0
    assert header == [7, 6, 1, 3, 2, 2, zlib.crc32(s.records.tobytes())]
    assert records[:35] == s.records.tobytes()
    back = samples.read(Path("samples.bin"))
    assert np.array_equal(back.records, s.records) and (back.train, back.test, back.epochs) == (3, 2, 2)
    assert back.train_crc == zlib.crc32(records[:21])


def forged(**words):
    """A change of the header's words, with its checksum."""
    places = {"record": 12, "inputs": 16, "label": 20, "train": 24, "test": 28, "epochs": 32}

    def change(data):
        head = bytearray(data[:44])
        for name, value in words.items():
            head[places[name] : places[name] + 4] = value.to_bytes(4, "little")
        return bytes(head) + zlib.crc32(head).to_bytes(4, "little") + data[48:]

    return change


MOST = 2**32 - 1
DAMAGED = [
    ("no file", None, -1),
    ("empty", lambda d: b"", -2),
    ("half a header", lambda d: d[:30], -2),
    ("other magic", lambda d: b"XXXX" + d[4:], -3),
    ("other version", lambda d: d[:4] + b"\2\0\0\0" + d[8:], -3),
    ("a bit of the header", lambda d: d[:24] + bytes([d[24] ^ 1]) + d[25:], -3),
    ("records missing", lambda d: d[:-1], -2),
    ("epochs without end", forged(epochs=MOST), -6),
    ("more epochs than are counted", forged(epochs=65536), -6),
    ("more steps than are counted", forged(train=80000, epochs=60000), -6),
    ("records of no bytes", forged(record=0, inputs=0, label=0, train=MOST, test=0), -3),
    ("more bytes of an input than of a record", forged(inputs=MOST, label=8), -3),
    ("a label of other bytes", forged(label=7), -3),
    ("more records than are counted", forged(train=MOST, test=MOST, epochs=1), -3),
    ("more bytes than are counted", forged(train=2**30, epochs=1), -3),
    ("more records than there are", forged(train=100, epochs=1), -2),
]


@pytest.mark.parametrize("damage, status", [row[1:] for row in DAMAGED], ids=[row[0] for row in DAMAGED])
def test_damaged_samples(library, tmp_path, monkeypatch, damage, status):
    monkeypatch.chdir(tmp_path)
    if damage:
        Path("samples.bin").write_bytes(damage(made().to_bytes()))
    assert stream(library)[0] == status
    with pytest.raises(DataError, match=r"^samples\.bin: ") as raised:
        samples.read(Path("samples.bin"))
    assert len(str(raised.value)) <= 400


def test_samples_from_flash(tmp_path):
    """Where there is no file, a set that is linked in is read."""
    (tmp_path / "set.c").write_text(samples.to_c(made()))
    lib = shared_library("gcc", [*SOURCES, tmp_path / "set.c"], tmp_path / "flash.so")
    code = (
        "import ctypes, sys\n"
        "h = (ctypes.c_uint32 * 7)(); r = ctypes.create_string_buffer(99)\n"
        f"print(ctypes.CDLL({lib._name!r}).read_samples(h, r, 99), list(h)[:6], zlib.crc32(r.raw[:35]) == h[6])\n"
    )
    run = [sys.executable, "-c", "import zlib\n" + code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "0 [7, 6, 1, 3, 2, 2] True\n"


@pytest.mark.parametrize("header", sorted(p.name for p in RUNTIME.glob("*.h")))
def test_headers_compile_alone_in_cpp(header, tmp_path):
    (tmp_path / "user.cpp").write_text(f'#include "{header}"\n')
    compile_c("g++", [tmp_path / "user.cpp"], tmp_path / "user.o", ("-c",), "-std=c++11")
