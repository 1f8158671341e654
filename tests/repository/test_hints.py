"""Commands and options that messages and documents name exist."""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT

from autodiff_gen.cli import main as command_line

sys.path.insert(0, str(ROOT / "site_scons"))
import commandline  # the targets and keys of ./scons

PYTHON = [
    ROOT / "SConstruct",
    *sorted(ROOT.glob("autodiff_gen/**/*.py")),
    *sorted(ROOT.glob("site_scons/**/*.py")),
]
PYTHON += [*sorted(ROOT.glob("platformio/**/*.py")), *sorted(ROOT.glob("bench/**/*.py"))]
PYTHON += sorted(ROOT.glob("examples/*/*.py"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
TEXTS += sorted(ROOT.glob("docs/learn/*.md"))
TEXTS += sorted(ROOT.glob("examples/*/README.md"))

COMMAND = re.compile(r"(?:autodiff-gen|-m autodiff_gen) ([a-z][\w-]*)([^\n`;,)]*)")
SCONS = re.compile(r"(?<![\w/])\./scons((?: +[^\s`;,)\"]+)*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
PAGE = re.compile(r"docs/[\w/-]+\.md")
# Options of other programs, which messages tell the user to run.
OTHERS = {"--no-install-recommends", "--hash", "--fqbn", "--library", "--kill-after", "--test-port"}


@cache
def commands() -> dict[str, set[str]]:
    """The options of each command."""
    parser = command_line._parser()
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {name: {o for a in p._actions for o in a.option_strings} for name, p in sub.choices.items()}


def wrong_commands(text: str) -> Iterator[str]:
    """Commands and options of `autodiff-gen` in a text that do not exist."""
    for match in COMMAND.finditer(text):
        name, rest = match[1], match[2].split(" #")[0].split("    ")[0]
        if name not in commands():
            yield f"autodiff-gen {name}"
            continue
        yield from (f"autodiff-gen {name} {o}" for o in OPTION.findall(rest) if o not in commands()[name])


def wrong_scons(text: str) -> Iterator[str]:
    """Words of `./scons` in a text that do not exist."""
    for match in SCONS.finditer(text):
        for word in match[1].split():
            key, equals, _ = word.partition("=")
            if word in ("...", "#", "|", "->") or re.match(r"[-\[X]", word):
                break
            if not (key in commandline.KEYS if equals else word in commandline.TARGETS or "/" in word):
                yield f"./scons {match[1].strip()}: {word}"


def code(path: Path) -> str:
    """The code in a document: spans, and the lines of blocks without their comments."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"^    (.*)$", text, re.MULTILINE)
    lines = "\n".join(blocks).splitlines()
    return "\n".join([*(re.split(r" +#|  +", line)[0] for line in lines), *re.findall(r"`([^`\n]+)`", text)])


def strings(path: Path) -> Iterator[str]:
    """The strings of a Python file, with X for inserted values; without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(v) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for v in node.values}
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            inside.add(id(body[0].value))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "X" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def own_options() -> set[str]:
    """Options of all commands, and of the scripts of examples and benchmarks."""
    scripts = "\n".join(p.read_text() for p in PYTHON if p.parent.name != "cli")
    added = set(re.findall(r'add_argument\(\s*"(--[\w-]+)"', scripts))
    return {o for options in commands().values() for o in options} | added


def test_messages_name_what_exists() -> None:
    wrong = []
    options = own_options()
    for path in PYTHON:
        for text in strings(path):
            found = [*wrong_commands(text), *wrong_scons(text)]
            found += [name for name in PAGE.findall(text) if not (ROOT / name).is_file()]
            # a message, not a word of a command line
            if " " in text.strip() and not re.search(r"apt-get|pip install|cmake", text):
                found += [o for o in OPTION.findall(text) if o not in options | OTHERS]
            wrong += [f"{path.relative_to(ROOT)}: {what}" for what in found]
    assert wrong == []


def test_documents_name_what_exists() -> None:
    wrong = {path.name: [*wrong_commands(code(path)), *wrong_scons(code(path))] for path in TEXTS}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "text, found",
    [
        ("run autodiff-gen explane mnist", ["autodiff-gen explane"]),
        ("autodiff-gen explain mnist --fulll", ["autodiff-gen explain --fulll"]),
        ("make it with ./scons board=X model=X link", []),
        ("./scons bord=X", ["./scons bord=X: bord=X"]),
        ("./scons board=X links", ["./scons board=X links: links"]),
    ],
)
def test_a_wrong_name_is_found(text: str, found: list[str]) -> None:
    assert [*wrong_commands(text), *wrong_scons(text)] == found
