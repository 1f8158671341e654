"""The benchmark on a board: its program counts cycles between the probes and prints the list repeatedly."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..device.transport import open_port
from ..errors import ToolError
from ..targets.board import BoardSpec

TIMEOUT = 60.0  # seconds without a complete list


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


def measured(board: BoardSpec, kernels: Sequence[str], probes: Path, lines: Sequence[str]) -> dict[str, Any]:
    """The record, schema 1: cycles of each probe, for one call. Raises ToolError when the ids differ from `probes`, the
    JSON list."""
    listed = json.loads(probes.read_text())
    words = [line.split() for line in lines]
    try:
        cycles = {int(w[1]): int(w[2] + w[3], 16) for w in words if w[:1] == ["cycles"] and len(w) == 4}
        stack = next((int(w[1]) for w in words if w[:1] == ["stack"]), None)
        losses = [float(w[1]) for w in words if w[:1] == ["loss"]]
    except (ValueError, IndexError):
        raise ToolError("the board's list of cycles has a damaged line; run the command again") from None
    if sorted(cycles) != [p["id"] for p in listed["probes"]]:
        raise ToolError(
            f"the board runs another benchmark: it lists {len(cycles)} probes, {probes.name} of {len(listed['probes'])}"
        )
    rows = [
        {
            **{k: p[k] for k in ("entry", "step", "layer", "phase", "text", "kernels", "macs")},
            "cycles": round(cycles[p["id"]] / listed["steps"]),
        }
        for p in listed["probes"]
    ]
    return {
        "schema": 1,
        "model": listed["model"],
        "board": board.id,
        "core": board.target.core,
        "kernels": list(kernels),
        "batch": listed["batch"],
        "steps": listed["steps"],
        "graph_steps": rows,
        "stack": stack,
        "losses": losses,
    }
