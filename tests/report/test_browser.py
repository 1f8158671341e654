"""The page in Chromium: clicks, keys, links, both colour schemes, narrow and wide windows, paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from browser import Browser
from report_models import compiled

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


Show = Callable[..., Browser]


@pytest.fixture
def show(browser: Browser, address: str) -> Iterator[Show]:
    """Open the page in a window of a size and scheme. At the end: no message in the console, and nothing was loaded."""

    def opened(width: int = 1280, scheme: str = "light", step: str = "", media: str = "") -> Browser:
        browser.window(width, media=media, prefers_color_scheme=scheme)
        browser.open(address + (f"#{step}" if step else ""))
        return browser

    yield opened
    assert browser.messages() == []
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def chosen(browser: Browser, entry: str = "train_step") -> dict[str, Any]:
    """Highlighted: the step, the steps of lines of C, and the keys of the buffers that are read and written."""
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
    return dict(browser.run(script, entry))


def check(browser: Browser, number: str) -> dict[str, Any]:
    """That the step, its C and its buffers are highlighted."""
    _, report = compiled(NAME)
    found = chosen(browser)
    step = next(s for s in report.entries[0].steps if s.number == number)
    assert (found["steps"], found["lines"], found["seen"]) == ([number], [number], True)
    for how, operands in (("reads", step.reads), ("writes", step.writes)):
        keys = {f"{o.buffer}-{o.tensor}" for o in operands if o.buffer is not None}
        assert set(found[how]) == keys
    return found


@pytest.mark.parametrize("width", [1280, 360])
def test_a_click_on_a_step_a_line_or_a_buffer_selects_the_step(show: Show, width: int) -> None:
    browser = show(width)
    assert chosen(browser)["steps"] == []
    for number in ("7", "2.3"):
        browser.click(f'[id="train_step-{number}"]')
        check(browser, number)
    browser.click('#train_step .line[data-step="11"] i')
    check(browser, "11")
    browser.click('#train_step .buffer[data-name="gru_h_before"]')
    found = check(browser, "2")
    assert (
        "gru_h_before" in found["detail"]
        and "f32[n,32,20]" in found["detail"]
        and "10,240" in found["detail"]
    )


def test_all_of_it_works_by_keys(show: Show) -> None:
    browser = show()
    browser.press("Tab", "ArrowRight")
    assert browser.shown("#predict")
    assert not browser.shown("#train_step")
    browser.press("Home", "Tab", "Tab")  # past the link to the peak
    first = chosen(browser)
    seen = {first["focus"]}
    assert "bytes" in first["detail"]
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        browser.press(key)
        seen.add(chosen(browser)["focus"])
    assert len(seen) >= 3
    browser.press("Enter")
    focus = browser.run("return {...document.activeElement.dataset}")
    assert focus["name"] in check(browser, focus["step"])["detail"]
    browser.press("Tab", "Tab", "Home")  # past the layers
    check(browser, "1")
    browser.press("ArrowDown", "ArrowDown")
    assert check(browser, "2.1")["focus"] == "train_step-2.1"
    browser.press("End")
    check(browser, compiled(NAME)[1].entries[0].steps[-1].number)


PICKED = """
    const entry = document.getElementById('train_step'), all = (s) => [...entry.querySelectorAll(s)];
    return {
        pressed: all('.layer-of-net[aria-pressed="true"]').map((n) => n.dataset.layers),
        buffers: [...new Set(all('.buffer.of-layer').map((b) => b.dataset.layer))],
        count: all('.buffer.of-layer').length,
        band: [...new Set(all('.band .layer.chosen').map((b) => b.dataset.layer))],
        steps: all('.step[aria-selected="true"]').length,
        focus: document.activeElement.dataset.layers,
    };"""


@pytest.mark.parametrize("width", [1280, 360])
def test_a_layer_of_the_network_is_highlighted_in_the_arena(show: Show, width: int) -> None:
    _, report = compiled(NAME)
    own = [t for b in report.entries[0].buffers for t in b.tensors if t.layer == "head"]
    browser = show(width)
    browser.click('#train_step .layer-of-net[data-layers="head"]')
    found = dict(browser.run(PICKED))
    assert (found["pressed"], found["buffers"], found["band"], found["steps"]) == (
        ["head"],
        ["head"],
        ["head"],
        0,
    )
    assert found["count"] == len(own) > 0
    browser.press("ArrowUp", "Enter")
    found = dict(browser.run(PICKED))
    assert (found["pressed"], found["buffers"], found["focus"]) == (["gru"], ["gru"], "gru")
    browser.press("Enter")
    assert dict(browser.run(PICKED))["count"] == 0
    browser.click('[id="train_step-3"]')
    found = dict(browser.run(PICKED))
    assert (found["pressed"], found["count"], found["steps"]) == (["head"], 0, 1)


def test_an_address_selects_a_step(show: Show) -> None:
    check(show(step="train_step-8.3"), "8.3")
    browser = show(step="predict-1")
    assert browser.shown("#predict")
    assert chosen(browser, "predict")["steps"] == ["1"]


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
    const texts = ['h1', 'header p', '.measurement h2', '.what', '.by .why', '.number', '.line .comment', '.line .call',
        '.line .keyword', '.line i', '.band span', 'td', 'th', 'a', '.note', '.detail em'];
    return texts.map((s) => [s, Math.min(...[...document.querySelectorAll(s)].map(ratio))]);
"""


# Texts of the cards that are wider than their cards.
WIDER = """
    return [...document.querySelectorAll('.measurement *')]
        .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent);"""

# Labels of the bounds of the map that is shown, each as left, top, right, bottom.
LABELS = """
    return [...document.querySelectorAll('.entry:not([hidden]) .bound span')].map((e) => e.getBoundingClientRect())
        .map((b) => [b.left, b.top, b.right, b.bottom]);"""


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("light", 360), ("dark", 1280), ("dark", 360)])
def test_it_is_readable_in_both_schemes_and_no_wider_than_the_window(
    show: Show, scheme: str, width: int
) -> None:
    """Contrast as WCAG 2.2 defines it: 4.5 at least for text."""
    browser = show(width, scheme)
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert [(s, r) for s, r in browser.run(LUMINANCE) if r < 4.5] == []
    assert browser.run(WIDER) == []
    first, second = browser.run(LABELS)  # of bounds that are equal
    assert first[3] <= second[1] or second[3] <= first[1]
    if (scheme, width) == ("dark", 1280):
        assert violations(browser, contrast=False) == []
    page = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (page == "rgb(255, 255, 255)") == (scheme == "light")


def test_on_paper_all_functions_are_shown_whole(show: Show) -> None:
    browser = show(media="print", scheme="dark")
    assert browser.shown(".entry")
    hidden = "return [...document.querySelectorAll('.steps, .code')].some((e) => e.scrollHeight > e.clientHeight + 1)"
    assert not browser.run(hidden)
    assert browser.run("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    pdf = browser.pdf()
    assert pdf.startswith(b"%PDF") and pdf.count(b"/Type /Page\n") >= 3
