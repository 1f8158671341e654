"""The keys of a board file with their types, and its JSON Schema for editors, with the texts of boards.md."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from intro import intro

from autodiff_gen.targets.schema import json_schema


def pages(root: Path) -> dict[str, str]:
    """The page reference/board-file.md, and the schema beside it."""
    schema = json_schema()
    meanings = _meanings((root / "docs" / "boards.md").read_text())
    rows = [(key, _type(part)) for key, part in _leaves(schema, "")]
    for key, part in _leaves(schema, ""):
        part["description"] = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", meanings.get(key, key)).replace("`", "")
    table = "\n".join(f"| `{key}` | {kind} |" for key, kind in rows)
    return {
        "reference/board-file.md": f"{intro('board-file')}\n| key | type |\n|---|---|\n{table}\n",
        "reference/board.schema.json": json.dumps(schema, indent=1) + "\n",
    }


def _leaves(part: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    """The dotted keys, `*` for any name, as `known_keys` has them."""
    if part.get("type") != "object":
        return [(path, part)]
    inside = dict(part["properties"])
    if isinstance(part["additionalProperties"], dict):
        inside["*"] = part["additionalProperties"]
    return [leaf for key, inner in inside.items() for leaf in _leaves(inner, f"{path}.{key}".lstrip("."))]


def _meanings(text: str) -> dict[str, str]:
    """The meaning of each key in the table of keys, which writes R and K for any name."""
    rows = re.findall(r"^\| (`.*?`) \| (.*?) \|", text, re.MULTILINE)
    written = {key: meaning for keys, meaning in rows for key in re.findall(r"`(.+?)`", keys)}
    return {re.sub(r"\.[RK](?=\.|$)", ".*", key): meaning for key, meaning in written.items()}


def _type(part: dict[str, Any]) -> str:
    match part:
        case {"anyOf": choices}:
            return " or ".join(map(_type, choices))
        case {"enum": known}:
            return " or ".join(f'`"{word}"`' for word in known)
        case {"type": "integer" | "number" as kind, "minimum": low, "maximum": high}:
            large = f"{high:#x}" if high > 0xFFFFFF else f"{high:,}"
            return f"{kind}, {low:,} to {large}" if low != high else f"{low}"
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}s"
        case {"type": kind}:
            return str(kind)
    return "anything"
