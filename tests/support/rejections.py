"""Calls that are errors of one line, a table of them in one test: each row is a subtest, so all are tried and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from autodiff_gen.errors import AutodiffError


def all_rejected(
    subtests: pytest.Subtests,
    rows: Iterable[tuple[Callable[[], Any], str]],
    errors: type[AutodiffError] | tuple[type[AutodiffError], ...] = AutodiffError,
) -> None:
    """Each call raises one of `errors` in one line, in which its regular expression is found."""
    for call, message in rows:
        with subtests.test(message):
            with pytest.raises(errors, match=message) as caught:
                call()
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value, AutodiffError)
