"""Pages in Chromium, opened as files: both colour schemes, narrow, middle and wide windows, keys, search."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe import violations
from browser import Browser
from site_build import site as built_site

pytestmark = pytest.mark.browser

# One page of each kind: prose with code, commands, charts, tables, entries of Python, of C, of commands, pictures.
PAGES = (
    "index",
    "commands",
    "benchmarks",
    "learn/memory",
    "understand/pictures",
    "decisions/0019-stored-or-computed-again",
    "notes/kernels-cortex-m",
    "reference/python/quant",
    "reference/operations/products.contraction",
    "reference/board-file",
)
WIDTHS = {"light": (1280, 768, 390, 360), "dark": (360, 1280)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


def window(browser: Browser, width: int, scheme: str) -> None:
    """Where nothing fades in."""
    browser.window(width, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")


LOADED = (
    "return performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith('file:'))"
)
READY = "return document.readyState === 'complete' && document.body.dataset.mdColorScheme === '{}'"
# Cut text: it is wider than a box that hides the rest, or ends outside of the page's part for text. Tables and
# pictures may scroll if they show that they do.
CUT = """
    const scrolls = (e) => e.matches('.md-typeset__scrollwrap, .picture')
        && getComputedStyle(e).overflowX === 'auto' && getComputedStyle(e).backgroundImage !== 'none';
    const end = document.querySelector('.md-content').getBoundingClientRect().right + 1;
    const cut = (e) => e.getBoundingClientRect().right > end
        || getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1 && !scrolls(e);
    return [...document.querySelectorAll('.md-content *')]
        .filter((e) => !e.closest(':is(.md-typeset__scrollwrap, .picture) *') && e.checkVisibility() && cut(e))
        .map((e) => `${e.tagName} ${e.className}: ${e.textContent.trim().slice(0, 60)}`);"""
SCHEMES = {"light": "default", "dark": "slate"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_and_no_wider_than_the_window(browser: Browser, site: Path, page: str) -> None:
    """Each scheme with each width; axe-core's rules in every scheme, at one width each."""
    for scheme, widths in WIDTHS.items():
        window(browser, widths[0], scheme)
        browser.open((site / f"{page}.html").as_uri())
        browser.until(READY.format(SCHEMES[scheme]))
        for width in reversed(widths):
            window(browser, width, scheme)
            assert browser.run("return document.documentElement.scrollWidth") == width
            assert browser.run(CUT) == [], width
        assert violations(browser) == []
        assert browser.run(LOADED) == []
        assert browser.messages() == []


# A search, and a page that is among the results. The words of some are in titles of decisions or notes.
SEARCHES = {
    "clip_grad_norm": "reference/python/optim.html",
    "memory budget": "learn/memory.html",
    "gdb": "learn/debug.html",
    "checkpoint": "store.html",
    "loss is not finite": "errors/statuses.html",
    "nn": "reference/python/nn.init.html",
    "recompute": "decisions/0005-dropout-masks-are-recomputed.html",
    "layout": "notes/layouts.html",
    "mixed precision": "notes/import.html",
    "strips": "notes/budgets.html",
}


def test_the_search_works_without_a_server(browser: Browser, site: Path) -> None:
    """Pages that say how to use the project come before all decisions and notes."""
    window(browser, 1280, "light")
    browser.open((site / "index.html").as_uri())
    links = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
    found: list[str] = []
    late = set()
    for query, page in SEARCHES.items():
        browser.run("document.querySelector('.md-search__input').value = ''")
        browser.click(".md-search__input")
        browser.press(*query)
        changed = f"links.length && links.join() !== {','.join(found)!r} && links.join().includes({page!r})"
        found = browser.until(f"const links = {links}; return {changed} && links")
        pages = list(dict.fromkeys(link.partition("?")[0] for link in found))
        apart = ["/decisions/" in link or "/notes/" in link for link in pages]
        assert apart == sorted(apart) and not apart[0], (query, pages)
        late |= {query} if apart[-1] else set()
    assert {"recompute", "layout", "mixed precision", "strips"} <= late
    assert browser.messages() == []
