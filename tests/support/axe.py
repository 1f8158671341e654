"""The rules of axe-core for accessible pages, run in a page that a browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe_core_python
from browser import Browser

_AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
_RUN = """
    return axe.run({iframes: false, rules: arguments[0]}).then((r) => r.violations.map(
        (v) => [v.id, ...v.nodes.map((n) => n.html.slice(0, 120))]));"""
# What later versions of axe-core find too: headers without text, and links in text that only their colour shows.
_LATER = """
    const plain = (a) => !a.querySelector('img, svg') && getComputedStyle(a).textDecorationLine !== 'underline';
    return [...document.querySelectorAll('th:empty'), ...[...document.querySelectorAll(':is(p, li, td) > a[href]')]
        .filter((a) => a.closest('main article, main section') && plain(a))].map((e) => e.outerHTML.slice(0, 120));"""


def violations(browser: Browser, *, contrast: bool = True) -> list[Any]:
    """The rules that the page violates, with elements that do. `contrast`: check contrast too, which takes seconds."""
    browser.run(_AXE)
    rules = {"color-contrast": {"enabled": contrast}}
    return [*browser.run(_RUN, rules), *browser.run(_LATER)]
