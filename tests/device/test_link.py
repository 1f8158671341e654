"""The board's end of the link under fire, and the host's codec. A long run:

AUTODIFF_FUZZ_FRAMES=1000000 AUTODIFF_FUZZ_INPUTS=2000000 ./scons test args="-k accidents -s"
"""

import os
import re
import subprocess

import pytest
from c_build import LINK, RUNTIME, compile_c
from checkout import C
from hypothesis import given
from hypothesis import strategies as st

from autodiff_gen.device import differences, errors, frames, rounds
from autodiff_gen.device.frames import Decoder, Frame, stuff, unstuff

SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
FRAMES = int(os.environ.get("AUTODIFF_FUZZ_FRAMES", "200000"))
INPUTS = int(os.environ.get("AUTODIFF_FUZZ_INPUTS", "40000"))


@pytest.fixture(scope="module")
def fuzz_source(root):
    return C / "link_fuzz.c"


@pytest.mark.cc
def test_random_accidents(fuzz_source, tmp_path, seed):
    """Lost, doubled, cut, changed, late and replayed frames, noise, and requests that make no sense."""
    program = compile_c("gcc", [*LINK, fuzz_source], tmp_path / "fuzz", (*SANITIZE, "-DAG_STANDALONE"))
    words = [program, str(FRAMES), str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(
        r"(\d+) frames in \d+ runs, (\d+) steps of training: all as the host meant them\n", done.stdout
    )
    assert found and int(found[1]) >= FRAMES and int(found[2]) > FRAMES / 40, done.stdout
    print(done.stdout)


@pytest.mark.cc
@pytest.mark.slow
def test_accidents_that_libfuzzer_finds(fuzz_source, tmp_path, seed):
    flags = ("-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
    program = compile_c("clang", [*LINK, fuzz_source], tmp_path / "fuzz", flags)
    (tmp_path / "corpus").mkdir()
    words = [f"-runs={INPUTS}", "-max_len=2048", f"-seed={seed}", "-print_final_stats=1", "corpus"]
    done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    assert runs and int(runs[1]) >= INPUTS, done.stderr[-1000:]
    found = re.search(r"(\d+) frames, \d+ steps of training: all as the host meant them\n", done.stderr)
    assert found and int(found[1]) > 20 * INPUTS, done.stderr[-1000:]
    print(f"libFuzzer: {runs[1]} inputs, {found[0]}")


CODE = st.builds(
    Frame,
    st.integers(0, 255),
    st.integers(-128, 127),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFFFFFF),
    st.binary(max_size=frames.PAYLOAD),
)


@given(st.binary(max_size=252))
def test_stuffing_is_reversible_and_holds_no_zero(data):
    assert 0 not in stuff(data)
    assert len(stuff(data)) == len(data) + 1
    assert unstuff(stuff(data)) == data


@given(st.lists(CODE, max_size=6), st.binary(max_size=200), st.lists(st.integers(1, 50), max_size=8))
def test_frames_come_out_of_any_stream(sent, noise, cuts):
    """After noise and a zero every frame is found, in whatever pieces the bytes come."""
    data = noise + b"\0" + b"".join(f.encode() for f in sent)
    decoder, got = Decoder(), []
    for cut in cuts:
        got += decoder.feed(data[:cut])
        data = data[cut:]
    got += decoder.feed(data)
    assert got[len(got) - len(sent) :] == sent


@given(CODE, st.data())
def test_no_damaged_frame_passes(frame, data):
    """Any one to three changed bytes, and any cut."""
    encoded = bytearray(frame.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    if bytes(encoded) != frame.encode():
        assert Decoder().feed(bytes(encoded)) == []
    cut = data.draw(st.integers(0, len(frame.encode()) - 1))
    assert Decoder().feed(frame.encode()[:cut]) == []


@given(st.binary(max_size=2000))
def test_the_decoder_survives_anything(data):
    """And does not go on collecting what never ends."""
    decoder = Decoder()
    for _ in range(20):
        assert decoder.feed(data.replace(b"\0", b"\1")) == []
    assert len(decoder._held) <= 2 * frames.LONGEST + len(data)
    assert decoder.feed(b"\0" + Frame(1, 0, 2, 3, b"x").encode())[-1].payload == b"x"


def test_the_documented_frame(root):
    frame = Frame(frames.HELLO, 0, 0, 0x12345678, bytes((frames.VERSION, 0, 0, 0)))
    shown = frame.encode().hex(" ")
    assert shown == "02 01 01 01 06 78 56 34 12 03 01 01 05 1f f2 be 48 00"
    assert shown in (root / "docs" / "link.md").read_text()
    assert frames.decode(frame.encode()[:-1]) == frame


def numbers(header):
    """Name -> value of the enumerations in a header of the runtime."""
    text = re.sub(r"/\*.*?\*/", "", (RUNTIME / header).read_text(), flags=re.DOTALL)
    text = re.sub(r"#define (AG_LINK_PAYLOAD) (\d+)", r"\1 = \2", text)
    return {
        name: int(value, 0)
        for name, value in re.findall(r"AG_(?:LINK|ROUND|STORE|GRADIENTS)_(\w+) = (-?\w+)", text)
        if value.lstrip("-")[0].isdigit()
    }


def test_both_ends_have_the_same_numbers(root):
    link, store, rounds_ = numbers("ag_link.h"), numbers("ag_store.h"), numbers("ag_round.h")
    for number, name in frames.NAMES.items():
        assert link[name] == number
    for name in (
        "VERSION",
        "PAYLOAD",
        "REPLY",
        "NAK",
        "INPUT",
        "OUTPUT",
        "STATE",
        "COUNTERS",
        "RAW",
        "UNIT",
        "RUNS",
        "S8",
        "S16",
    ):
        assert link[name] == getattr(frames, name), name
    assert {kind: rounds_[kind.upper()] for kind in differences.ENCODINGS} == differences.ENCODINGS
    assert (rounds_["LOCAL_BUFFERS"], rounds_["MASKED"]) == (rounds.LOCAL_BUFFERS, rounds.MASKED)
    assert all(
        link.get(name, number) == number for name, number in rounds_.items() if name.startswith("ERR_")
    )
    named = [*link.items(), *store.items(), *rounds_.items(), *numbers("ag_gradients.h").items()]
    statuses = {number for name, number in named if name.startswith("ERR_")}
    assert {s for s in errors.STATUS if s <= -32} == statuses
    model = re.findall(r"AG_STATUS_\w+ = (-?\d+)", (RUNTIME / "ag_status.h").read_text())
    assert {s for s in errors.STATUS if s > -32} == {int(s) for s in model} - {1}
    document = (root / "docs" / "link.md").read_text()
    assert [s for s in statuses if f"| {s} |" not in document] == []
