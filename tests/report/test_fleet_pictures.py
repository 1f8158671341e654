"""The report's pictures of a fleet: curves, a lane for each of few boards, shares of many."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from report_models import compiled

from autodiff_gen.cli.main import main
from autodiff_gen.errors import DataError
from autodiff_gen.report.fleet_pictures import HEIGHT, LANES, WIDTH, fleet_pictures, read_fleet
from autodiff_gen.report.listing import listings
from autodiff_gen.report.page import Measured, page


def row(number: int, visits: list[list[Any]], **other: Any) -> dict[str, Any]:
    known = {
        "round": number,
        "virtual": True,
        "begin": 4.0 * number,
        "seconds": 4.0,
        "boards": 2,
        "failed": 1,
    }
    return {**known, "samples": 9, "loss": 1 / number, "accuracy": None, "visits": visits, **other}


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    (folder / "timeline.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    return folder


FEW = [
    row(1, [[0, "a", "answered", 0, 1, 2, 1], [1, "b", "vanished", 1, 0, 0, 0]], accuracy=0.25),
    row(2, [[0, "a", "answered", 0, 1, 1, 0], [1, "b", "late", 4, 0, 0, 0]], accuracy=0.75),
]


def test_few_boards_have_a_lane_each(tmp_path: Path) -> None:
    found = fleet_pictures(read_fleet(written(tmp_path, FEW)))
    assert [name for name, _ in found.lanes] == ["0 a", "1 b"] and found.seconds == 8.0
    assert found.begins == [0.0, WIDTH / 2]
    places = [(b.x, b.width, b.kind) for b in found.lanes[0][1]]
    second = WIDTH / 8
    assert places == [
        (0.0, second, "forward"),
        (second, 2 * second, "backward"),
        (3 * second, second, "update"),
        (4 * second, second, "forward"),
        (5 * second, second, "backward"),
    ]
    assert [(b.kind, b.text) for b in found.lanes[1][1]] == [
        ("scratch missing", "round 1, board 1: delay 1 s of 1 s, vanished"),
        ("scratch missing", "round 2, board 1: delay 4 s of 4 s, late"),
    ]
    loss, accuracy = found.curves
    assert (loss.low, loss.high, accuracy.low, accuracy.high) == ("0.5", "1", "25.00%", "75.00%")
    assert loss.lines[0][1] == f"0.0,0.0 {WIDTH}.0,{HEIGHT}.0"
    assert accuracy.lines[0][1] == f"0.0,{HEIGHT}.0 {WIDTH}.0,0.0"


def test_of_many_boards_shares_are_drawn(tmp_path: Path) -> None:
    many = [[k, "a", "answered", 0, 0, k + 1, 0] for k in range(LANES * 3 + 4)]
    found = fleet_pictures(read_fleet(written(tmp_path, [row(1, many), row(2, many)])))
    assert found.lanes == []
    shares = found.curves[-1]
    heights = [float(points.split()[0].split(",")[1]) for _, points in shares.lines]
    assert [name for name, _ in shares.lines] == ["10 %", "50 %", "90 %", "100 %"]
    assert heights == [0.9 * HEIGHT, 0.5 * HEIGHT, pytest.approx(0.1 * HEIGHT), 0.0]


def test_rounds_without_visits_or_numbers_are_drawn_too(tmp_path: Path) -> None:
    rows = [row(k, [], loss=None, seconds=0.0, begin=0.0) for k in (1, 2)]
    found = fleet_pictures(read_fleet(written(tmp_path, rows)))
    assert (found.lanes, found.curves, len(found.rows)) == ([], [], 2)


def test_the_page_has_the_rounds(tmp_path: Path) -> None:
    program, report = compiled("mnist")
    text = page(report, listings(program), Measured(fleet=read_fleet(written(tmp_path, FEW))))
    assert text.count("<title>round ") == 7 + 4 and "The fleet: 2 rounds" in text
    assert re.search(
        r'<td class="right">1</td>(<td class="right">[^<]*</td>){7}<td class="right">25.00 %</td>', text
    )
    assert "The fleet" not in page(report, listings(program), Measured())


NO_ROUND = {
    "no row": "{}",
    "no JSON": "no",
    "a number": "3",
    "an array": "[]",
    "nothing": "",
    "deep": "[" * 100_000,
    "a key twice": json.dumps(row(2, []))[:-1] + ', "round": 3}',
    "a key less": '{"visits": [[1]]}',
    "a key more": json.dumps(row(2, [], more=1)),
    "an integer of 5,000 digits": json.dumps(row(2, [])).replace("8.0", "1" * 5000),
    **{
        f"{name} = {json.dumps(value)}": json.dumps({**row(2, []), name: value})
        for name, value in (
            ("loss", "low"),
            ("loss", True),
            ("loss", math.inf),
            ("accuracy", 2.0),
            ("accuracy", [0.5]),
            ("begin", math.nan),
            ("begin", -1.0),
            ("seconds", 10**400),
            ("seconds", None),
            ("virtual", 1),
            ("round", 1),
            ("round", 0),
            ("round", 2.0),
            ("boards", "2"),
            ("failed", -1),
            ("samples", None),
            ("visits", None),
            ("visits", [3]),
        )
    },
    **{
        f"the visit {visit}": json.dumps(row(2, [[0, "a", "answered", 0, 0, 0, 0], visit]))
        for visit in (
            ["1", "a", "answered", 0, 0, 0, 0],
            [1, 1, "answered", 0, 0, 0, 0],
            [1, "a", [], 0, 0, 0, 0],
            [1, "a", "gone", 0, 0, 0, 0],
            [1, "a", "late", 0, "0", 0, 0],
            [1, "a", "late", 0, 10**400, 0, 0],
            [1, "a", "late", 0, 0, 0],
        )
    },
}


@pytest.mark.parametrize("case", NO_ROUND)
def test_a_line_that_is_no_round(case: str, tmp_path: Path) -> None:
    file = tmp_path / "timeline.jsonl"
    file.write_text(f"{json.dumps(FEW[0])}\n{NO_ROUND[case]}\n{json.dumps(row(9, []))}\n")
    with pytest.raises(DataError, match=r"timeline\.jsonl: line 2 is no round of autodiff-gen fleet, or not"):
        read_fleet(tmp_path)


def test_a_line_that_is_cut_is_left_out(tmp_path: Path) -> None:
    file, whole = tmp_path / "timeline.jsonl", json.dumps(FEW[0])
    for text in (whole, f"{whole}\n", f'{whole}\n{{"round": 2, "be'):
        file.write_text(text)
        assert [r.round for r in read_fleet(tmp_path)] == [1]


def test_what_is_no_timeline_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "timeline.jsonl"
    file.write_text("")
    with pytest.raises(DataError, match=r"timeline\.jsonl: has no round yet$"):
        read_fleet(file)
    assert main(["report", "xor", "--fleet", str(tmp_path / "no"), "--out", str(tmp_path / "r.html")]) == 1
    assert "error: " in (err := capsys.readouterr().err) and err.count("\n") == 1
