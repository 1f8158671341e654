"""The inputs of a step on their way to a board: checked arrays, and the requests that write them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkLayout
from ..codegen.program import Program
from ..errors import ShapeError, listed
from ..host.arguments import Batch, checked
from . import frames
from .encoding import raw_pieces, shortest
from .link import Request, write_request

Array = NDArray[Any]
FILE = "inputs.bin"  # in the emulator's folder: all inputs of a step, as the board stores them


def position(program: Program, name: str) -> int:
    """The position of an input in the model's order (the C functions take arrays before scalars)."""
    entry = next(e for e in program.entries if e.name == "train_step")
    return [v.name for v in entry.plan.graph.inputs].index(name)


def batch_of(
    program: Program, layout: LinkLayout, arrays: Sequence[Any], targets: bool
) -> tuple[dict[str, Array], int]:
    """Arrays in the model's order as arrays by name, and how many rows they have. Raises ShapeError."""
    inputs = [a for a in layout.inputs if targets or not a.is_target]
    inputs.sort(key=lambda a: position(program, a.name))
    if len(arrays) != len(inputs):
        expected = listed(f"{a.name}: {a.type!r}" for a in inputs)
        raise ShapeError(f"expected {len(inputs)} arrays ({expected}), got {len(arrays)}")
    batch = Batch(program.batch)
    by_name = {a.name: checked(a.arg, value, batch) for a, value in zip(inputs, arrays, strict=True)}
    return by_name, batch.rows


def writes(
    layout: LinkLayout,
    arrays: Mapping[str, Array],
    targets: bool,
    room: int,
    scales: Mapping[str, float],
    folder: Path | None,
) -> tuple[list[Request], int]:
    """The requests that write all inputs, with at most `room` bytes of data each, and the CRC-32 of their bytes as the
    board stores them. `scales`: of inputs whose floats are integers times this number; `folder`: where an emulator
    reads the inputs from a file."""
    crc, requests = 0, []
    image = bytearray(layout.input_bytes)
    for a in layout.inputs:
        if a.is_target and not targets:
            continue
        raw = arrays[a.name].tobytes()
        crc = zlib.crc32(raw, crc)
        image[a.offset : a.offset + len(raw)] = raw
        if folder is not None:
            continue
        pieces = raw_pieces(raw, room)
        if a.type.dtype.name == "f32":
            pieces = shortest(arrays[a.name], room, scales.get(a.name))
        requests += [
            write_request(frames.INPUT, encoding, a.offset + at, data) for encoding, at, data in pieces
        ]
    if folder is not None:
        (folder / FILE).write_bytes(image)
        requests = [(frames.FETCH, struct.pack("<I", len(image)))]
    return requests, crc
