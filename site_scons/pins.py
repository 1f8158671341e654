"""Say which requirement files name other versions than the installed ones: `python pins.py FOLDER NAME...`.

For each such file of FOLDER a line: its name, and the first package that differs. A version with a local part, such as
2.13.0+cpu, is that version. Standard library only.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PIN = re.compile(r"([\w.-]+)==([^\s;\\]+)", re.ASCII)


def pins(text: str) -> dict[str, str]:
    """The version of each package that a requirement file pins."""
    return dict(m.groups() for m in map(PIN.match, text.splitlines()) if m)


def difference(package: str, wanted: str) -> str | None:
    """What differs, or None."""
    try:
        found = version(package)
    except PackageNotFoundError:
        return f"{package} is not installed"
    return None if found.partition("+")[0] == wanted else f"{package} {found} is installed, not {wanted}"


def main(folder: str, *names: str) -> None:
    for name in names:
        pinned = pins(Path(folder, f"{name}.txt").read_text())
        found = next(filter(None, (difference(*pin) for pin in pinned.items())), None)
        if found is not None:
            print(name, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
