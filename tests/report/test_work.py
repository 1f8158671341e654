"""Estimates of time and energy: the arithmetic, the columns that a board allows, and the card of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_models import compiled

from autodiff_gen.cli.main import main
from autodiff_gen.report.explain import text
from autodiff_gen.report.listing import listings
from autodiff_gen.report.page import Measured, page
from autodiff_gen.report.program_report import three_digits
from autodiff_gen.targets import board

COLUMNS = {
    "stm32": ["instructions", "cycles", "ms", "mJ"],
    "nano33ble": ["instructions", "cycles", "ms", "mJ"],
    "teensy41": ["instructions", "cycles", "ms", "mJ"],
    "nucleo_f446re": [
        "instructions",
        "cycles",
        "ms",
    ],  # another chip than the STM32F405, from which it inherits
    "mps2_an386": ["instructions", "cycles", "ms"],
    "virt_a53": ["instructions", "cycles"],
    "host": ["instructions"],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_that_the_board_allows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mnist", "--board", name]) == 0
    told = capsys.readouterr().out
    head = re.search(r"^work of a call, estimated +(.*)$", told, re.MULTILINE)
    assert head is not None and head[1].split() == COLUMNS[name]
    assert ("uA for each MHz" in told) == ("mJ" in COLUMNS[name])


def test_the_arithmetic() -> None:
    """40 mA at 3.3 V for a millisecond."""
    target = board.load("stm32").target
    assert target.milliseconds(168_000) == pytest.approx(1.0)
    assert target.millijoules(168_000) == pytest.approx(1e3 * 0.238e-3 * 168 * 3.3 * 1e-3)
    numbers = {
        0.0676: "0.0676",
        1.0496: "1.05",
        123.4: "123",
        999.4: "999",
        999.6: "1,000",
        12345.6: "12,346",
    }
    assert {x: three_digits(x) for x in numbers} == numbers


def test_explain_and_the_page_say_the_same_and_that_it_is_an_estimate() -> None:
    program, report = compiled("mnist")
    work = report.work(report.entries[0])
    assert work.cycles is not None and work.milliseconds is not None and work.millijoules is not None
    cells = (
        f"{work.instructions:,.0f}",
        f"{work.cycles:,.0f}",
        *map(three_digits, (work.milliseconds, work.millijoules)),
    )
    row = " +".join(cells)
    assert re.search(rf"^train_step +{row}$", text(report), re.MULTILINE)
    shown = page(report, listings(program), Measured())
    assert "Its time and energy, estimated" in shown and "2.75 cycles an instruction" in shown
    assert f"{three_digits(work.milliseconds)}&#8239;ms" in shown
    counted = {"instructions_per_step": 1000, "cycles_per_step": 168_000, "steps": 1, "layers": ()}
    shown = page(report, listings(program), Measured(bench=counted))
    assert "168,000 cycles estimated" in shown and "1&#8239;ms" in shown
    assert "assumed: 168 MHz, 238 uA" in shown and "cycles an instruction" not in shown
    program, report = compiled("scalar")
    for bench in ({}, counted):
        assert "Training step" not in page(report, listings(program), Measured(bench=bench))


def test_a_current_needs_its_supply(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('schema = 1\nname = "m"\ninherits = "mps2_an386"\n[target]\nua_per_mhz = 100\n')
    assert main(["explain", "mnist", "--board", str(own)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "target.volts is missing" in error
    own.write_text(own.read_text() + "volts = 3\n")
    assert main(["explain", "mnist", "--board", str(own)]) == 0
    assert "mJ" in capsys.readouterr().out
