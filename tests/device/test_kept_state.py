"""State that a board keeps: checkpoints of other firmware, worn flash, and a state that is to be restored."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.device import hil

pytestmark = pytest.mark.cc


def words_of(path):
    return np.frombuffer(path.read_bytes(), "<u4").copy()


def sealed(words, first, count):
    """Headers of the flash end in their checksum."""
    words[first + count] = zlib.crc32(words[first : first + count].tobytes())
    return words


def as_later(words):
    words[5] = 3
    return sealed(words, 4, 7)


def as_earlier(words):
    words[5] = 1
    return sealed(words, 4, 7)


def as_anothers(words):
    words[6] ^= 1
    return sealed(words, 4, 7)


@pytest.mark.parametrize(
    "change, said",
    [
        (
            as_later,
            "the checkpoints have a later format: build and upload newer firmware, or erase the flash (status -66)",
        ),
        (as_anothers, "the checkpoints belong to another model (status -65)"),
        (as_earlier, "the checkpoints have an earlier format, which this version does not read (status -75)"),
    ],
)
def test_checkpoints_that_are_not_this_firmwares(words, tmp_path, capsys, change, said):
    """The host says so in one line; the board begins with its first weights, and nothing is lost."""
    assert main(words("train", "--tests", 0)) == 0
    flash = tmp_path / "flash.bin"
    flash.write_bytes(change(words_of(flash)).tobytes())
    kept = words_of(flash)
    capsys.readouterr()
    assert main(words("train", "--tests", 0)) == 0
    out, err = capsys.readouterr()
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: the board loaded no checkpoint and started with its initial weights: {said}"]
    assert "33 steps" in out and "checkpoint " in out
    if change is as_later:
        half = len(kept) // 2
        assert np.array_equal(words_of(flash)[:half], kept[:half])
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    assert "note" not in capsys.readouterr().err and int(np.load(tmp_path / "w.npz")["_steps"]) == 33


@pytest.mark.parametrize(
    "change",
    [lambda kept: kept + kept, lambda kept: kept[:-4], lambda kept: b"\xff" * 299 + b"\0"],
    ids=["larger", "smaller", "blank but for the last byte"],
)
def test_a_file_of_another_size_stays_as_it_is(words, tmp_path, capsys, change):
    """It holds the checkpoints of the firmware before a change of the model."""
    assert main(words("train", "--tests", 0)) == 0
    flash = tmp_path / "flash.bin"
    flash.write_bytes(kept := change(flash.read_bytes()))
    capsys.readouterr()
    for command in (
        words("train", "--tests", 0),
        words("pull", "--out", tmp_path / "w.npz"),
    ):
        assert main(command) == 1
        assert capsys.readouterr().err.splitlines() == [
            f"error: {flash}: the file has another size than the flash of this firmware: train --fresh replaces it; or "
            "move it to another folder (status -73)"
        ]
    assert flash.read_bytes() == kept
    assert main(words("train", "--tests", 0, "--fresh")) == 0
    assert "checkpoint 1" in capsys.readouterr().out and flash.read_bytes() != kept


def test_a_file_that_was_not_complete_is_made_again(words, tmp_path):
    flash = tmp_path / "flash.bin"
    flash.write_bytes(b"\xff" * 100)
    assert main(words("train", "--tests", 0)) == 0
    assert b"AGSR" in flash.read_bytes()


def test_worn_flash_is_one_line_and_the_weights_stay(words, made, tmp_path, capsys):
    assert main(words("train", "--tests", 0)) == 0
    kept = (tmp_path / "flash.bin").read_bytes()
    (tmp_path / "board").write_text(  # a file that cannot be written instead of flash that is worn
        f"#!/bin/sh\ncd '{tmp_path}' && trap '' XFSZ && ulimit -f 0 && exec '{made / 'link.elf'}'\n"
    )
    capsys.readouterr()
    assert main(words("train", "--tests", 0, "--epochs", 2)) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[-1] == (
        "error: training reached step 66, but the checkpoint was not written: the flash is worn: "
        "what was programmed does not read back (status -68)"
    )
    assert (tmp_path / "flash.bin").read_bytes() == kept


def test_a_state_that_hil_cannot_restore_is_in_a_file(words, tmp_path, capsys, monkeypatch):
    def unplugged(bench):
        bench.port = "/dev/no-such-port"
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hil, "CHECKS", (hil.trains_like_the_host, unplugged))
    assert main(words("hil", "--steps", 5)) == 1
    said = r"error: .*not restored \(.*\); it is in (\w+\.npz): send it with autodiff-gen push\n"
    file = re.fullmatch(said, capsys.readouterr().err)[1]
    assert main(words("push", file)) == 0
    assert main(words("pull", "--out", "after.npz")) == 0
    one, two = np.load(file), np.load("after.npz")
    assert one.files == two.files and int(two["_steps"]) == 0
    assert all(np.array_equal(one[n], two[n]) for n in one.files)
