"""The hooks of MkDocs: pages that follow from the code, and links that lead from one to the other.

A generated page has the path that it would have in docs/. Links are written as in the repository, so that Markdown
files stay readable there; those to files outside docs/ lead to the page made of the file, if there is one.
"""

from __future__ import annotations

import gc
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []  # the compiler, of this checkout

import glossary  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402

# Pages made of Markdown files outside docs/: the page of each file.
COPIED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    "kernels/README.md": "reference/kernels.md",
    **{
        f"examples/{p.parent.name}/README.md": f"examples/{p.parent.name}.md"
        for p in ROOT.glob("examples/*/README.md")
    },
}
SOURCES = {page: source for source, page in COPIED.items()}
# Pages that follow from other files: a link to the file leads to the page.
PAGES = {
    **COPIED,
    "autodiff_gen/cli/main.py": "reference/command-line.md",
    "autodiff_gen/targets/schema.py": "reference/board-file.md",
    "kernels/ag_kernels.h": "reference/kernel-contract.md",
    "runtime": "reference/c-api.md",
}
# The folders whose pages link to the glossary, and pages there that do not.
EXPLAINED = ("", "errors", "learn", "understand")
APART = ("index.md", "changes.md", "contributing.md", "operations.md")
# How much a page weighs in a search, by the beginning of its path. Pages that say how to use the project come before
# all pages that say how it came about: a word in a title weighs as much as a thousand words of text, so they weigh more
# than a thousand times as much. Pages of docs/ itself are guides.
WEIGHTS = {
    "decisions/": 0.5,
    "notes/": 0.5,
    "changes.md": 0.5,
    "benchmarks.md": 1000.0,
    "contributing.md": 2000.0,
    "examples/": 1000.0,
    "errors/": 2000.0,
    "understand/": 2000.0,
    "reference/": 2000.0,
    "learn/": 4000.0,
    "": 4000.0,
}
LINK = re.compile(r"(\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```$|(?: {4}[^\n]*\n)+)", re.DOTALL | re.MULTILINE)


def on_startup(command: str, dirty: bool) -> None:
    """Pages live to the end: looking for garbage between them took a fifth of the time."""
    gc.set_threshold(200_000, 20, 20)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and their places in the navigation."""
    made = {page: (ROOT / source).read_text() for source, page in COPIED.items()}
    made |= pages.generated(ROOT)
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    uris = sorted(f.src_uri for f in files.documentation_pages())
    config.nav = _filled(config.nav, [uri for uri in uris if uri not in _named(config.nav)])
    return files


def _named(nav: Any) -> set[str]:
    """The pages that the navigation names."""
    if isinstance(nav, str):
        return {nav}
    inside = nav.values() if isinstance(nav, dict) else nav
    return {name for entry in inside for name in _named(entry)}


def _filled(nav: Any, uris: list[str]) -> Any:
    """The navigation in which `folder/` is replaced by the pages of the folder that it does not name, its index first;
    `./` stands for docs/ itself."""
    if isinstance(nav, dict):
        ((title, entry),) = nav.items()
        inside = _filled(entry if isinstance(entry, list) else [entry], uris)
        return {title: inside if isinstance(entry, list) or entry.endswith("/") else entry}
    if isinstance(nav, list):
        return [page for entry in nav for page in _listed(entry, uris)]
    return nav


def _listed(entry: Any, uris: list[str]) -> list[Any]:
    if isinstance(entry, str) and entry.endswith("/"):
        inside = [uri for uri in uris if posixpath.dirname(uri) == posixpath.normpath(entry).strip(".")]
        return sorted(inside, key=lambda uri: (posixpath.basename(uri) != "index.md", uri))
    return [_filled(entry, uris)]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page to pages of the site; a link to any other file of the repository becomes its text. Set
    the metadata that the theme reads: the page's weight in a search, and whether the navigation beside it has other
    pages."""
    uri = page.file.src_uri
    page.meta["search"] = {"boost": next(w for path, w in WEIGHTS.items() if uri.startswith(path))}
    page.meta["hide"] = [] if page.parent else ["navigation"]
    source = SOURCES.get(uri, f"docs/{uri}")
    parts = FENCE.split(pictures.placed(markdown))
    parts[::2] = [LINK.sub(lambda found: _pointed(found, source, uri, files), part) for part in parts[::2]]
    if uri == glossary.PAGE:
        parts[::2] = map(glossary.with_anchors, parts[::2])
    elif posixpath.dirname(uri) in EXPLAINED and uri not in APART:
        left = glossary.terms((ROOT / "docs" / glossary.PAGE).read_text())
        address = posixpath.relpath(glossary.PAGE, posixpath.dirname(uri) or ".")
        parts[::2] = [glossary.linked(part, left, address) for part in parts[::2]]
    return "".join(parts)


def _pointed(found: re.Match[str], source: str, uri: str, files: Files) -> str:
    text, link = found.groups()
    target, hash_, anchor = link.partition("#")
    if ":" in target or not target:
        return found[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    known = next((p for p in (path, f"{path}/README.md") if p in PAGES), None)
    if known is not None:
        page = PAGES[known]
    elif path.startswith("docs/"):
        page = path.removeprefix("docs/")
        page = page if posixpath.splitext(page)[1] else _first(page, files)
    else:
        return text[1:-1]
    return f"{text}({posixpath.relpath(page, posixpath.dirname(uri) or '.')}{hash_}{anchor})"


def _first(folder: str, files: Files) -> str:
    """The page that a link to a folder leads to."""
    return min(f.src_uri for f in files.documentation_pages() if f.src_uri.startswith(f"{folder}/"))


NAMED = re.compile(r"(?<=[ (])(?:docs/[\w/-]+|CONTRIBUTING)\.md(?=[ ),.;:<])")
NOT_PROSE = re.compile(r"(<pre\b.*?</pre>|<code\b.*?</code>|<a\b.*?</a>)", re.DOTALL)
CHART = re.compile(r'<p>(?=<img [^>]*src="[^"]*\.svg" ?/?></p>)')


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The corner of a table is no header of anything; charts keep a width at which their text can be read; documents
    that docstrings and comments of C name are links."""
    uri = page.file.src_uri
    if uri.startswith("reference/"):

        def linked(found: re.Match[str]) -> str:
            path = COPIED.get(found[0]) or found[0].removeprefix("docs/")
            known = files.get_file_from_path(path)
            return (
                found[0] if known is None else f'<a href="{known.url_relative_to(page.file)}">{found[0]}</a>'
            )

        parts = NOT_PROSE.split(html)
        parts[::2] = [NAMED.sub(linked, part) for part in parts[::2]]
        html = "".join(parts)
    return CHART.sub('<p class="picture">', html.replace("<th></th>", "<td></td>"))


SEARCH = 'data-md-component="search" role="dialog"'
CELL = re.compile(r"<td[^>]*>.*?</td>", re.DOTALL)
CODE = re.compile(r"<code>([^<]*)</code>")
# Where a line may end in a name, a path or a call: not before a short end, such as .py.
MARK = re.compile(r"(?<=[/(,])(?=[\w\"'&-])|(?<=\w\w\w_)(?=\w{3})|(?<=[.=])(?=[A-Za-z_]\w{3})")
SECTION = re.compile(r'(<nav class="md-nav" data-md-level="[1-9]") aria-labelledby="(\w+)"')


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Let code in cells continue on the next line."""
    return CELL.sub(_breakable, _with_names(output))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return _with_names(output) if template_name == "404.html" else output


def _with_names(output: str) -> str:
    """Add names that the theme's pages lack for readers who see no page: of the search, and of the navigation's parts,
    whose labels are not displayed."""
    output = output.replace(SEARCH, f'{SEARCH} aria-label="Search"')

    def named(found: re.Match[str]) -> str:
        titles = re.findall(r'<span class="md-ellipsis">(.*?)</span>', output[: found.start()], re.DOTALL)
        return f'{found[1]} aria-label="{titles[-1].strip()}: pages"'

    return SECTION.sub(named, output)


def _breakable(cell: re.Match[str]) -> str:
    """A cell whose code may continue on the next line after a mark. The search has read the page before."""
    return CODE.sub(lambda code: f"<code>{MARK.sub('<wbr>', code[1])}</code>", cell[0])


# lunr 2.3.9 writes a node of its index as labels and numbers without a character between them, so that it merges nodes
# that differ, finds words that no page has, and then fails: for "nn", as some page has digits in the right order.
NODE = ("e=e+s+o.id}", "e=e+s+o.id+','}")


def on_post_build(config: MkDocsConfig) -> None:
    """Repair the search of the theme."""
    (worker,) = Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js")
    text = worker.read_text()
    assert text.count(NODE[0]) == 1, "the theme has another lunr: does the search for nn find pages?"
    worker.write_text(text.replace(*NODE))
