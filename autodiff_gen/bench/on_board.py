"""The benchmark on the board itself: its program counts cycles between the marks, and prints them again and again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..device.transport import open_port
from ..errors import ToolError
from ..targets.board import Board

TIMEOUT = 60.0  # seconds without a whole list


def listen(port: str) -> list[str]:
    """The lines of one list, from `begin` to `done`. Raises ToolError, LinkError."""
    line = open_port(port, wait=5.0)
    received = b""
    limit = time.monotonic() + TIMEOUT
    try:
        while time.monotonic() < limit:
            received += line.read(1.0)
            _, begun, rest = received.partition(b"begin\n")
            body, done, _ = rest.replace(b"\r", b"").partition(b"done\n")
            if begun and done:
                return body.decode("ascii", "replace").splitlines()
            received = received.replace(b"\r", b"")
    finally:
        line.close()
    raise ToolError(
        f"port {port}: no cycles within {TIMEOUT:.0f} seconds; does the benchmark run on the board? (bench upload)"
    )


def measured(board: Board, kernels: Sequence[str], marks: Path, lines: Sequence[str]) -> dict[str, Any]:
    """The record, format 1: cycles of each mark, for one call. Raises ToolError on a list of other marks."""
    told = json.loads(marks.read_text())
    words = [line.split() for line in lines]
    cycles = {int(w[1]): int(w[2] + w[3], 16) for w in words if w[:1] == ["cycles"] and len(w) == 4}
    if sorted(cycles) != [m["id"] for m in told["marks"]]:
        raise ToolError(
            f"the board runs another benchmark: it tells of {len(cycles)} marks, {marks.name} of {len(told['marks'])}"
        )
    rows = [
        {
            **{k: m[k] for k in ("entry", "step", "layer", "phase", "text", "kernels", "macs")},
            "cycles": round(cycles[m["id"]] / told["steps"]),
        }
        for m in told["marks"]
    ]
    return {
        "schema": 1,
        "model": told["model"],
        "board": board.id,
        "core": board.target.core,
        "kernels": list(kernels),
        "batch": told["batch"],
        "steps": told["steps"],
        "graph_steps": rows,
        "stack": next((int(w[1]) for w in words if w[:1] == ["stack"]), None),
        "losses": [float(w[1]) for w in words if w[:1] == ["loss"]],
    }
