"""docs/errors: every message that a user can see has one entry, every entry has a message, and its example is true."""

from __future__ import annotations

import io
import re
import shlex
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from console_pages import BLOCK, File, matches, steps
from error_messages import templates, words

import autodiff_gen as ag
from autodiff_gen import functional, init, nn, optim
from autodiff_gen.cli.help_error import ErrorEntry, containing, entries, matching, starting_with
from autodiff_gen.cli.main import main
from autodiff_gen.errors import AutodiffError

ENTRIES = entries()
MESSAGES = [m for entry in ENTRIES for m in entry.messages]
NAMES = {"ag": ag, "F": functional, "init": init, "nn": nn, "np": np, "optim": optim}


def blocks(entry: ErrorEntry) -> list[tuple[str, str, str]]:
    """Language, title and text of each block of code."""
    return BLOCK.findall(entry.text)


def test_every_message_has_an_entry_and_every_line_of_an_entry_is_a_message() -> None:
    """Of several lines that match a message, the longest is meant, so that a line may be general."""
    found = {text: matching(text, ENTRIES) for text in templates()}
    missing = [f"{where}: {text}" for text, where in templates().items() if not found[text]]
    assert missing == [], "add a line to the messages of an entry of docs/errors/*.md, or an entry"
    used = {lines[0][0] for lines in found.values()}
    assert [m.text for m in MESSAGES if m not in used] == [], "no place in the sources makes these messages"


def test_no_line_is_in_two_entries_and_all_can_be_recognised() -> None:
    lines = [m.text for m in MESSAGES]
    assert [t for t in lines if lines.count(t) > 1] == []
    assert [t for t in lines if words(t) < 2] == []


def test_titles_are_different() -> None:
    titles = [(entry.page, entry.title) for entry in ENTRIES]
    assert [t for t in titles if titles.count(t) > 1] == []


@pytest.mark.parametrize("page", sorted({entry.page for entry in ENTRIES}), ids=lambda p: p.stem)
def test_entries_have_one_form(page: Path) -> None:
    """A heading, messages, their meaning, an example, and the fix; nothing else is on a page but its introduction."""
    own = [entry for entry in ENTRIES if entry.page == page]
    assert page.read_text().count("\n## ") == len(own)
    for entry in own:
        meaning, *rest = BLOCK.split(entry.text)
        assert re.match(r"[A-Z`]\w*", meaning), entry.title
        assert rest, f"{entry.title}: no example"
        assert "\n**Fix:** " in entry.text, f"{entry.title}: no fix"


def raised(code: str) -> str:
    try:
        exec(compile(code, "model.py", "exec"), dict(NAMES))
    except (AutodiffError, AttributeError) as error:
        return f"{type(error).__name__}: {error}\n"
    return f"nothing is raised by:\n{code}"


def executed(entry: ErrorEntry) -> list[tuple[str, str]]:
    """Examples in Python, and the text that follows each."""
    found = blocks(entry)
    return [(a[2], b[2]) for a, b in pairwise(found) if a[0] == "python" and not a[1]]


@pytest.mark.parametrize("page", sorted({entry.page for entry in ENTRIES}), ids=lambda p: p.stem)
def test_examples_show_a_message_of_their_entry(page: Path) -> None:
    for entry in (e for e in ENTRIES if e.page == page):
        shown = [text for language, _, text in blocks(entry) if language in ("text", "console")]
        assert shown, entry.title
        for text in shown:
            found = matching(text, ENTRIES)
            assert found and found[0][1].title == entry.title, text


@pytest.mark.cc
def test_examples_in_python_raise_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    for entry in ENTRIES:
        for code, text in executed(entry):
            assert raised(code) == text, entry.title


def test_commands_print_what_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, entry in enumerate(ENTRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        for step in steps(entry.text):
            if isinstance(step, File):
                Path(step.name).parent.mkdir(exist_ok=True)
                Path(step.name).write_text(step.text)
            else:
                assert main(shlex.split(step.line.removeprefix("autodiff-gen "))) != 0, entry.title
                assert matches(step.shown, capsys.readouterr().err.replace(f"{folder}/", "")), entry.title


def test_the_command_finds_the_message_in_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = "$ autodiff-gen build net.py --out c\nerror: net.py:7: ShapeError: matmul(x: f32[1,4], w: f32[3,4]): the "
    assert main(["help-error", text + "inner\n extents differ: 4 columns against 3 rows"]) == 0
    assert "**Fix:**" in capsys.readouterr().out


def test_the_command_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.stdin",
        io.StringIO(
            "error: unknown board 'stm23' (known: stm32); give a board of your own as path/to/board.toml"
        ),
    )
    assert main(["help-error"]) == 0
    assert "boards.md" in capsys.readouterr().out


def test_an_unknown_message_lists_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help-error", "the inner extents are different: columns, rows"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("no entry for this message; the nearest are:\n") and "inner extents differ" in out


@pytest.mark.parametrize(
    "part, titles",
    [
        ("unknown board 'stm23'; did you mean 'stm32'?", ["The board is not found"]),
        ("inner extents differ", ["The inner extents of a product differ"]),
        ("cannot be opened: Permission denied", ["The port cannot be opened"]),
        ("the model has no main.c", ["The model has no program"]),
        ("zzz", []),
    ],
)
def test_a_part_of_a_message_is_enough(
    part: str, titles: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [entry.title for entry in containing(part, ENTRIES)] == titles
    assert main(["help-error", part]) == (0 if titles else 1)
    assert capsys.readouterr().out.startswith(f"{titles[0]}\n\n" if titles else "no entry for this message")


def test_the_beginning_of_a_message_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["help-error", "error: cnn needs 146228 bytes, board stm32 has 122880 for it: 23348 bytes"]) == 0
    )
    assert capsys.readouterr().out.startswith("The program does not fit into memory\n")


def test_the_first_half_of_a_message_is_not_taken_for_that_of_another_one() -> None:
    """Of the messages in the examples; where only one entry is found, it is the right one."""
    shown = [
        (text.split(), entry)
        for entry in ENTRIES
        for text in re.findall(r"^(?:error|\w+Error): (.*)$", entry.text, re.MULTILINE)
        if matching(text, [entry])
    ]
    found = [starting_with(" ".join(text[: (len(text) + 1) // 2]), ENTRIES) for text, _ in shown]
    wrong = [
        text for (text, entry), one in zip(shown, found, strict=True) if len(one) == 1 and one != [entry]
    ]
    assert wrong == [] and sum(len(one) == 1 for one in found) > len(shown) / 2


def test_of_several_entries_the_user_is_to_choose_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help-error", "the port"]) == 1
    assert capsys.readouterr().out.startswith(
        "several entries have a message with this text; give more of it:\n"
    )
