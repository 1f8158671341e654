"""Pages in headless Chromium, opened as files: both colour schemes, narrow and wide windows, keys, search."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from selenium.webdriver.common.by import By
from site_build import site as built_site

pytestmark = pytest.mark.browser

# One page of each kind: prose with code, tables, entries of Python, of C, of commands, pictures.
PAGES = (
    "index",
    "learn/memory",
    "understand/pictures",
    "decisions/0042-rematerialization",
    "reference/python/quant",
    "reference/operations/contraction",
    "reference/board-file",
)
WIDTHS = {"light": (1280, 360), "dark": (360, 1280)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_site(tmp_path_factory)


def window(driver: Any, width: int, scheme: str) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    features.append({"name": "prefers-reduced-motion", "value": "reduce"})  # nothing fades in
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def until(driver: Any, script: str) -> Any:
    """What the script returns, as soon as that is true."""
    end = time.monotonic() + 30
    while not (value := driver.execute_script(script)):
        assert time.monotonic() < end, script
        time.sleep(0.02)
    return value


LOADED = (
    "return performance.getEntriesByType('resource').map((r) => r.name).filter((n) => !n.startsWith('file:'))"
)
READY = "return document.readyState === 'complete' && document.body.dataset.mdColorScheme === '{}'"
SCHEMES = {"light": "default", "dark": "slate"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_accessible_and_no_wider_than_the_window(chromium: Any, site: Path, page: str) -> None:
    """Each scheme with each width; axe-core's rules in every scheme, at one width each."""
    for scheme, widths in WIDTHS.items():
        window(chromium, widths[0], scheme)
        chromium.get((site / f"{page}.html").as_uri())
        until(chromium, READY.format(SCHEMES[scheme]))
        for width in reversed(widths):
            window(chromium, width, scheme)
            assert chromium.execute_script("return document.documentElement.scrollWidth") == width
        assert violations(chromium) == []
        assert chromium.execute_script(LOADED) == []
        assert chromium.get_log("browser") == []


def test_the_search_finds_a_name_without_a_server(chromium: Any, site: Path) -> None:
    window(chromium, 1280, "light")
    chromium.get((site / "index.html").as_uri())
    field = chromium.find_element(By.CSS_SELECTOR, ".md-search__input")
    field.click()
    field.send_keys("clip_grad_norm")
    until(chromium, "return document.querySelector('.md-search-result__link')")
    found = [e.get_attribute("href") for e in chromium.find_elements(By.CLASS_NAME, "md-search-result__link")]
    assert any("reference/python/optim.html" in link for link in found)
    assert chromium.get_log("browser") == []
