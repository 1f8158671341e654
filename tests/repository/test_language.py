"""Spelling, and terms that prose avoids: Markdown, comments, docstrings and messages of all files."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest
from prose import prose

from autodiff_gen.errors import counted

# Expressions of what is not written, and what is written instead. Words that have a meaning of their own here are left
# out: gates of recurrent cells, lanes of a vector, segments of an ELF file.
AVOIDED = {
    r"lies?|lying": "is stored at, has layout, resides in",
    r"stands?(?! for|-in)|stood": "is, is called, is written, appears",
    r"behind": "after",
    r"asked": "requested, priority list",
    r"(?<!cached )(?:walks?|walked|walking)": "traverse, index, iterate",
    r"besides": "in addition, otherwise",
    r"(?:each|every|last|many|next|per) turns?": "iteration, element",
    r"tak(?:es?|ing|en) the bytes of|heirs?|donors?|in the place of": "aliases, reuses, donates its buffer, replaces",
    r"late edges?": "dependence, write-after-read edge, control dependence",
    r"own bytes|copied old": "copy insertion, materialise, snapshot",
    r"redraw\w*|draws? again|drawn again": "rematerialise, recompute",
    r"drops? unread": "dead-code elimination",
    r"settle[sd]?|sinks?|sunk|(?:cancel|move)\w* layouts?": "layout assignment, propagate, transpose elimination",
    r"proofs?|risk\w*|look\w* through": "finite guard, magnitude bound",
    r"(?<!\.)figures?": "measurement; test vector",
    r"(?<!Connection )refus\w+|passed over": "rejected",
    r"this computer": "host",
}
PATTERN = re.compile("|".join(rf"\b(?:{words})\b" for words in AVOIDED), re.IGNORECASE)


@pytest.fixture(scope="module")
def written(root: Path) -> list[Path]:
    """Files that people write, the new ones too."""
    words = ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    done = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True)
    others = ("requirements/", "tests/golden/", "tests/repository/test_language.py")
    names = [n for n in done.stdout.split("\0") if n and not n.startswith(others)]
    return [root / n for n in names if Path(n).suffix not in (".png", ".svg") and (root / n).is_file()]


def test_spelling(root: Path, written: list[Path]) -> None:
    """With the exceptions in pyproject.toml; tests misspell words on purpose."""
    names = [str(f.relative_to(root)) for f in written if f.relative_to(root).parts[0] != "tests"]
    assert len(names) > 500
    words = [sys.executable, "-m", "codespell_lib", *names]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_terms_of_the_style_guide(root: Path, written: list[Path]) -> None:
    found = []
    for path in written:
        if not PATTERN.search(path.read_text(encoding="utf-8", errors="replace")):
            continue
        for number, line in prose(path):
            found += [
                f"{path.relative_to(root)}:{number}: {m[0]}: {line.strip()}" for m in PATTERN.finditer(line)
            ]
    assert found == [], "; ".join(f"not {words}: {instead}" for words, instead in AVOIDED.items())


# Phrases that put a relative clause before its noun, or a pronoun in place of a noun, and the most of them in 10,000
# words of a package; NumPy's documentation has about half as many.
RATES = {
    r"of (?:which|what|whose|whom)": 1.5,
    r"what (?:is|are|it|the|they|an?)": 3.0,
    r"(?:that|those) of": 2.5,
    r"of (?:its|their) own": 1.0,
    r"alone": 1.0,
}
LONG, MOST_LONG = 35, 0.02  # words of a long sentence, and the share of these
FEWEST = (
    2000  # words for which a rate means something: smaller packages are counted with the folder around them
)


def package_of(path: Path) -> tuple[str, ...]:
    """A package of the compiler, a folder of the documents, or another folder at the top."""
    return path.parts[
        : 2 if path.parts[0] in ("autodiff_gen", "docs", "kernels") and len(path.parts) > 2 else 1
    ]


def sentences(text: str) -> list[str]:
    """The sentences, cells of tables and items of lists in prose."""
    return re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*[-*|#])|\|", text)


def counted_words(text: str) -> int:
    return len(re.findall(r"[A-Za-z'][\w'-]*", text))


def excess(texts: list[str]) -> dict[str, float]:
    """The rates above their limits: phrases in 10,000 words, and the share of long sentences."""
    words = sum(map(counted_words, texts))
    found = {}
    for phrase, most in RATES.items():
        pattern = re.compile(rf"\b(?:{phrase})\b", re.IGNORECASE)
        rate = sum(len(pattern.findall(" ".join(t.split()))) for t in texts) / words * 1e4
        if rate > most:
            found[phrase] = round(rate, 1)
    every = [counted_words(s) for t in texts for s in sentences(t)]
    every = [count for count in every if count > 2]
    long = sum(count > LONG for count in every) / len(every)
    return found | ({"long sentences": round(long, 3)} if long > MOST_LONG else {})


def test_sentences_put_the_subject_first(root: Path, written: list[Path]) -> None:
    packages: dict[tuple[str, ...], list[str]] = {}
    for path in written:
        package = package_of(path.relative_to(root))
        lines = prose(path, literals=package[0] != "tests")  # most literals of tests are inputs
        packages.setdefault(package, []).append("\n".join(line.strip() for _, line in lines))
    for package in [p for p, texts in packages.items() if sum(map(counted_words, texts)) < FEWEST]:
        packages.setdefault(package[:1] if len(package) > 1 else (), []).extend(packages.pop(package))
    found = {"/".join(p) or "other files": excess(texts) for p, texts in packages.items()}
    assert {p: e for p, e in found.items() if e} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The sum of the rows. " * 100, {}),
        ("Values of which a range is read. " * 10, {r"of (?:which|what|whose|whom)": 1428.6}),
        ("It is that of\nthe row. ", {r"(?:that|those) of": 1666.7}),
        ("word " * 36 + ".", {"long sentences": 1.0}),
        ("word " * 35 + ".", {}),
    ],
)
def test_the_rates_of_phrases(text: str, found: dict[str, float]) -> None:
    assert excess([text]) == found


OF_LIBRARIES = {"walk", "walk_tb", "walk_packages"}  # of ast, os, pkgutil and traceback


def test_names_are_made_of_these_terms_too(root: Path, written: list[Path]) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in written if path.suffix == ".py"}
    words = set(re.findall(r"[A-Za-z]\w+", "\n".join(texts.values()))) - OF_LIBRARIES
    avoided = {w for w in words if PATTERN.search(re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", w))}
    found = []
    for path, text in texts.items():
        if any(word in text for word in avoided):  # in a string, perhaps
            tokens = tokenize.generate_tokens(io.StringIO(text).readline)
            names = {t.string for t in tokens if t.type == tokenize.NAME}
            found += [f"{path.relative_to(root)}: {name}" for name in sorted(names & avoided)]
    assert found == []


def test_a_number_of_things() -> None:
    assert [counted(n, "step") for n in (0, 1, 2, 1200)] == ["0 steps", "1 step", "2 steps", "1,200 steps"]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        (
            "a.py",
            "# one\nx = 'a b'  # two\n'''three\nfour `x`'''\n",
            ["# one", "# two", "a b", "three", "four "],
        ),
        ("a.c", "int a; /* one\n * two */\n// three\n", ["/* one", " * two */", "// three"]),
        ("a.toml", "# one\na = 1  # two\nb = '#3'\n", ["# one", "# two"]),
        ("a.md", "one `two`\n\n```sh\nthree\n```\n", ["one      ", "", "     ", "     ", "   "]),
    ],
)
def test_what_is_prose(name: str, text: str, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert [line for _, line in prose(path)] == lines


def test_docstrings_without_other_literals(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("'''one two'''\nx = f('a b', f'c d')  # three\n")
    assert list(prose(path, literals=False)) == [(2, "# three"), (1, "one two")]
