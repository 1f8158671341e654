"""Output that the READMEs of the examples show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from documented_numbers import agrees, by_the_documented_compiler

MEMORY = re.compile(r"^(flash|RAM|stack) .*\n?", re.MULTILINE)
# Rows that a program prints, and rows about the linked file; the columns tell them apart.
PRINTED = re.compile(r"^( *)(flash|RAM|stack) +([\d,]+) of ([ \d,]{9}) bytes .*$", re.MULTILINE)
LINKED = re.compile(r"^( *)(flash|sram) +([\d,]+) of ([ \d,]{12}) bytes .*$", re.MULTILINE)
_VARIABLES = ("RAM", "sram")  # the same by every compiler, unlike code and stack frames

# What `run` adds to the output of a program: the losses as bars, and the next targets.
CURVE = re.compile(r"\n\n[^\n]+ by \w+\n(?:  [^\n]*\n)+\nNext: [^\n]*\n?")


def printed(said: str, example: str, board: str) -> str:
    """The lines of an example's program after its name and the board's, from the output of `./scons run`."""
    return CURVE.sub("\n", said.split(f"{example} on {board}")[1])


def readme(example: str) -> Path:
    return ROOT / "examples" / example / "README.md"


def shown(example: str) -> str:
    """The block of the README that begins with "<example> on <board>", without the board and the sizes of memory."""
    text = readme(example).read_text()
    found = re.search(rf"^    {example} on \w+(: .*\n(?:(?:    .*)?\n)*)", text, re.MULTILINE)
    assert found is not None, f"{example}/README.md shows no output"
    return MEMORY.sub("", re.sub(r"^    ", "", found.group(1), flags=re.MULTILINE)).rstrip()


def sizes(text: str, rows: re.Pattern[str] = PRINTED) -> dict[str, tuple[int, int]]:
    """The used and the whole size of each memory."""
    found = {m[2]: (m[3], m[4]) for m in rows.finditer(text)}
    return {name: (number(used), number(of)) for name, (used, of) in found.items()}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def updates(config: pytest.Config) -> bool:
    """Whether documents are written; other compilers record their ratios instead."""
    return config.getoption("--update-sizes") and by_the_documented_compiler()


def check_sizes(example: str, said: str, config: pytest.Config, rows: re.Pattern[str] = PRINTED) -> None:
    """The README of the example shows the memory that was printed; with --update-sizes it is written there."""
    path, printed = readme(example), {m[2]: m[0].strip() for m in rows.finditer(said)}
    if updates(config):
        path.write_text(rows.sub(lambda m: m[1] + printed[m[2]], path.read_text()))
    written, run = sizes(path.read_text(), rows), sizes(said, rows)
    assert written.keys() == run.keys() and run, path
    for name, (used, of) in run.items():
        there = written[name][0]
        key = f"examples/{example}/README.md: {name} of {of:,} bytes"
        near = there == used if name in _VARIABLES else agrees(key, there, used, config)
        assert written[name][1] == of and near, (
            f"examples/{example}/README.md: {name} is {used:,} of {of:,} bytes: "
            'write it by ./scons test args="--update-sizes -k memory"'
        )


def check_result(row: str, run: dict[str, tuple[int, int]], config: pytest.Config) -> None:
    """The row of results in docs/benchmarks.md that begins with `row` shows flash and RAM in KB of 1,000 bytes."""
    path = ROOT / "docs" / "benchmarks.md"
    pattern = re.compile(rf"^(\| {re.escape(row)}.* \| )([\d.]+) KB and ([\d.]+) KB", re.MULTILINE)
    flash, ram = (run[name][0] for name in ("flash", "RAM"))
    if updates(config):
        text = path.read_text()
        path.write_text(pattern.sub(rf"\g<1>{flash / 1000:.1f} KB and {ram / 1000:.1f} KB", text))
    found = pattern.search(path.read_text())
    assert found is not None
    assert found[3] == f"{ram / 1000:.1f}", found[0]
    same = found[2] == f"{flash / 1000:.1f}"
    assert same or agrees(f"docs/benchmarks.md: {row}", 1000 * float(found[2]), flash, config), found[0]
