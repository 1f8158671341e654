"""Where the tests find the files of the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
C = ROOT / "tests" / "c"
