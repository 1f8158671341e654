"""`autodiff-gen log`: the table, the picture, and one line for wrong files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.device.log import COLUMNS, CsvLog
from autodiff_gen.device.training import Record
from autodiff_gen.report.loss_picture import means, ticks

HEAD = ",".join(COLUMNS)


def written(path: Path, losses: Sequence[float], accuracy: bool = False, per_epoch: int = 10) -> Path:
    """A log as `train` writes it."""
    log = CsvLog(path, 0)
    for k, loss in enumerate(losses, 1):
        epoch = (k - 1) // per_epoch + 1
        log(Record(k, epoch, k, 0.5 * k, loss, 1.0 - loss / 4 if accuracy else None, 0.1))
    log.close()
    return path


def test_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = written(tmp_path / "a.csv", [2.0 - k / 100 for k in range(100)], accuracy=True)
    b = written(tmp_path / "b.csv", [math.nan, 3.0, *(1.0 for _ in range(38))])
    out = tmp_path / "both.svg"
    assert main(["log", str(a), str(b), "--out", str(out)]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert re.split(r" {2,}", rows[2].strip()) == ["a", "100 steps", "2", "1.055", "1.01", "74.75 %", "50.0"]
    assert re.split(r" {2,}", rows[3].strip()) == ["b", "40 steps", "3", "1", "1", "-", "20.0"]
    root = ElementTree.fromstring(out.read_text())  # a file that is well-formed XML
    paths = [e for e in root if e.tag.endswith("path") and len(e.attrib["d"]) > 40]
    assert [e.attrib["class"] for e in paths] == ["curve c0", "curve c1", "curve c0"]
    assert [e.attrib["d"].count("L") for e in paths] == [99, 38, 99]
    texts = [e.text for e in root if e.tag.endswith("text")]
    assert {"loss by step", "accuracy by step", "a", "b", "step"} <= {*texts}
    assert not re.search(r"href|url\(|https?:(?!//www\.w3\.org/2000/svg)", out.read_text())


@pytest.mark.parametrize("by, at", [("step", 200.0), ("epoch", 20.0), ("seconds", 100.0)])
def test_the_axis_is_chosen(tmp_path: Path, by: str, at: float, capsys: pytest.CaptureFixture[str]) -> None:
    a, out = written(tmp_path / "a.csv", [1.0 / k for k in range(1, 201)]), tmp_path / "a.svg"
    assert main(["log", str(a), "--by", by, "--out", str(out)]) == 0
    assert f">{at:g}<" in out.read_text() and f">loss by {by}<" in out.read_text()


def test_a_long_run_is_drawn_by_means() -> None:
    points = [(float(k), float(k % 2)) for k in range(1, 1001)]
    drawn, size = means(points)
    assert size == 4 and len(drawn) == 250 and {y for _, y in drawn} == {0.5} and drawn[-1][0] == 1000
    assert means(points[:5]) == (points[:5], 1)


def test_ticks_are_round_and_inside() -> None:
    assert [*ticks(0.0, 2.3)] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert [*ticks(1.0, 2000.0)] == [500.0, 1000.0, 1500.0, 2000.0]
    assert [*ticks(3.0, 3.0)] == [3.0]
    assert all(3 <= len([*ticks(0.0, high)]) <= 7 for high in (1e-9, 0.3, 7.0, 123456.0))


def test_one_row_is_a_dot(tmp_path: Path) -> None:
    out = tmp_path / "one.svg"
    assert main(["log", str(written(tmp_path / "one.csv", [0.5])), "--out", str(out)]) == 0
    assert 'class="curve c0 dot"' in out.read_text()


@pytest.mark.parametrize("cut", ["3", "3,1,0.", "3,1,0.4,0.1,,1"])
def test_the_last_row_may_be_cut(tmp_path: Path, cut: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "a.csv", [1.0, 0.5])
    path.write_text(path.read_text() + cut)
    assert main(["log", str(path)]) == 0
    assert "2 steps" in capsys.readouterr().out


WRONG = {
    "no file": (None, "No such file or directory"),
    "empty": ("", "is no log: its first line is not step,epoch,loss,lr,accuracy,seconds, which --log writes"),
    "another table": ("a,b\n1,2\n", "is no log"),
    "no rows": (f"{HEAD}\n", "has no row yet"),
    "a word": (f"{HEAD}\n1,1,x,0.1,,0.5\n2,1,1,0.1,,0.5\n", "line 2 is no row of a log"),
    "order": (
        f"{HEAD}\n2,1,1,0.1,,0.5\n1,1,1,0.1,,0.6\n3,1,1,0.1,,0.6\n",
        "line 3 is no row of a log, or not in order",
    ),
    "a step too large": (f"{HEAD}\n{'9' * 400},1,1,0.1,,0.5\n", "line 2 is no row of a log"),
    "a time too large": (f"{HEAD}\n1,1,1,0.1,,1e308\n", "line 2 is no row of a log"),
    "NaN": (f"{HEAD}\n1,1,nan,0.1,,0.5\n", "no loss is finite"),
}


DRAWN = {  # losses and accuracies, with the highest number of the axis of losses
    "equal negative losses": ([-1e20, -1e20], ["", ""], "0"),
    "all zero": ([0.0, 0.0], ["", ""], "1"),
    "negative losses": ([-4.0, -3.0], ["", ""], "-3"),
    "accuracy nan": ([2.0, 1.0], ["nan", "0.5"], "2"),
    "too large": ([1e308, 4.0, 1e308, -1e308], ["1e308", "", "", ""], "4"),
    "the smallest": ([5e-324, 0.0], ["", ""], "0"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_all_numbers_can_be_drawn(tmp_path: Path, name: str) -> None:
    losses, accuracies, highest = DRAWN[name]
    path, out = tmp_path / "a.csv", tmp_path / "a.svg"
    rows = [f"{k},1,{x},0.1,{y},{k}" for k, (x, y) in enumerate(zip(losses, accuracies, strict=True), 1)]
    path.write_text("\n".join([HEAD, *rows, ""]))
    assert main(["log", str(path), "--out", str(out)]) == 0
    assert not re.search("nan|inf", out.read_text())
    axis = [e for e in ElementTree.fromstring(out.read_text()) if e.attrib.get("text-anchor") == "end"]
    assert highest in [e.text for e in axis]


def test_a_table_has_all_runs_with_names_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for folder in "abcdefghi":
        (tmp_path / folder).mkdir()
        paths.append(written(tmp_path / folder / f"{'x' * 50}.csv", [1.0]))
    assert main(["log", *map(str, paths)]) == 0
    rows = [re.split(r" {2,}", row.strip()) for row in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["x" * 40, *(f"{'x' * 36} ({k})" for k in range(2, 10))]
    assert {row[1] for row in rows} == {"1 step"}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_errors_of_one_line(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, said = WRONG[name]
    path = tmp_path / "log.csv"
    if text is not None:
        path.write_text(text)
    assert main(["log", str(path), "--out", str(tmp_path / "out.svg")]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(path) in error and said in error
    assert not (tmp_path / "out.svg").exists()


def test_runs_that_do_not_fit_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = written(tmp_path / "steps.csv", [1.0, 0.5, 0.4])
    rounds = written(tmp_path / "rounds.csv", [1.0, 0.5, 0.4], per_epoch=1)
    out = tmp_path / "out.svg"
    cases: list[tuple[list[Path], str]] = [
        ([steps, rounds], "steps counts steps and rounds counts rounds, which are not comparable"),
        ([steps, steps], "is given twice"),
        ([written(tmp_path / f"{k}.csv", [1.0]) for k in range(9)], "9 runs, but a picture has at most 8"),
    ]
    for paths, said in cases:
        assert main(["log", *map(str, paths), "--out", str(out)]) == 1
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and said in error
    assert not out.exists()
    for by in ("epoch", "seconds"):
        assert main(["log", str(steps), str(rounds), "--by", by, "--out", str(out), "--force"]) == 0
