"""Workloads trained on emulated boards: losses against PyTorch, and the same bits on every core and compiler."""

import shutil
import struct
import zlib

import numpy as np
import pytest
from firmware_build import boards, generate, link, once, run

from autodiff_gen.host.trainer import host_trainer

STEPS = 200
PREDICTIONS = 4  # batches, as in c/trajectory.c
# W2's batches of 32 do not leave room on the STM32F405; its 128 KB hold all of the others.
PLACES = [
    ("w1", "stm32"),
    ("w1", "mps2_an386"),
    ("w2", "mps2_an386"),
    ("w3b1", "mps2_an386"),
    ("w4", "stm32"),
    ("w5", "stm32"),
]
HOSTS = [(cc, opt) for cc in ("gcc", "clang") for opt in ("-O0", "-O3")]
pytestmark = [pytest.mark.cc, pytest.mark.qemu, pytest.mark.torch]


def module(name):
    from torch_workloads import workload

    return workload(name)


def sources(factory, name):
    """The folder with a workload's C, its batches.bin, and the sizes that the main programs need."""

    def make(folder):
        w = module(name)
        generate(w.model, folder)
        period = max(len(w.X) // w.model.batch, 1)
        batches = [w.batch(step) for step in range(period)]
        assert all(np.array_equal(a, b) for a, b in zip(batches[0], w.batch(period), strict=True))
        (folder / "batches.bin").write_bytes(b"".join(x.tobytes() + y.tobytes() for x, y in batches))
        x, y = batches[0]
        scores = host_trainer(w.model).predict(x)
        target = {"u1": "uint8_t", "f4": "float"}[y.dtype.str[1:]]
        sizes = {"STEPS": STEPS, "RECORDS": period, "X_FLOATS": x.size, "TARGETS": y.size}
        sizes |= {"SCORES": scores.size, "CLASSES": scores.shape[-1]}
        text = "".join(f"#define {key} {value}u\n" for key, value in sizes.items())
        (folder / "workload.h").write_text(f"{text}typedef {target} target;\n")

    return once(factory, name, make)


def trained(factory, name, place, main="trajectory", cc=None, flags=()):
    """What `main` printed for a workload on a board or, with `cc` and `flags`, on the host: name -> values."""

    def make(folder):
        shutil.copytree(sources(factory, name), folder, dirs_exist_ok=True)
        elf = link(place, folder, main, cc=cc, flags=flags)
        (folder / "said").write_text(run(place, elf, folder))

    folder = once(factory, "-".join((name, place, main, *(w.strip("-") for w in (cc or "", *flags)))), make)
    said = {}
    for line in (folder / "said").read_text().splitlines():
        key, *values = line.split()
        said.setdefault(key, []).append(values if len(values) > 1 else values[0])
    return said


def floats(words):
    return np.array([struct.unpack(">f", bytes.fromhex(w))[0] for w in words], dtype=np.float32)


def crc(data):
    return f"{zlib.crc32(data):08x}"


def state_crc(trainer, folder):
    """CRC-32 of the host trainer's checkpoint, as the board counts it."""
    trainer.save(folder / "checkpoint")
    return crc((folder / "checkpoint").read_bytes())


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_losses_in_qemu_equal_pytorchs(name, place, tmp_path_factory, record_property):
    from torch_workloads import Torch

    w = module(name)
    theirs = Torch(name, {s.name: s.init.array() for s in w.model.states})
    expected = np.array([theirs.train_step(*w.batch(step)) for step in range(STEPS)])
    ours = floats(trained(tmp_path_factory, name, place)["loss"]).astype("float64")
    assert len(ours) == STEPS
    off = np.abs(ours - expected) / (1e-5 * np.abs(expected) + 1e-6)
    measurement = f"worst of {STEPS} losses at {off.max():.3f} of the bound, step {off.argmax() + 1}"
    print(f"{name} on {place}: {measurement}")
    record_property(f"{name} {place}", measurement)
    assert off.max() <= 1, measurement


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_board_and_host_have_the_same_bits(name, place, tmp_path_factory, tmp_path):
    """Losses and state of 200 steps, and the scores of `predict`, which leaves the state as it is."""
    w, said = module(name), trained(tmp_path_factory, name, place)
    host = host_trainer(w.model)
    losses = np.array([host.train_step(*w.batch(step)) for step in range(STEPS)], dtype=np.float32)
    assert losses.tobytes() == floats(said["loss"]).tobytes()
    assert said["losses"] == [crc(losses.tobytes())]
    assert said["state"] == [state_crc(host, tmp_path)] == said["afterwards"]
    scores = np.concatenate([host.predict(w.batch(step)[0]).reshape(-1) for step in range(PREDICTIONS)])
    assert len(set(scores.tolist())) > 1
    assert scores.tobytes() == floats(said["score"]).tobytes()
    assert int(said["bytes"][0], 16) == host.nbytes


def checksums(said):
    return {key: said[key][0] for key in ("losses", "state", "afterwards")} | {
        "scores": crc(floats(said["score"]).tobytes())
    }


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory):
    """A function that gives the checksums of W1 at a place."""

    def at(place):
        if place in boards():
            return checksums(trained(tmp_path_factory, "w1", place))
        cc, opt = place.split()
        return checksums(trained(tmp_path_factory, "w1", "host", cc=cc, flags=(opt,)))

    return at


@pytest.mark.parametrize("place", [*boards(), *(" ".join(h) for h in HOSTS[1:])])
def test_checksums_of_w1_are_the_same_on_every_core_and_compiler(place, everywhere, record_property):
    first, here = everywhere("gcc -O0"), everywhere(place)
    print(f"{place}: {here}")
    record_property(place, str(here))
    assert here == first


@pytest.mark.parametrize(("name", "place"), [("w1", "stm32"), ("w1", "mps2_an385"), ("w4", "mps2_an386")])
def test_bad_calls_on_the_board_are_rejected_and_change_nothing(name, place, tmp_path_factory):
    w, said = module(name), trained(tmp_path_factory, name, place, main="invalid_arguments")
    host = host_trainer(w.model)
    losses = [host.train_step(*w.batch(0)) for _ in range(2)]
    assert floats(said["loss"]).tolist() == losses
    before, after = said["state"]
    assert before != after
    expected = {"null": (-1, 12), "label": (-3, 4)}
    if w.model.batch > 1:
        expected["rows"] = (-2, 10)
    for kind, (status, calls) in expected.items():
        assert said[kind] == [[str(status), before]] * calls, kind
    assert ("rows" in said) == ("rows" in expected)
