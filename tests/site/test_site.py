"""The built site: nothing of it is loaded from another host, every link leads somewhere, and public names, commands,
C functions, kernels and keys of boards have an entry in the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest
from checkout import ROOT
from site_build import site as built_site

import autodiff_gen as ag
from autodiff_gen import functional, init, nn, optim, quant
from autodiff_gen.cli.main import _parser
from autodiff_gen.frontends import graph
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_kinds import Fused, Leaf
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.lowering import pipeline
from autodiff_gen.optim import lr_scheduler
from autodiff_gen.targets.schema import known_keys

# Files that the theme's script names and no page of ours needs: diagrams, an old browser's polyfill, and repositories.
UNUSED = ("unpkg.com/mermaid@", "unpkg.com/resize-observer-polyfill", "api.github.com/", "${e}/api/v4/")
ATTRIBUTE = re.compile(
    r"<(\w+)\b[^>]*?\s(href|src|srcset|poster|action|data)=(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))"
)

pytestmark = pytest.mark.slow  # the first of them builds the site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


@pytest.fixture(scope="module")
def texts(site: Path) -> dict[Path, str]:
    """The text of every page."""
    return {path: path.read_text() for path in sorted(site.rglob("*.html"))}


def ids(text: str) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', text))


def test_nothing_is_loaded_from_another_host(site: Path, texts: dict[Path, str]) -> None:
    assert len(texts) > 100
    loaded = [
        (path.name, tag, link)
        for path, text in texts.items()
        for tag, _, *links in ATTRIBUTE.findall(text)
        for link in links
        if tag != "a" and re.match("(?:https?:)?//", link)
    ]
    assert loaded == []
    for path in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", path.read_text()) == [], path
    for path in [p for p in site.rglob("*.js") if p.name != "search_index.js"]:
        calls = re.findall(r"[\"'`]https?://([^\"'`\s]+)", path.read_text())
        assert [c for c in calls if not c.startswith(UNUSED)] == [], path
    assert not any('class="mermaid"' in text for text in texts.values())


def test_every_link_leads_to_a_file_and_an_anchor(site: Path, texts: dict[Path, str]) -> None:
    anchors = {path: ids(text) for path, text in texts.items()}
    dead, checked = [], 0
    for path, text in texts.items():
        if path.name == "404.html":
            continue  # it is served for addresses anywhere
        for _, _, *links in ATTRIBUTE.findall(text):
            file, _, anchor = "".join(links).partition("#")
            if file.startswith(("http:", "https:", "data:", "javascript:")):
                continue
            target = (path.parent / file).resolve() if file else path
            checked += 1
            if not target.is_file() or (anchor and anchor not in anchors.get(target, {anchor})):
                dead.append((path.relative_to(site).as_posix(), "".join(links)))
    assert dead == [] and checked > 5000


def test_every_markdown_file_is_a_page(texts: dict[Path, str], site: Path) -> None:
    pages = {path.relative_to(site).with_suffix(".md").as_posix() for path in texts}
    written = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert {name for name in written if not name.startswith("site/")} <= pages
    assert {f"examples/{p.parent.name}.md" for p in (ROOT / "examples").glob("*/README.md")} <= pages


@pytest.mark.parametrize(
    "module, folder",
    [
        (ag, "python"),
        (nn, "layers"),
        (functional, "functions"),
        (optim, "python"),
        (lr_scheduler, "python"),
        (init, "python"),
        (nn.init, "python"),
        (quant, "python"),
        (graph, "python"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_every_public_name_has_an_entry(site: Path, module: ModuleType, folder: str) -> None:
    names = list(ag._HOME) if module is ag else getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]  # fmt: skip
    names = [n for n in names if not n.startswith("_") and not isinstance(getattr(module, n), ModuleType)]
    entries = {i for path in (site / "reference" / folder).glob("*.html") for i in ids(path.read_text())}
    shown = {entry.rpartition(".")[2] for entry in entries if entry.startswith("autodiff_gen.")}
    assert names and sorted(set(names) - shown) == []


def test_every_op_kernel_command_and_c_function_has_an_entry(site: Path) -> None:
    def words(page: str) -> str:
        return re.sub(r"<[^>]*>", "", (site / "reference" / f"{page}.html").read_text())

    families = words("operations/index")
    ops = [op.name for op in OPS.values() if not isinstance(op.lower, Leaf | Fused)]
    assert [name for name in ops if not re.search(rf"\b{name}\b", families)] == []
    contract = words("kernel-contract")
    assert [name for name in CONTRACT if not re.search(rf"\b{name}\b", contract)] == []
    commands = ids((site / "reference" / "command-line.html").read_text())
    assert sorted(set(_parser()._subparsers._group_actions[0].choices) - commands) == []  # type: ignore[union-attr,arg-type]
    api = words("c-api")
    for header in ("ag_store", "ag_link", "ag_samples", "ag_console", "ag_flash", "ag_system", "ag_main"):
        text = re.sub(r"/\*.*?\*/", "", (ROOT / "runtime" / f"{header}.h").read_text(), flags=re.DOTALL)
        declared = re.findall(r"^[\w ]+[ *](ag_\w+)\([^)]*\);", text, re.MULTILINE)
        assert declared and [name for name in declared if name not in api] == []
    statuses = re.findall(r"AG_STATUS_(\w+) =", (ROOT / "runtime" / "ag_status.h").read_text())
    assert [s for s in statuses if f"NAME_{s}" not in api and f"NAME_ERR_{s}" not in api] == []


def test_the_schema_of_boards_is_published_with_all_keys(site: Path) -> None:
    page = (site / "reference" / "board-file.html").read_text().replace("<wbr>", "")
    assert [key for key in known_keys() if f"<code>{key}</code>" not in page] == []
    schema = json.loads((site / "reference" / "board.schema.json").read_text())
    described = re.findall(r'"description": "([^"]*)"', json.dumps(schema))
    assert len(described) == len(known_keys()) and not set(described) & set(known_keys())


def test_terms_of_the_glossary_are_linked_from_their_first_use(site: Path) -> None:
    rows = ids((site / "glossary.html").read_text())
    page = (site / "how-it-works.html").read_text()
    links = re.findall(r'<a class="term" href="glossary\.html#([^"]+)">([^<]+)</a>', page)
    assert len(links) > 8 and len(set(links)) == len(links)
    assert {target for target, _ in links} <= rows
    assert ("term-arena", "arena") in links and "backward pass" in page


def test_every_pass_has_a_picture_of_its_example(site: Path) -> None:
    page = (site / "understand" / "passes.html").read_text()
    names = [s.__name__ for s in pipeline.PIPELINE if s.__module__.startswith("autodiff_gen.passes.")]
    labels = re.findall(r'<svg role="img" aria-label="(\w+): (before|after)"', page)
    assert labels == [(name, side) for name in names for side in ("before", "after")]
    assert "fused" in page and 'class="node new"' in page
