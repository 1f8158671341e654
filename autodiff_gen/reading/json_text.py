"""Read JSON that comes from others."""

from __future__ import annotations

import json
from typing import Any

from ..errors import AutodiffError, quoted


def parse(data: bytes, name: str, error_type: type[AutodiffError], unique: bool = True) -> Any:
    """The value of a JSON text. Raises an error of this kind for a text that is not JSON, nests too deeply, or, with
    `unique`, has a key twice in one object; `unique` doubles the time."""
    try:
        return json.loads(data, object_pairs_hook=_unique if unique else None)
    except RecursionError:
        raise error_type(f"{name}: its JSON nests too deeply; save the file again") from None
    except _Twice as error:
        raise error_type(
            f"{name}: its JSON has the key {quoted(str(error))} twice; save the file again"
        ) from None
    except ValueError:
        raise error_type(f"{name}: its JSON is damaged; save the file again") from None


class _Twice(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
    return found
