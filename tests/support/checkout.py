"""Where the tests find the files of the checkout."""

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
C = ROOT / "tests" / "c"
# Copies of the checkout have its bytecode, which is valid there: the files have the same times and sizes. The other
# worker may be writing some of it.
NOT_COPIED = shutil.ignore_patterns("*.pyc.*", "__jinja2_*", "_data", ".pio")
