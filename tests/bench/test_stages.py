"""`bench --without`: costs of networks without stages of the pipeline, and runs that go on after an interruption."""

from __future__ import annotations

import re

import pytest

from autodiff_gen.bench.callgrind import count_calls, inclusive
from autodiff_gen.bench.executable import Builder
from autodiff_gen.bench.program import counted_texts
from autodiff_gen.bench.program_cost import Cost, cost, reference
from autodiff_gen.bench.stage_ablation import left_out_sets
from autodiff_gen.bench.stage_tables import StageRow, candidates, details, summary, verdict
from autodiff_gen.bench.stage_trials import Core, Trial, from_json, largest_difference, settings
from autodiff_gen.cli.arguments import network
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ToolError
from autodiff_gen.lowering import left_out_stages, pipeline
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import find_model, load_file
from autodiff_gen.targets import installation

M4F, HOST = Core("m4f", "Cortex-M4F", "mps2_an386", ("ref",)), Core("host", "host", "host", ("ref",))


# Stages


def test_a_stage_that_is_left_out_returns_its_module_and_others_without_effect_are_known():
    with left_out_stages.without(()) as all_stages:
        file = load_file("w1")
        compile_file(file.made, "w1")
    assert {"differentiate", "fuse_optimizer", "schedule"} <= all_stages.effective
    assert not {"micro_batches", "fuse_calls"} & all_stages.effective
    with left_out_stages.without(["fuse_optimizer"]) as trial:
        file = load_file("w1")
        compile_file(file.made, "w1")
    assert trial.effective == all_stages.effective - {"fuse_optimizer"}


def test_sets_of_stages():
    assert left_out_sets([("all",)]) == [(name,) for name in pipeline.names()]
    assert left_out_sets([("cse",), ("region_dce", "cse"), ("cse",)]) == [("cse",), ("cse", "region_dce")]


# The command


@pytest.mark.cc
@pytest.mark.qemu
def test_a_run_counts_where_the_c_differs_and_goes_on_where_it_was_interrupted(tmp_path, capsys, monkeypatch):
    built = []
    executable = Builder.executable

    def counted(self, program, *args):
        built.append(program.name)
        if len(built) == 2:
            raise KeyboardInterrupt
        return executable(self, program, *args)

    def lines(*stages, code=0):
        words = [word for stage in stages for word in ("--without", stage)]
        assert main(["bench", "w4", *words, "--core", "m4f", "--results", str(tmp_path)]) == code
        return capsys.readouterr().out.splitlines()

    monkeypatch.setattr(Builder, "executable", counted)
    stages = ("commute_pooling", "check_indices", "copy_insertion")
    assert len(lines(*stages, code=130)) == 3
    assert built == ["w4", "w4"]
    text = lines(*stages)
    assert built == ["w4", "w4", "w4"]  # the program with all stages was counted before the interruption
    assert re.match(
        r"w4 m4f: [\d,.]+ instructions of a step, \d+ of predict, arena 304, text [\d,]+ bytes, \d+", text[0]
    )
    assert text[1] == "w4 m4f without commute_pooling: same C"
    assert text[2] == "w4 m4f without check_indices: needed: differs in the checks of inputs"
    assert re.match(
        r"w4 m4f without copy_insertion: train [+-]\d+\.\d\d %, predict .*, arena \+0\.00 %, text ", text[3]
    )
    assert lines(*stages) == text
    assert "needed: " in lines("differentiate")[1]  # a model that cannot be built
    assert built == ["w4", "w4", "w4"]


def test_the_tables_are_a_section_of_a_document(tmp_path, capsys, monkeypatch):
    document = tmp_path / "stages.md"
    document.write_text("# Stages\n\n<!-- stages -->\n\n<!-- /stages -->\n")
    cost = Cost(train=100.5, predict=40, arena=64, text=10, lines=5)
    monkeypatch.setattr("autodiff_gen.bench.stage_trials.Trials._cost", lambda *args: cost)
    words = ["bench", "w4", "--core", "m4f", "--results", str(tmp_path / "made"), "--docs", str(document)]
    assert main(words) == 0
    assert "| w4 | 100.5 | 40 | 64 | 10 | 5 |" in document.read_text()
    assert "| w4 | 100.5 | 40 | 64 | 10 | 5 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["w4", "--without", "fuse_optimiser"],
            "unknown stage 'fuse_optimiser'; did you mean 'fuse_optimizer'?",
        ),
        (["w4", "--without", "cse,all"], "unknown stage 'all'"),
        (["w4", "--without", "cse,cse"], "expected each name once"),
        (["w4", "--core", "m5"], "unknown core 'm5'; cores: m4f, m55, a53, host"),
        (["w9"], "unknown model 'w9'"),
        (["w4", "--docs", "none.md"], "none.md: cannot be read: No such file or directory"),
        (["w4:much"], "expected bytes, such as 98304 or 96K, got 'much'"),
        (["w4", "w5", "none.py"], "model file none.py does not exist"),
    ],
)
def test_mistakes_are_errors_of_one_line(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *words]) in (1, 2)
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


# Measurements


def test_all_networks_and_cores_exist():
    networks, cores = settings()
    for word in networks:
        find_model(network(word).name)
    assert {*installation.workloads(), *installation.small_networks()} <= {
        network(word).name for word in networks
    }
    assert {core.load()[0].id for core in cores} == {
        "mps2_an386_psram",
        "mps3_an547_ddr",
        "virt_a53",
        "host_avx2",
    }


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("dropout", "finite_guard"),
        ("dropout", "freeze_states"),
        ("same_padding", "demand_propagation"),
        ("ode", "accumulate_gradients"),
        ("moe", "part_propagation"),
        ("gat", "copy_insertion"),
        ("w3b8:224K", "micro_batches"),
    ],
)
def test_networks_have_what_stages_are_for(name, stage):
    given, (core, *_) = network(name), settings()[1]
    board, _ = core.load()
    with left_out_stages.without(()) as trial:
        file = load_file(given.name)
        compile_file(file.made, file.name, core.kernels, board, given.ram)
    assert stage in trial.effective


CALLS = """\
fn=main
0 12
cfn=w4_train_step
calls=4 0
0 3220
cfi=other.c
cfn=w4_predict
calls=4 0
0 840
fn=w4_init
0 5
cfn=w4_train_step
calls=1 0
0 7
"""


def test_calls_in_a_profile_are_added_up_with_their_callees():
    assert inclusive(CALLS, ["w4_train_step", "w4_predict", "w4_apply"]) == {
        "w4_train_step": 3227,
        "w4_predict": 840,
        "w4_apply": 0,
    }


@pytest.mark.cc
def test_instructions_on_the_host_are_counted_for_each_entry(tmp_path):
    board, tables = HOST.load()
    file = load_file("w4")
    program = compile_file(file.made, file.name, HOST.kernels, board)
    found = cost(program, counted_texts(program, file, 2), Builder(board, tables), tmp_path, tmp_path, 2)
    assert 500 < found.train < 10_000 and 100 < found.predict < found.train / 2
    assert len(found.losses) == 2 and found.losses[1] < found.losses[0]
    assert 1_000 < found.text < 20_000 and found.arena == program.struct_bytes - program.state_bytes
    losses, outputs = reference(file)
    assert losses == pytest.approx(found.losses, rel=1e-6) and len(outputs) == 8


def test_without_valgrind_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="needs valgrind: run: sudo apt-get install -y valgrind"):
        count_calls(tmp_path / "program", ["f"])


# The tables


def row(core=M4F, network="w1", needed="", **changes):
    base = Cost(train=1000, predict=1000, arena=1000, text=1000, lines=1000)
    cost = Cost(
        **{k: 1000 * (1 + changes.get(k, 0) / 100) for k in ("train", "predict", "arena", "text", "lines")}
    )
    c = "other" if changes else "same"
    return StageRow(network, core, Trial(c="same", cost=base), Trial(("cse",), needed, c=c, cost=cost))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(), row(HOST)], "no effect"),
        ([row(), row(HOST, train=0.9, arena=-0.9, text=50)], "less than 1 %"),
        (
            [row(train=2), row(network="w2", train=5, arena=-1)],
            "gains train 5.0 % (w2, m4f), loses arena 1.0 % (w2, m4f)",
        ),
        (
            [row(train=-3), row(HOST, predict=4)],
            "gains predict 4.0 % (w1, host), loses train 3.0 % (w1, m4f)",
        ),
        ([row(), row(HOST, needed="differs in the entries")], "needed (w1: differs in the entries)"),
    ],
)
def test_verdicts(rows, said):
    assert verdict(rows) == said
    assert said in summary(rows)


def test_candidates_for_deletion_and_stages_to_be_decided_by_costs():
    gains = [row(train=4), row(HOST, predict=-3)]
    assert candidates(gains).splitlines()[2:] == [
        "- loses 1 % of instructions or more somewhere:",
        "  - `cse`: host -3.0 % (w1, predict) ... +0.0 % (w1, train)",
    ]
    assert candidates([row()]).startswith("- no effect: `cse`\n- less than 1 %: none\n")
    assert "- less than 1 %: `cse`" in candidates([row(train=-0.9)])


def test_ranges_of_a_core():
    text = summary([row(train=2), row(network="w2", train=-5, arena=1), row(network="w4")])
    assert "| 2 of 3: train -5.0 ... +2.0, arena +0.0 ... +1.0 |" in text


def test_networks_with_changes_below_one_percent_are_left_out():
    rows = [row(train=0.9, text=50), row(network="w2", arena=-1), row(HOST, predict=0.9)]
    assert details(rows).splitlines() == [
        "### Cortex-M4F",
        "",
        "| without | network | train | predict | arena | text | lines |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        "| cse | w2 | +0.00 | +0.00 | -1.00 | +0.00 | +0.00 |",
    ]


def test_a_stored_trial_is_the_same():
    trial = Trial(
        ("cse",), "", ("cse",), {"entries": "x"}, "c", Cost(1.5, 2, losses=(0.5,), reference_outputs=(1.0,))
    )
    assert from_json(trial.to_json()) == trial


@pytest.mark.parametrize(
    ("new", "old", "difference"),
    [
        ((), (), 0),
        ((1.0, 2.0), (1.0, 2.5), 0.2),
        ((0.0,), (0.0,), 0),
        ((1.0,), (1.0, 2.0), float("inf")),
        ((float("nan"),), (1.0,), float("inf")),
    ],
)
def test_differences_of_results(new, old, difference):
    assert largest_difference(new, old) == difference
