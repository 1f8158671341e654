"""bench/training.py: the page's numbers for the proposed benchmark come from the plan, QEMU and a training."""

import re
import sys

import pytest
from checkout import ROOT

from autodiff_gen.bench.stage_trials import TrialNetwork, Trials, settings
from autodiff_gen.targets import installation

sys.path.insert(0, str(ROOT / "bench"))
import memory
import training
import training_data

SECTION = (ROOT / "docs/benchmarks.md").read_text().partition("<!-- training -->")[2].partition("<!--")[0]
COSTS, PROGRAMS, LOSSES = (part.splitlines() for part in SECTION.strip().split("\n\n"))
NETWORKS = training.benchmark()["networks"]
QUICK = "har"


def cells(lines: list[str], name: str) -> list[str]:
    """The row of a network."""
    return next(r for line in lines if (r := line.strip("| ").split(" | "))[0] == installation.title(name))


def test_each_table_has_every_network():
    assert [len(lines) for lines in (COSTS, LOSSES)] == [len(NETWORKS) + 2] * 2
    assert len(PROGRAMS) == len(training.benchmark()["program"]) + 2
    for name in NETWORKS:
        assert len(cells(COSTS, name)) == 6 and len(cells(LOSSES, name)) == training.POINTS + 1


@pytest.mark.parametrize("name", NETWORKS)
def test_the_page_has_the_bytes_of_the_plan(name):
    r, row = memory.report(installation.benchmarks()[name]), cells(COSTS, name)
    assert (row[2], row[5]) == (f"{r.struct_bytes:,}", str(training.sectors(r.state_bytes)))


@pytest.mark.cc
@pytest.mark.qemu
def test_the_page_has_the_flash_and_the_instructions_that_are_counted(tmp_path):
    core = next(core for core in settings()[1] if core.name == training.CORE)
    (trial,) = Trials(TrialNetwork(QUICK), core, tmp_path).each([])
    flash, instructions = (int(cell.replace(",", "")) for cell in cells(COSTS, QUICK)[3:5])
    assert flash == pytest.approx(trial.cost.text, rel=0.02)
    assert instructions == pytest.approx(trial.cost.train, rel=0.02)


@pytest.mark.cc
def test_the_page_has_the_losses_of_a_training():
    found = training.losses(QUICK, **NETWORKS[QUICK])
    assert [float(cell) for cell in cells(LOSSES, QUICK)[1:]] == pytest.approx(found, abs=0.02)
    assert found[-1] < found[0] / 2


def test_a_checkpoint_erases_the_sectors_that_it_needs():
    headers = training.SLOT_HEADER + training.RECORD
    assert [training.sectors(n - headers) for n in (4096, 4097, 8192)] == [1, 2, 2]


def test_tables_say_which_data_are_synthetic():
    for name, row in NETWORKS.items():
        said = cells(COSTS, name)[1]
        assert said == training_data.kind(row["data"]) and re.match("(real|synthetic): ", said)


@pytest.mark.parametrize("source", ["photographs", "words", "waves"])
def test_data_are_the_same_in_every_run_and_of_all_classes(source):
    shape = (1, 49, 10) if source == "words" else (3, 32, 32)
    (x, y), (again, _) = (training_data.SOURCES[source](shape, 10, 60) for _ in range(2))
    assert x.shape == (60, *shape) and x.dtype == "f4" and (x == again).all()
    assert set(y) == set(range(10)) and 0.1 < x.std() < 2


def test_other_programs_have_sources_and_the_bytes_of_the_memory_section():
    listed = memory.others()
    of = {"AIfES": listed["AIfES"]["w3b1"], "TTE": listed["TinyEngine"]["mcunet"]}
    programs = training.benchmark()["program"]
    assert {p["name"] for p in programs} >= {"AIfES", "ODT", "TTE", "TinyMind", "TrainDeeploy"}
    for p in programs:
        assert p["source"].startswith("https://")
        assert p["name"] not in of or p["memory"] == f"{of[p['name']]:,}"
        assert p["network"] in NETWORKS or p["network"] not in installation.benchmarks()


@pytest.mark.parametrize(
    "words, said", [(["w9"], "unknown network 'w9'"), (["gru"], "unknown network 'gru'")]
)
def test_mistakes_are_errors_of_one_line(words, said, capsys):
    assert training.main(words) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {said}") and error.count("\n") == 1
