"""The pictures of docs/understand, drawn from the compiler's results when the site is built."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import graphs
from charts import CHARTS, legend

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.device import frames
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.report.collect import collect
from autodiff_gen.report.data import AGAIN, SCRATCH, EntryRecord
from autodiff_gen.report.layered_graph import drawn
from autodiff_gen.report.svg import Picture
from autodiff_gen.targets import board

ROOT = Path(__file__).resolve().parents[2]
STEP, HEIGHT = 11.0, 220.0  # pixels of a step, and of the whole arena
PHASES = ("forward", "loss", "backward", "update")
LEGEND = {**{name: name for name in PHASES}, "again": "computed again", "scratch": "scratch of one step"}


def _kind(use: str) -> str:
    """The class of a rectangle: the first phase that the use names."""
    if use in (AGAIN, SCRATCH):
        return "again" if use == AGAIN else "scratch"
    return next((phase for phase in PHASES if use.startswith(phase)), "scratch")


def _arena(entry: EntryRecord, label: str, top: int | None = None) -> Picture:
    """Buffers at their offsets, from the step that writes them to the last that reads them."""
    picture = Picture(label)
    scale = HEIGHT / (top or entry.arena_bytes)
    left, floor = 62.0, HEIGHT + 8
    for b in entry.buffers:
        if b.pool == next(iter(entry.arenas)):
            x, w = left + STEP * b.first, STEP * (b.last - b.first + 1)
            name = f"{b.tensors[0].name} {b.tensors[0].type}" if b.tensors else "the steps inside"
            title = f"{name}: {b.bytes:,} bytes, steps {b.steps}"
            picture.box(x, floor - (b.offset + b.size) * scale, w, b.size * scale, _kind(b.use), title)
    end = left + STEP * len(entry.steps)
    picture.line(f"M{left} {floor}H{end}")
    peak = floor - entry.arena_bytes * scale
    picture.line(f"M{left} {peak:.1f}H{end}", "limit")
    picture.text(left - 4, peak + 4, f"{entry.arena_bytes:,}", "", "end")
    picture.text(left - 4, floor + 4, "0 bytes", "", "end")
    picture.text(left, floor + 18, "step 1")
    picture.text(end, floor + 18, f"{len(entry.steps)}", "", "end")
    return picture


def arena_of_lenet() -> str:
    """A training step of the example lenet."""
    b = board.load("mps2_an386")
    program = compile_file(load_file("lenet").made, "lenet", None, b, must_fit=False)
    return str(
        _arena(collect(program, b, b.ram_bytes).entries[0], "the arena of LeNet over the steps")
    ) + legend(LEGEND.items())


def arenas_of_a_budget() -> str:
    """The network with BatchNorm of docs/learn/memory.md, with the two budgets that the page names."""

    def entry(ram: int) -> EntryRecord:
        net = nn.Sequential(
            *(
                layer
                for c in (1, 8, 8)
                for layer in (nn.Conv2d(c, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
            ),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 10),
        )
        model = ag.Model.supervised(
            net, input=(1, 1, 28, 28), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01)
        )
        return collect(compile_model(model, "net", None, b, ram), b, ram).entries[0]

    b = board.load("stm32")
    free, fits = entry(200 << 10), entry(100 << 10)
    assert fits.arena_bytes < free.arena_bytes, "both budgets have one plan: choose a smaller second one"
    pictures = [
        f"<figure><figcaption>{title}</figcaption>{_arena(e, f'the arena {title}', free.arena_bytes)}</figure>"
        for title, e in (("with 200 KB", free), ("with 100 KB", fits))
    ]
    return '<div class="pair">' + "".join(pictures) + "</div>" + legend(LEGEND.items())


@cache
def _scores() -> tuple[str, str]:
    """The graph of a small function, and the body of its C."""
    x, b = ag.Input("x", (4, 8)), ag.Input("b", (8,))
    function = ag.function([x, b], {"scores": F.log_softmax(F.relu(x + b), dim=1)}, name="f")
    source = next(
        text for name, text in emit(compile_function(function, "f")).items() if name.endswith("f.c")
    )
    body = re.search(r"^    /\* 1 .*?^    return", source, re.DOTALL | re.MULTILINE)
    assert body is not None
    return str(function.graph), body[0].removesuffix("    return")


def graph_of_loops() -> str:
    """The function as a graph."""
    return str(drawn(graphs.boxes(_scores()[0]), "log_softmax(relu(x + b)) as a graph"))


def loops() -> str:
    """The function as C."""
    return f"```c\n{_scores()[1]}```"


def tiles() -> str:
    """How a product of 10 x 14 elements is covered by the tiles of Cortex-M4F."""
    text = (ROOT / "kernels" / "armv7em" / "schedule.h").read_text()
    tile_m, tile_n = (int(re.search(rf"AG_TILE_{d} = (\d+)", text)[1]) for d in "MN")
    m, n, k, cell = 10, 14, 9, 16.0
    picture = Picture(
        f"C of {m} x {n} elements in tiles of {tile_m} x {tile_n}; rows of A and columns of B of one tile"
    )
    left, top = k * cell + 34, k * cell + 34

    def at(position: int, size: int, extent: int) -> int:
        return min(position, extent - size)

    for i in range(m):
        for p in range(k):
            picture.box(
                p * cell, top + i * cell, cell, cell, "forward" if tile_m <= i < 2 * tile_m else "plain"
            )
    for p in range(k):
        for j in range(n):
            picture.box(
                left + j * cell, p * cell, cell, cell, "loss" if tile_n <= j < 2 * tile_n else "plain"
            )
    for i in range(m):
        for j in range(n):
            chosen = tile_m <= i < 2 * tile_m and tile_n <= j < 2 * tile_n
            picture.box(left + j * cell, top + i * cell, cell, cell, "backward" if chosen else "plain")
    for i in range(0, m, tile_m):
        for j in range(0, n, tile_n):
            y, x = at(i, tile_m, m), at(j, tile_n, n)
            edge = (y, x) != (i, j)
            picture.box(
                left + x * cell, top + y * cell, tile_n * cell, tile_m * cell, "edge" if edge else "tile"
            )
    picture.text(0, top - 6, f"A [{m},{k}]")
    picture.text(left, top - 6, f"C [{m},{n}] = A . B")
    picture.text(left - 6, 12, f"B [{k},{n}]", "", "end")
    return str(picture)


def frame() -> str:
    """The bytes of a HELLO: the fields of the frame, and the encoded bytes on the line."""
    hello = frames.Frame(frames.HELLO, 0, 0, 0x12345678, bytes([frames.VERSION, 0, 0, 0]))
    body = frames.HEADER.pack(hello.request, hello.status, hello.session, hello.sequence) + hello.payload
    body += struct.pack("<I", zlib.crc32(body))
    fields = [("request", 1), ("status", 1), ("session", 2), ("sequence", 4), ("payload", 4), ("CRC-32", 4)]
    kinds = ("forward", "loss", "backward", "update", "again", "scratch")
    cell, picture = 30.0, Picture("a HELLO as a frame, and encoded as on the line")
    of_byte = [kind for kind, (_, size) in zip(kinds, fields, strict=True) for _ in range(size)]
    at = 0
    for kind, (name, size) in zip(kinds, fields, strict=True):
        picture.text((at + size / 2) * cell, 12, name if size > 1 else name[:4] + ".", "minor", "middle")
        for k in range(at, at + size):
            picture.box(k * cell, 20, cell, 24, kind)
            picture.text((k + 0.5) * cell, 36, f"{body[k]:02x}", "", "middle")
        at += size
    picture.text(0, 66, "as sent: runs without 0, each after its length + 1; 0 ends the frame", "minor")
    sent: list[tuple[int, str]] = []
    for run in body.split(b"\0"):
        first = len(sent)  # as many bytes of the frame came before: a length replaces each 0
        sent += [(len(run) + 1, "plain"), *((byte, of_byte[first + k]) for k, byte in enumerate(run))]
    sent.append((0, "plain"))
    assert bytes(byte for byte, _ in sent) == hello.encode()
    for k, (byte, kind) in enumerate(sent):
        picture.box(k * cell, 74, cell, 24, kind)
        picture.text((k + 0.5) * cell, 90, f"{byte:02x}", "", "middle")
    return str(picture)


PICTURES: dict[str, Callable[[], str]] = {
    "arena-of-lenet": arena_of_lenet,
    "arenas-of-a-budget": arenas_of_a_budget,
    "graph-of-loops": graph_of_loops,
    "loops": loops,
    "tiles": tiles,
    "frame": frame,
    **CHARTS,
}


def placed(markdown: str) -> str:
    """The text with its pictures, which are comments there: <!-- picture: tiles -->."""
    return re.sub(r"<!-- picture: ([\w-]+) -->", lambda found: PICTURES[found[1]](), markdown)
