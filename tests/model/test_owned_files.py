"""Writers replace and delete only what they wrote: forged records, links, and files of others. Tables; add a row."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.errors import ToolError
from autodiff_gen.model.project.export import write_project
from autodiff_gen.owned_files import RECORD, recorded, write_file, write_files

FIRST = {"src/main.c": "int main;", "lib/a/a.c": "1", "lib/old.c": "1"}
LATER = {"src/main.c": "int main;", "lib/a/a.c": "2"}
DIGEST = "6b86b273ff34fce1"  # of "1"


def everything(folder: Path) -> dict[str, bytes | str]:
    """A folder on disk: files by content, links by target."""
    return {
        str(p.relative_to(folder)): os.readlink(p) if p.is_symlink() else p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_symlink() or p.is_file()
    }


def _forged(name: str) -> Callable[[Path], None]:
    """A record that lists a file outside the folder, whose digest holds."""

    def forge(out: Path) -> None:
        files = json.loads((out / "export.json").read_text())["files"]
        (out / "export.json").write_text(json.dumps({"files": {**files, name: DIGEST}}))

    return forge


def _linked_folder(out: Path) -> None:
    (out / "lib/old.c").unlink()
    (out / "lib/a").rename(out.parent / "a")
    (out / "lib/a").symlink_to(out.parent / "a")


def _linked_file(out: Path) -> None:
    (out / "lib/a/a.c").unlink()
    (out / "lib/a/a.c").symlink_to(out.parent / "mine.c")


# an action after the first export, and the message of the next
EXPORTS = {
    "outside": (_forged("../mine.c"), "export.json: '../mine.c' is no file below its folder"),
    "outside by steps": (_forged("src/../../mine.c"), "is no file below its folder"),
    "not normalised": (_forged("./src//x"), "is no file below its folder"),
    "absolute": (_forged("/etc/hostname"), "is no file below its folder"),
    "the folder itself": (_forged("."), "is no file below its folder"),
    "backslashes": (_forged("..\\mine.c"), "is no file below its folder"),
    "control characters": (_forged("a\0b"), "is no file below its folder"),
    "a linked folder": (_linked_folder, "lib/a is a link to a folder outside"),
    "a linked file": (_linked_file, "lib/a/a.c: not written by autodiff-gen"),
    "a changed old file": (lambda out: (out / "lib/old.c").write_text("mine"), "lib/old.c: not written"),
    "a record without digests": (
        lambda out: (out / "export.json").write_text('{"files": {"lib/a/a.c": 1}}'),
        "has no digest",
    ),
    "a record that is a list": (
        lambda out: (out / "export.json").write_text("[]"),
        "export.json: has no files",
    ),
    "deep JSON": (lambda out: (out / "export.json").write_text("[" * 100_000), "nests too deeply"),
    "a truncated record": (lambda out: (out / "export.json").write_text('{"fil'), "its JSON is damaged"),
    "a pipe as record": (
        lambda out: ((out / "export.json").unlink(), os.mkfifo(out / "export.json")),
        "export.json is a pipe",
    ),
}


@pytest.mark.parametrize("case", EXPORTS)
def test_an_export_touches_only_its_own_files(case: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "mine.c").write_text("1")
    write_project(out, FIRST)
    change, message = EXPORTS[case]
    change(out)
    before = everything(tmp_path)
    with pytest.raises(ToolError) as raised:
        write_project(out, LATER)
    assert message in str(raised.value) and str(out) in str(raised.value)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("case", ["a linked file", "a changed old file"])
def test_force_replaces_what_is_below_the_folder(case: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "mine.c").write_text("mine")
    write_project(out, FIRST)
    EXPORTS[case][0](out)
    write_project(out, LATER, force=True)
    assert {n: t for n, t in everything(tmp_path).items() if n.endswith(".c")} == {
        "mine.c": b"mine",
        "out/lib/a/a.c": b"2",
        "out/src/main.c": b"int main;",
    }


def test_files_are_replaced_as_long_as_nobody_changes_them(tmp_path: Path) -> None:
    for content in ("1", "2"):
        write_file(tmp_path / "page.html", content)
    (tmp_path / "same.html").write_text("1")
    write_files(tmp_path, {"same.html": "1"})  # nothing would be lost
    assert recorded(tmp_path).keys() == {"page.html", "same.html"}
    (tmp_path / "other.html").write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(ToolError, match=r"other\.html: not written by autodiff-gen, or changed since"):
        write_files(tmp_path, {"page.html": "3", "other.html": "3"})
    assert everything(tmp_path) == before
    (tmp_path / "pipe").mkdir()
    with pytest.raises(ToolError, match="pipe is a folder; remove it"):
        write_file(tmp_path / "pipe", "1", force=True)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ToolError, match="fifo is no regular file; remove it"):
        write_file(tmp_path / "fifo", "1", force=True)


# the words of commands after the model xor, and the file that somebody else has there
COMMANDS = {
    "build": ("build", "--out {}", "xor.c"),
    "its list": ("build", "--out {}", "xor.deps.json"),
    "report": ("report", "--out {}/page.html", "page.html"),
    "link": ("link", "--out {}", "xor_link.c"),
    "predict": ("predict", "--board host --data {}/../data.npz --out {}/out.csv", "out.csv"),
    "bench-sources": ("bench-sources", "--out {}", "xor_bench.c"),
    "dump": ("build", "--out {} --dump {}", "train_step.00.start.txt"),
    "record": ("build", "--out {}", RECORD),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_a_foreign_file_stops_a_command(case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name, words, file = COMMANDS[case]
    command = [name, "xor", *words.replace("{}", str(tmp_path / "out")).split()]
    if case == "dump":
        assert main(command) == 0
        file = min(p.name for p in (tmp_path / "out").glob("*.txt"))
    np.savez(tmp_path / "data.npz", x=np.zeros((4, 2), "f4"))
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / file).write_text("mine")
    before = everything(tmp_path)
    assert main(command) == 1
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert error.startswith(f"error: {tmp_path / 'out' / file}") and len(error) <= 400
    assert everything(tmp_path) == before
    if case != "record":
        assert main([*command, "--force"]) == 0
        assert (tmp_path / "out" / file).read_text() != "mine"
        assert main(command) == 0
