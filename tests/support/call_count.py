"""Work measured in function calls: unlike seconds, the same on every machine and under every load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(function: Callable[[], Any]) -> int:
    """How many functions, of Python and of C, are called while `function` runs."""
    count = 0

    def tally(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def growth(work: Callable[[int], Callable[[], Any]], size: int) -> float:
    """Calls for twice the size over calls for the size: 2 where work is linear, 4 where it is quadratic. `work(n)`
    prepares the counted call; it runs once before, so that imports and caches do not count."""
    work(size)()
    return calls(work(2 * size)) / calls(work(size))
