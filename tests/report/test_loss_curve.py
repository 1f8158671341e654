"""The losses of a program as bars."""

import pytest

from autodiff_gen.report.loss_curve import ROWS, WIDTH, loss_curve

MNIST = """mnist on stm32: 8,000 digits to train, batch 1

epoch    mean loss    accuracy      steps    data crc
    1     1.099781     90.20 %      8,000    cf25e709
    2     0.434679     92.55 %     16,000    cf25e709

flash      17,000 of 1,048,576 bytes    1.6 %
"""


def test_a_bar_for_each_row():
    assert loss_curve(MNIST) == "\n".join(
        ["mean loss by epoch", "  1  1.099781  " + "#" * WIDTH, "  2  0.434679  " + "#" * 16]
    )


def test_long_tables_are_thinned_and_keep_their_ends():
    rows = [f"{k:,}  {1000 - k}.5" for k in range(1, 900)]
    lines = loss_curve("\n".join(["step   loss", *rows, ""])).splitlines()
    assert len(lines) == 1 + ROWS
    assert lines[1].split()[:2] == ["1", "999.500000"] and lines[-1].split()[:2] == ["899", "101.500000"]


@pytest.mark.parametrize(
    "text",
    ["", "loss 3\n", "step   loss\n", "step   loss\n1   0.5\n", "step   loss\none   two\nthree   four\n"],
    ids=["nothing", "no table", "no rows", "one row", "words"],
)
def test_no_curve(text):
    assert loss_curve(text) is None


def test_losses_that_are_negative_or_zero_have_no_bar():
    assert loss_curve("step   loss\n1   0.0\n2   -1.5\n") == "loss by step\n  1  0.000000\n  2  -1.500000"
