"""The documents: paths and links exist, decisions have one form, the glossary is sorted, a line is a sentence."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT
from extensions import edits, sections

from autodiff_gen.lowering.pipeline import names

PACKAGE = ROOT / "autodiff_gen"
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
NOTES = sorted((ROOT / "docs" / "notes").glob("*.md"))
LEARN = sorted((ROOT / "docs" / "learn").glob("*.md"))
GENERATED = ROOT / "docs" / "operations.md"  # its text comes from docstrings
ERRORS = sorted((ROOT / "docs" / "errors").glob("*.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *LEARN,
    *ERRORS,
    *DECISIONS,
    *NOTES,
]
SUFFIXES = "c|h|j2|json|md|npz|py|toml|txt"

# Files of a reader's own project, and of additions, which the documents tell how to write; files that a build makes.
OTHERS = {"src/main.c", "test/", "net.py", "net.h", "gemv.c", "my_board.toml", "bench.json", "model.c"}
OTHERS |= {"CMakeLists.txt", "data.npz", "g474.toml", "g474/machine.c", ".autodiff_gen.json", "export.json"}
# Of editors and other tools.
OTHERS |= {"settings.json", "mcu_ir_gen.py", "ir2json.py", "tiny_training.py", "genModel.c", "genModel.h"}
OTHERS |= {"model_metadata.h"}
OTHERS |= {edit.path for section in sections() for edit in edits(section)}
OUTPUT = re.compile(r"build/|lib/|\.pio/|path/|.*\bNAME")
NAME = re.compile(rf"`([\w.*-]+(?:/[\w.*-]+)*\.(?:{SUFFIXES})|(?:[\w.*-]+/)+)`")


@cache
def file_names() -> set[str]:
    words = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-c", "-o", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return {Path(line).name for line in done.stdout.splitlines()}


def text_of(path: Path) -> str:
    """A document without the sections that commands write and without its blocks of code."""
    text = re.sub(r"<!-- (\w+) -->.*?<!-- /\1 -->", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def exists(name: str, document: Path) -> bool:
    """Whether a name in backticks is a file or folder of the tree; `*` matches any characters."""
    if name in OTHERS or OUTPUT.match(name):
        return True
    if "/" not in name:
        return name in file_names()
    return any(any(folder.glob(name.rstrip("/"))) for folder in (ROOT, PACKAGE, document.parent))


def test_paths_and_links_exist(subtests: pytest.Subtests) -> None:
    for document in DOCUMENTS:
        text = text_of(document)
        missing = [name for name in NAME.findall(text) if not exists(name, document)]
        links = re.findall(r"\]\(([^)#:]+)\)", text)
        missing += [link for link in links if not (document.parent / link).exists()]
        with subtests.test(document.name):
            assert missing == []


# A sentence ends at a mark, perhaps with a quote or bracket after it; "i.e." and initials do not end one.
END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!\b[A-Z])[.!?][\"'*_)\]]*")


def without_details(line: str) -> str:
    """A line of prose without code and without text in brackets, which may contain sentences."""
    line = re.sub(r"`[^`]*`", "code", line)
    while (shorter := re.sub(r"\([^()]*\)|\[[^][]*\]", "", line)) != line:
        line = shorter
    return line


NOT_OURS = {"setup.py", "net.py"}  # of a package, of a user


def test_modules_that_docstrings_and_comments_name_exist() -> None:
    sources = sorted((ROOT / "autodiff_gen").rglob("*.py"))
    named = re.compile(r"(?<![\w./])(?:\w+/)*(\w+\.py)\b")
    existing = {path.name for path in sources} | {path.name for path in (ROOT / "site_scons").rglob("*.py")}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        if ".py" in (text := path.read_text(encoding="utf-8"))
        for name in named.findall(text)
        if name not in existing | NOT_OURS
    ]
    assert missing == []


def test_packages_name_modules_of_their_own() -> None:
    missing = []
    for path in sorted((ROOT / "autodiff_gen").rglob("__init__.py")):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for name in re.findall(r"(?<![\w./])((?:\w+/)*\w+\.py|\w+/(?!\w))", doc):
            if not any((folder / name).exists() for folder in (path.parent, path.parents[1])):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []


def test_a_line_of_prose_is_one_sentence(subtests: pytest.Subtests) -> None:
    """Not more than one, and not a piece of one: the next line of its paragraph begins a sentence or an item."""
    item = re.compile(r"[-*] |\d+\. |!")
    for document in DOCUMENTS:
        if document == GENERATED:
            continue
        prose = [x for x in text_of(document).splitlines() if not x.startswith(("|", "#", "    ", "<"))]
        lines = [without_details(line).strip() for line in prose]
        several = [x for x in lines if re.search(END.pattern + r"\s+[A-Z]", re.sub(r"^\d+\.", "", x))]
        pieces = [
            line
            for line, following in itertools.pairwise(lines)
            if line and following and not line.startswith("!") and not item.match(following)
            if not re.search(END.pattern + "$", line)
        ]
        with subtests.test(document.name):
            assert (several, pieces) == ([], [])


def test_decisions_have_one_form() -> None:
    form = r"# {}\. [^\n]+\n\n- Status: \w+\n- Date: \d{{4}}-\d\d-\d\d\n\n"
    form += r"## Context\n.*\n## Decision\n.*\n## Consequences\n"
    for number, path in enumerate(DECISIONS, 1):
        assert path.name.startswith(f"{number:04}-")
        assert re.match(form.format(number), path.read_text(), re.DOTALL), path.name


def test_the_glossary_is_sorted() -> None:
    rows = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    terms = [row.strip("`").lower() for row in rows if row != "term"]
    assert terms == sorted(terms) and len(terms) > 40


def test_how_it_works_has_every_stage_of_the_pipeline_in_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "how-it-works.md").read_text(), re.MULTILINE)
    assert rows == names()
