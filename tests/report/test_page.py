"""The page against the plan, without a browser: rectangles, steps, the generated C, and measurements."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from report_models import MODELS, compiled

from autodiff_gen.cli.main import main
from autodiff_gen.codegen.files import emit
from autodiff_gen.report.listing import listings
from autodiff_gen.report.page import Measured, page

VOID = ("meta",)
each = pytest.mark.parametrize("name", MODELS)


class Elements(HTMLParser):
    """The elements of a page with a class, in order, each with the entry around it and its text; fails where tags do
    not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.entry = ""
        self.found: list[tuple[str, str, dict[str, str]]] = []
        self.texts: dict[int, str] = {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        if given.get("class") == "entry":
            self.entry = given["id"]
        self.found.append((self.entry, tag, given))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((self.entry, tag, {k: v or "" for k, v in attrs}))

    def handle_data(self, data: str) -> None:
        for k in range(len(self.found) - 1, -1, -1):
            if self.found[k][2].get("class", "") in ("line", "file"):
                self.texts[k] = self.texts.get(k, "") + data
                break

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())

    def of(self, entry: str, word: str) -> list[dict[str, str]]:
        return [a for e, _, a in self.found if e == entry and word in a.get("class", "").split()]


def elements(name: str) -> Elements:
    program, report = compiled(name)
    return Elements(page(report, listings(program), Measured()))


@each
def test_each_tensor_is_a_rectangle_at_its_offset_for_its_life(name: str) -> None:
    found, (_, report) = elements(name), compiled(name)
    for entry in report.entries:
        base = {
            pool: sum(a.peak for a in list(entry.arenas.values())[:k]) for k, pool in enumerate(entry.arenas)
        }
        top = max((int(a["height"]) for a in found.of(entry.name, "peak")), default=0)
        drawn: dict[str, list[dict[str, str]]] = {}
        for a in found.of(entry.name, "buffer"):
            drawn.setdefault(a["data-key"].split("-")[0], []).append(a)
        assert sorted(map(int, drawn)) == list(range(len(entry.buffers)))
        for key, shapes in drawn.items():
            b = entry.buffers[int(key)]
            assert [a["data-name"] for a in shapes] == [t.name for t in b.tensors] or not b.tensors
            spans = [(int(a["x"]), int(a["x"]) + int(a["width"])) for a in shapes]
            assert spans[0][0] == b.first and spans[-1][1] == b.last + 1
            assert all(end == start for (_, end), (start, _) in pairwise(spans))
            for a in shapes:
                assert int(a["height"]) == b.size
                assert top - int(a["y"]) - b.size == base[b.pool] + b.offset


@each
def test_steps_and_lines_are_those_of_the_generated_c(name: str) -> None:
    found, (program, report) = elements(name), compiled(name)
    source = emit(program)[f"{program.name}.c"].splitlines()
    for entry in report.entries:
        steps = found.of(entry.name, "step")
        assert [a["data-step"] for a in steps] == [s.number for s in entry.steps]
        keys = {a["data-key"] for a in found.of(entry.name, "buffer")}
        assert all(set(a["data-reads"].split()) | set(a["data-writes"].split()) <= keys for a in steps)
        shown = [
            found.texts[k].split("\n")[0]
            for k, (e, *_) in enumerate(found.found)
            if e == entry.name and k in found.texts and found.found[k][2]["class"] == "line"
        ]
        code = listings(program)[entry.name]
        assert shown == [f"{line.number}{line.text}" for line in code]
        assert [source[line.number - 1] for line in code] == [line.text for line in code]
        lines = [a["data-step"] for a in found.of(entry.name, "line") if "data-step" in a]
        assert list(dict.fromkeys(lines)) == [s.number for s in entry.steps]


@each
def test_the_page_needs_nothing_else(name: str) -> None:
    program, report = compiled(name)
    text = page(report, listings(program), Measured())
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?:|<link|<iframe""", text)


def record(name: str) -> dict[str, object]:
    """As `bench` writes it."""
    _, report = compiled(name)
    numbers = {"cycles": 70, "macs": 0, "instructions_per_mac": None}
    rows = [
        {
            "entry": e.name,
            "step": s.number,
            "layer": s.layer,
            "phase": s.phase,
            "instructions": 1000 + k,
            **numbers,
        }
        | {"text": s.text.replace("\n", "; "), "kernels": []}
        for e in report.entries
        for k, s in enumerate(e.steps)
    ]
    layers = [{"entry": "train_step", "layer": "0", "phase": "forward", "instructions": 4321.5, **numbers}]
    head = {"model": report.name, "board": report.board_id, "batch": report.batch, "steps": 4}
    return head | {
        "graph_steps": rows,
        "layers": layers,
        "instructions_per_step": 98765,
        "cycles_per_step": None,
    }


@pytest.mark.parametrize(
    "change, reason",
    [
        ({}, ""),
        ({"board": "mps2_an386"}, "it is of board mps2_an386, not stm32"),
        ({"graph_steps": []}, "its steps are others"),
    ],
)
def test_a_record_of_bench(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: object, reason: str
) -> None:
    bench, out = tmp_path / "bench.json", tmp_path / "r.html"
    bench.write_text(json.dumps({**record("mnist"), **dict(change)}))  # type: ignore[call-overload]
    assert main(["report", "mnist", "--board", "stm32", "--bench", str(bench), "--out", str(out)]) == 0
    told, text = capsys.readouterr().out, out.read_text()
    assert (f"{bench} is left out: {reason}; run bench again" in told) == bool(reason)
    for number in ("98,765", "1,009 instructions, 70 cycles", "4,322"):
        assert (number in text) == (not reason)


def test_wrong_files_are_errors_of_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("[]")
    for option, said in (("--bench", "is no record of bench"), ("--elf", "not a little-endian ELF file")):
        assert main(["report", "xor", option, str(wrong), "--out", str(tmp_path / "r.html")]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"error: {wrong}: {said}") and error.count("\n") == 1
    assert not (tmp_path / "r.html").exists()
