"""Read a user's TOML file. Stdlib only."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..errors import AutodiffError


def read_toml(path: Path, kind: type[AutodiffError]) -> dict[str, Any]:
    """What a file holds; a mark of the byte order at its begin is left out, as editors of Windows write one. Raises an
    error of this kind for a file that cannot be read, or is no TOML."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        repr(data)  # as messages quote values: ValueError for a number that is too long to print
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise kind(f"{path}: byte {error.start + 1} is not UTF-8: save the file in this encoding") from None
    except RecursionError:
        raise kind(f"{path}: not valid TOML: brackets are nested too deeply") from None
    except ValueError as error:
        raise kind(f"{path}: not valid TOML: {error}") from None
    return data
