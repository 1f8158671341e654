"""The rules of axe-core for accessible pages, run in a page that a browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axe_core_python

_AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
_RUN = """
    const done = arguments[1];
    axe.run({iframes: false, rules: arguments[0]}).then((r) => done(r.violations.map(
        (v) => [v.id, ...v.nodes.map((n) => n.html.slice(0, 120))])));"""
# What later versions of axe-core find too: headers without text, and links in text that only their colour shows.
_LATER = """
    const plain = (a) => !a.querySelector('img, svg') && getComputedStyle(a).textDecorationLine !== 'underline';
    return [...document.querySelectorAll('th:empty'), ...[...document.querySelectorAll(':is(p, li, td) > a[href]')]
        .filter((a) => a.closest('main article, main section') && plain(a))].map((e) => e.outerHTML.slice(0, 120));"""


def violations(driver: Any, *, contrast: bool = True) -> list[Any]:
    """The rules that the page violates, with elements that do. `contrast`: that of text too, which takes seconds."""
    driver.execute_script(_AXE)
    rules = {"color-contrast": {"enabled": contrast}}
    return [*driver.execute_async_script(_RUN, rules), *driver.execute_script(_LATER)]
