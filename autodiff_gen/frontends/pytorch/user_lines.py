"""The user's lines of a traceback: how to tell them, and how to record all of them in an export."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OWN, PYTHON = Path(__file__).resolve().parents[2], sysconfig.get_paths()["stdlib"]


def is_users(filename: str) -> bool:
    """Whether a file is neither of PyTorch, nor of this package, nor of Python itself."""
    file = Path(filename)
    if "-packages/torch/" in file.as_posix() or file.is_relative_to(OWN) or filename.startswith("<"):
        return False
    return not file.is_relative_to(PYTHON) or any(part.endswith("-packages") for part in file.parts)


@contextmanager
def all_lines(torch: Any) -> Iterator[None]:
    """Record the lines of all functions that `forward` calls: PyTorch records only lines of functions named `forward`.
    PyTorch versions without this method name the line of `forward`."""
    tracer, method = torch.fx.proxy.TracerBase, "_filter_traceback_frames"
    original = getattr(tracer, method, None)

    def filtered(recording: Any, frames: Any) -> traceback.StackSummary:
        kept = set(map(id, original(recording, frames)))  # type: ignore[misc]
        begin = next((k for k, frame in enumerate(frames) if frame.name == "forward"), len(frames))
        inner = {id(frame) for frame in frames[begin:] if is_users(frame.filename)}
        return traceback.StackSummary.from_list([f for f in frames if id(f) in kept | inner])

    if original is not None:
        setattr(tracer, method, filtered)
    try:
        yield
    finally:
        if original is not None:
            setattr(tracer, method, original)
