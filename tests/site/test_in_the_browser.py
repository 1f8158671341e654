"""Pages in Chromium, opened as files: both colour schemes, narrow and wide windows, keys, search."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe import violations
from browser import Browser
from site_build import site as built_site

pytestmark = pytest.mark.browser

# One page of each kind: prose with code, tables, entries of Python, of C, of commands, pictures.
PAGES = (
    "index",
    "learn/memory",
    "understand/pictures",
    "decisions/0042-rematerialization",
    "reference/python/quant",
    "reference/operations/products.contraction",
    "reference/board-file",
)
WIDTHS = {"light": (1280, 360), "dark": (360, 1280)}


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
        assert violations(browser) == []
        assert browser.run(LOADED) == []
        assert browser.messages() == []


def test_the_search_finds_a_name_without_a_server(browser: Browser, site: Path) -> None:
    window(browser, 1280, "light")
    browser.open((site / "index.html").as_uri())
    browser.click(".md-search__input")
    browser.press(*"clip_grad_norm")
    links = "[...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"
    found = browser.until(f"const links = {links}; return links.length && links")
    assert any("reference/python/optim.html" in link for link in found)
    assert browser.messages() == []
