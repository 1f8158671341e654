"""Logs of a training run: CSV, TensorBoard, and the curve."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from csv_rows import rows

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.device.log import CsvLog, TensorBoard, clock, curve
from autodiff_gen.device.training import Record, learning_rate
from autodiff_gen.errors import ToolError

pytestmark = pytest.mark.cc


def test_events_of_tensorboard(tmp_path, monkeypatch):
    """loss, lr and accuracy; the steps after the one where a run is resumed replace older ones."""
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=SummaryWriter))
    events = TensorBoard(tmp_path, 4)
    events(Record(5, 1, 5, 1.0, 0.5, lr=0.1))
    events(Record(3, 1, 5, 1.0, 0.0, went_back=True))
    events(Record(6, 1, 6, 1.0, 0.25, 0.75, lr=0.1))
    events.close()
    assert written == [
        (str(tmp_path), 5),
        *(("loss", 0.5, 5), ("lr", 0.1, 5)),
        *(("loss", 0.25, 6), ("lr", 0.1, 6), ("accuracy", 0.75, 6)),
        "closed",
    ]
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ToolError, match=r"-m pip install 'tensorboardX>=2.6'  # the extra \[tensorboard\]$"):
        TensorBoard(tmp_path)


def test_the_learning_rate_of_a_schedule_is_logged():
    net = nn.Linear(2, 2)
    schedule = optim.lr_scheduler.StepLR(step_size=2, gamma=0.5)
    model = ag.Model.supervised(
        net, input=(1, 2), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.8), schedule=schedule
    )
    rate = learning_rate(model, None)
    assert [round(rate(k), 6) for k in range(5)] == [0.8, 0.8, 0.4, 0.4, 0.2]


def test_a_log_is_cut_where_a_run_goes_on(tmp_path):
    path = tmp_path / "deep" / "log.csv"
    for first, last in ((0, 5), (3, 6)):
        log = CsvLog(path, first)
        for step in range(first, last):
            log(Record(step + 1, 1, 1, 1.0, float(first)))
        log.close()
    assert [(int(r["step"]), float(r["loss"])) for r in rows(path)] == [
        *((k, 0.0) for k in (1, 2, 3)),
        *((k, 3.0) for k in (4, 5, 6)),
    ]


@pytest.mark.parametrize(
    "before, first, renamed",
    [
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n", 0, True),  # --fresh
        (
            "step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n",
            1,
            True,
        ),  # the board went back
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n", 2, False),
        ("step,epoch,loss,lr,accuracy,seconds\n", 0, False),
        ("some,other,file\n", 0, True),
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,\n", 1, True),  # cut in a row
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.", 1, True),
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2", 1, True),
    ],
)
def test_no_row_of_a_log_is_lost(tmp_path, before, first, renamed):
    path = tmp_path / "log.csv"
    (tmp_path / "log.1.csv").write_text("an older one")
    path.write_text(before)
    log = CsvLog(path, first)
    log.close()
    assert log.renamed == (tmp_path / "log.2.csv" if renamed else None)
    assert len(rows(path)) == first
    if renamed:
        assert log.renamed.read_text() == before
    assert (tmp_path / "log.1.csv").read_text() == "an older one"


def test_rows_of_a_log_are_in_the_file_when_the_run_is_killed(tmp_path):
    path = tmp_path / "log.csv"
    for first in (0, 1, 2):
        log = CsvLog(path, first)
        assert len(rows(path)) == first, "at the start"
        log(Record(first + 1, 1, 1, 1.0, 0.5))
        assert len(rows(path)) == first + 1, "after a step"


def test_the_curve():
    lines = curve([4.0, 3.0, 2.0, 1.0, float("nan")], width=4, height=2).splitlines()
    assert [line.strip() for line in lines] == ["4 |█▃", "1 |██▆▁", "+----", "step  1  5"]
    assert curve([1.0]) == "" and clock(3723) == "1:02:03" and clock(21.4) == "0:21"
