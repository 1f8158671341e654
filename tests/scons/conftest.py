"""The checkout of the tests of `./scons`, the shell script."""

from __future__ import annotations

from pathlib import Path

import pytest
from wrapper_checkout import Checkout, make_checkout


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Checkout:
    return make_checkout(tmp_path, root, "checkout")
