"""The page in headless Chromium: clicks, keys, links, both colour schemes, narrow and wide windows, paper."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from report_models import compiled
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from autodiff_gen.report.listing import listings
from autodiff_gen.report.page import Measured, page

pytestmark = pytest.mark.browser
NAME = "gesture"  # its steps 2 and 8 have steps inside


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    program, report = compiled(NAME)
    path: Path = tmp_path_factory.mktemp("a page") / "report.html"
    path.write_text(page(report, listings(program), Measured()))
    return path.as_uri()


@pytest.fixture
def show(chromium: Any, address: str) -> Iterator[Any]:
    """Open the page in a window of a size and scheme. At the end: no message in the console, and nothing was loaded."""

    def opened(width: int = 1280, scheme: str = "light", step: str = "", media: str = "") -> Any:
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features, "media": media})
        chromium.get("about:blank")
        chromium.get(address + (f"#{step}" if step else ""))
        return chromium

    yield opened
    assert chromium.get_log("browser") == []
    assert chromium.execute_script("return performance.getEntriesByType('resource').length") == 0


def chosen(driver: Any, entry: str = "train_step") -> dict[str, Any]:
    """What is highlighted: the step, the steps of lines of C, and the keys of the buffers that are read and written."""
    script = """
        const entry = document.getElementById(arguments[0]), all = (s) => [...entry.querySelectorAll(s)];
        const code = entry.querySelector('.code').getBoundingClientRect();
        const first = entry.querySelector('.line.chosen')?.getBoundingClientRect();
        return {
            steps: all('.step[aria-selected="true"]').map((s) => s.dataset.step),
            lines: [...new Set(all('.line.chosen').map((l) => l.dataset.step))],
            seen: Boolean(first) && first.top >= code.top && first.bottom <= code.bottom,
            reads: all('.buffer.reads').map((b) => b.dataset.key).sort(),
            writes: all('.buffer.writes').map((b) => b.dataset.key).sort(),
            detail: entry.querySelector('.detail').textContent,
            focus: document.activeElement.dataset.key || document.activeElement.id,
        };"""
    return dict(driver.execute_script(script, entry))


def check(driver: Any, number: str) -> dict[str, Any]:
    """That the step, its C and its buffers are highlighted."""
    _, report = compiled(NAME)
    found = chosen(driver)
    step = next(s for s in report.entries[0].steps if s.number == number)
    assert (found["steps"], found["lines"], found["seen"]) == ([number], [number], True)
    for how, operands in (("reads", step.reads), ("writes", step.writes)):
        keys = {f"{o.buffer}-{o.tensor}" for o in operands if o.buffer is not None}
        assert set(found[how]) == keys
    return found


@pytest.mark.parametrize("width", [1280, 360])
def test_a_click_on_a_step_a_line_or_a_buffer_selects_the_step(show: Any, width: int) -> None:
    driver = show(width)
    assert chosen(driver)["steps"] == []
    for number in ("7", "2.3"):
        step = driver.find_element(By.ID, f"train_step-{number}")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", step)
        step.click()
        check(driver, number)
    line = driver.find_element(By.CSS_SELECTOR, '#train_step .line[data-step="11"]')
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", line)
    line.find_element(By.TAG_NAME, "i").click()
    check(driver, "11")
    buffer = driver.find_element(By.CSS_SELECTOR, '#train_step .buffer[data-name="gru_out"]')
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", buffer)
    buffer.click()
    found = check(driver, "2")
    assert "gru_out" in found["detail"] and "f32[n,32,20]" in found["detail"] and "10,240" in found["detail"]


def test_all_of_it_works_by_keys(show: Any) -> None:
    driver = show()
    keys = ActionChains(driver)
    keys.send_keys(Keys.TAB, Keys.ARROW_RIGHT).perform()
    assert driver.find_element(By.ID, "predict").is_displayed()
    assert not driver.find_element(By.ID, "train_step").is_displayed()
    ActionChains(driver).send_keys(Keys.HOME, Keys.TAB, Keys.TAB).perform()  # past the link to the peak
    first = chosen(driver)
    seen = {first["focus"]}
    assert "bytes" in first["detail"]
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ARROW_LEFT, Keys.ARROW_DOWN):
        ActionChains(driver).send_keys(key).perform()
        seen.add(chosen(driver)["focus"])
    assert len(seen) >= 3
    ActionChains(driver).send_keys(Keys.ENTER).perform()
    focus = driver.execute_script("return {...document.activeElement.dataset}")
    assert focus["name"] in check(driver, focus["step"])["detail"]
    ActionChains(driver).send_keys(Keys.TAB).perform()
    ActionChains(driver).send_keys(Keys.HOME).perform()
    check(driver, "1")
    ActionChains(driver).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN).perform()
    assert check(driver, "2.1")["focus"] == "train_step-2.1"
    ActionChains(driver).send_keys(Keys.END).perform()
    check(driver, compiled(NAME)[1].entries[0].steps[-1].number)


def test_an_address_selects_a_step(show: Any) -> None:
    check(show(step="train_step-8.3"), "8.3")
    driver = show(step="predict-1")
    assert driver.find_element(By.ID, "predict").is_displayed()
    assert chosen(driver, "predict")["steps"] == ["1"]


LUMINANCE = """
    const channels = (c) => c.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = (c) => channels(c).reduce((s, v, k) => s + v * [0.2126, 0.7152, 0.0722][k], 0);
    const backdrop = (e) => {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (c !== 'rgba(0, 0, 0, 0)' && !c.includes('color')) return c;
        }
        return 'rgb(255, 255, 255)';
    };
    const ratio = (e) => {
        const both = [light(getComputedStyle(e).color), light(backdrop(e))];
        return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
    };
    const texts = ['h1', 'header p', '.figure h2', '.what', '.by .why', '.number', '.line .comment', '.line .call',
        '.line .keyword', '.line i', '.band span', 'td', 'th', 'a', '.note', '.detail em'];
    return texts.map((s) => [s, Math.min(...[...document.querySelectorAll(s)].map(ratio))]);
"""


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("light", 360), ("dark", 1280), ("dark", 360)])
def test_it_is_readable_in_both_schemes_and_no_wider_than_the_window(
    show: Any, scheme: str, width: int
) -> None:
    """Contrast as WCAG 2.2 defines it: 4.5 at least for text."""
    driver = show(width, scheme)
    assert driver.execute_script("return document.documentElement.scrollWidth") == width
    assert [(s, r) for s, r in driver.execute_script(LUMINANCE) if r < 4.5] == []
    if (scheme, width) == ("dark", 1280):
        assert violations(driver, contrast=False) == []
    page = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (page == "rgb(255, 255, 255)") == (scheme == "light")


def test_on_paper_all_functions_are_shown_whole(show: Any) -> None:
    driver = show(media="print", scheme="dark")
    assert all(e.is_displayed() for e in driver.find_elements(By.CLASS_NAME, "entry"))
    hidden = "return [...document.querySelectorAll('.steps, .code')].some((e) => e.scrollHeight > e.clientHeight + 1)"
    assert not driver.execute_script(hidden)
    assert driver.execute_script("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    pdf = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") >= 3
