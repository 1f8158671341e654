"""Counting instructions: the plugin and its probes, the names of steps, the command, its record."""

from __future__ import annotations

import copy
import json
import re
import shlex
import tomllib
from pathlib import Path

import compiled_examples
import pytest
from checkout import ROOT, C
from firmware_build import boards, call, copy_of_the_project, once, scons
from firmware_build import program as build_program

from autodiff_gen.bench.markdown import replace_section
from autodiff_gen.bench.on_board import measured
from autodiff_gen.bench.probes import ids, probes
from autodiff_gen.bench.program import bench_texts, probes_json
from autodiff_gen.bench.qemu_counter import count, plugin
from autodiff_gen.bench.report import changes, kernel_report, report
from autodiff_gen.bench.tables import write_qemu_tables
from autodiff_gen.cli.main import main
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import ToolError
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board, build_commands, installation


def compiled(model, kernels=("ref",)):
    file = load_file(model)
    return file, compile_file(file.made, file.name, kernels)


# The plugin


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    def make(folder):
        plugin(folder)

    (found,) = once(tmp_path_factory, "plugin", make).glob("*.so")
    return found


ONE_OF_EACH_CORE = {board.load(name).target.core: name for name in boards()}


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.parametrize("name", ONE_OF_EACH_CORE.values())
def test_instructions_between_probes_are_counted(name, library, tmp_path):
    b = board.load(name)
    tables = registry.load(["ref"], features=b.target.features)
    build_program(b, tables, [], [C / "probes.c"], tmp_path / "probes.elf", cc=None, flags=(), include=[])
    counts = count(b, tmp_path / "probes.elf", library)
    assert counts.instructions == {1: 24, 2: 0, 40: 24, 3: 4}
    assert counts.times == {1: 6, 2: 3, 40: 3, 3: 1}
    assert {k: sum(v.values()) for k, v in counts.profile.items()} == {1: 24, 40: 24, 3: 4}
    assert counts.printed[0] == "stack 8 16"


def test_without_a_compiler_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("HOSTCC", "no-such-compiler")
    with pytest.raises(
        ToolError, match=r"no-such-compiler is not installed; run: sudo apt-get install .*gcc"
    ):
        plugin(tmp_path)


# Probes


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("w1", 51_136),
        ("w2", 32 * 51_136),
        ("w3b1", 463_320),
        ("w3b8", 8 * 463_320),
        ("w6", 3_415_008),
        ("gru", 1_996_800),
        ("cnn1d", 3_515_520),
    ],
)
def test_the_multiply_accumulates_of_a_training_step(model, expected):
    _, program = compiled(model)
    assert sum(m.macs for m in probes(program) if m.entry == "train_step") == expected


def test_each_step_has_its_layer_and_phase():
    _, program = compiled("w1")
    found = [(m.layer, m.phase) for m in probes(program) if m.entry == "train_step"]
    assert found == [
        *(
            ("", "call"),
            ("0", "forward"),
            ("0", "forward"),
            ("2", "forward"),
            ("2", "forward"),
            ("2", "forward"),
        ),
        *(("2", "backward"), ("2", "backward"), ("2", "update"), ("0", "backward"), ("0", "update")),
    ]


def test_the_steps_of_a_loop_are_told_apart_and_count_as_often_as_they_are_made():
    _, program = compiled("gesture")
    found = {m.step: m for m in probes(program) if m.entry == "train_step"}
    recurrent = [m for m in found.values() if "gru_weight_hh_l0" in m.text and "." in m.step]
    batch, length, hidden = program.batch, 32, 20
    assert [m.macs for m in recurrent] == [batch * length * hidden * 3 * hidden] * 2
    assert [m.phase for m in recurrent] == ["forward", "backward"]
    assert {m.layer for m in found.values() if m.phase == "update" and "head" in m.text.split(",")[0]} == {
        "head"
    }


@pytest.mark.parametrize("model", ["w4", "gesture", "mnist"])
def test_probes_are_all_that_a_benchmark_adds(model):
    _, program = compiled(model)
    plain, probed = emit(program), emit(program, ids(probes(program)))
    assert not re.search("AG_PROBE|ag_probe", "".join(plain.values()))
    text = re.sub(
        r'^ *AG_PROBE\(\d+\);\n|^#include "ag_probe.h"\n', "", probed[f"{program.name}.c"], flags=re.M
    )
    assert {**probed, f"{program.name}.c": text} == plain
    steps = sum(len(list(e.plan.all_steps())) for e in program.entries)
    assert probed[f"{program.name}.c"].count("AG_PROBE(") == steps


@pytest.mark.cc
def test_without_its_definition_a_probe_is_nothing(tmp_path):
    file, program = compiled("w4")
    made = {}
    for name, texts in (("plain", emit(program)), ("probed", bench_texts(program, file, 1))):
        folder = tmp_path / name
        folder.mkdir()
        for file_name, text in texts.items():
            (folder / file_name).write_text(text)
        include = [f"-I{p}" for p in (*program.backends.include_dirs(), ROOT / "runtime")]
        call(["gcc", "-std=c99", "-O2", *include, "-c", "w4.c", "-o", "w4.o"], folder, 60)
        made[name] = (folder / "w4.o").read_bytes()
    assert made["plain"] == made["probed"]


# The command


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of the project in which the benchmark ran twice, and its output."""

    def make(folder):
        copy_of_the_project(folder)
        words = ("board=mps2_an386", "model=w4", "kernels=armv7em,ref", "steps=2", "bench")
        for k in range(2):
            (folder / f"said{k}.txt").write_text(scons(folder, *words))
            record = folder / "build/mps2_an386/w4+kernels=armv7em+ref/bench.json"
            (folder / f"record{k}.json").write_text(record.read_text())
        scons(folder, "board=mps2_an386", "kernels=armv7em,ref", "bench-kernels")
        elf = folder / "build/mps2_an386/w4+kernels=armv7em+ref/bench/cycles.elf"
        argv = build_commands.qemu_argv(board.load("mps2_an386"), elf, semihosting=False)
        words = (f"port=exec:{shlex.join(argv)}", *words)
        (folder / "said-cycle_model.txt").write_text(scons(folder, *words))

    return once(tmp_path_factory, "bench", make)


MEASURED = {"instructions", "cycles", "macs", "instructions_per_mac"}


@pytest.mark.cc
@pytest.mark.qemu
def test_the_record(built):
    record = json.loads((built / "record0.json").read_text())
    assert (record["schema"], record["model"], record["board"], record["core"]) == (
        *(1, "w4", "mps2_an386", "cortex-m4"),
    )
    assert (record["kernels"], record["batch"], record["steps"]) == (["armv7em", "ref"], 4, 2)
    assert record["profile"] == "speed"
    assert [set(e) for e in record["entries"]] == [{"entry", *MEASURED}] * 2
    assert all(set(r) == {"entry", "layer", "phase", *MEASURED} for r in record["layers"])
    told = {"entry", "step", "layer", "phase", "text", "kernels", *MEASURED}
    assert all(set(r) == told for r in record["graph_steps"])
    train = next(e for e in record["entries"] if e["entry"] == "train_step")
    assert record["instructions_per_step"] == train["instructions"] > 1000
    assert record["cycles_per_step"] > record["instructions_per_step"] / 2
    for rows in (record["graph_steps"], record["layers"]):
        parts = [r["instructions"] for r in rows if r["entry"] == "train_step"]
        assert all(p > 0 for p in parts)
        # probes keep the compiler from moving code across steps, so the sum may differ a little
        assert 0.9 * train["instructions"] <= sum(parts) <= 1.1 * train["instructions"]
    text = record["text"]
    assert text["trainer"] > 1000 and text["together"] == sum(text.values()) - text["together"]
    assert 0 < record["stack"] < 8192
    assert record["losses"] == pytest.approx([0.752308, 0.727958], abs=2e-6)


@pytest.mark.cc
@pytest.mark.qemu
def test_a_second_run_counts_the_same_and_says_so(built):
    first, second = (json.loads((built / f"record{k}.json").read_text()) for k in range(2))
    assert first == second
    said = (built / "said1.txt").read_text()
    assert "all as in the last record" in said
    assert "LINK" not in said and "last record" not in (built / "said0.txt").read_text()


@pytest.mark.cc
@pytest.mark.qemu
def test_what_became_slower_or_larger_is_listed(built):
    record = json.loads((built / "record0.json").read_text())
    last = copy.deepcopy(record)
    last["entries"][0]["instructions"] = record["entries"][0]["instructions"] / 2
    last["stack"] += 8
    (said,) = changes(record, last)
    rows = [line.split() for line in said.splitlines()[2:]]
    assert [(r[0], r[-2], r[-1]) for r in rows] == [
        ("train_step,", "2.000", "more"),
        ("stack,", f"{record['stack'] / last['stack']:.3f}", "less"),
    ]
    assert list(changes(record, {**last, "steps": 9})) == [
        "the last record is of other steps, batch, kernels or profile: not compared"
    ]
    assert "layer1_out" in report(record, None)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("model=w9",), "unknown model 'w9'"),
        (("model=w4", "board=nucleo_h743zi"), "no emulator .*; board=mps2_an500 has the same core"),
        (("model=w4", "board=host"), "counted in QEMU; give an emulated board"),
        (
            ("model=w4", "upload"),
            "bench upload: bench runs without other targets; only upload with port= may be added",
        ),
        (("model=w4", "steps=none"), "steps=none: must be a number of training steps"),
    ],
)
@pytest.mark.cc
@pytest.mark.qemu
def test_wrong_words_get_one_line(built, words, expected):
    with pytest.raises(AssertionError) as wrong:
        scons(built, "bench", *words)
    said = str(wrong.value).splitlines()[1:]
    assert len(said) == 1 and said[0].startswith("error: ") and re.search(expected, said[0])


@pytest.mark.cc
@pytest.mark.qemu
def test_a_board_prints_the_cycles_between_probes(built):
    """Only the form: QEMU's counter does not count."""
    folder = built / "build/mps2_an386/w4+kernels=armv7em+ref"
    record, counted = (json.loads((folder / name).read_text()) for name in ("cycles.json", "bench.json"))
    told = ("entry", "step", "layer", "phase", "text", "kernels", "macs")
    for a, b in zip(record["graph_steps"], counted["graph_steps"], strict=True):
        assert [a[k] for k in told] == [b[k] for k in told] and a["cycles"] == 0
    assert record["losses"] == counted["losses"]
    assert "cycles of one call, mean of 2" in (built / "said-cycle_model.txt").read_text()


def test_cycles_of_another_benchmark_are_rejected(tmp_path):
    path = tmp_path / "net_probes.json"
    path.write_text(json.dumps({"model": "net", "batch": 1, "steps": 4, "probes": [{"id": 1}]}))
    with pytest.raises(ToolError, match=r"another benchmark: it lists 2 probes, net_probes.json of 1"):
        measured(
            board.load("stm32"), ["ref"], path, ["cycles 1 00000000 00000010", "cycles 2 00000001 00000000"]
        )


@pytest.mark.parametrize("line", ["cycles 1 0000000g 00000010", "stack", "stack many", "loss", "loss 1.2.3"])
def test_a_damaged_line_of_a_board_is_one_line(line, tmp_path):
    path = tmp_path / "net_probes.json"
    path.write_text(json.dumps({"model": "net", "batch": 1, "steps": 4, "probes": [{"id": 1}]}))
    with pytest.raises(ToolError, match="list of cycles has a damaged line; run the command again"):
        measured(board.load("stm32"), ["ref"], path, ["cycles 1 00000000 00000010", line])


def test_cycles_are_the_mean_of_the_steps(tmp_path):
    path = tmp_path / "net_probes.json"
    _, program = compiled("w4")
    path.write_text(probes_json(program, probes(program)[:2], 4))
    lines = ["stack 100", "loss 1.5e+00", "cycles 1 00000000 00000010", "cycles 2 00000001 00000000"]
    record = measured(board.load("stm32"), ["ref"], path, lines)
    assert [r["cycles"] for r in record["graph_steps"]] == [4, 2**30]
    assert (record["stack"], record["losses"]) == (100, [1.5])


def test_every_example_has_a_benchmark():
    for name in compiled_examples.EXAMPLES:
        file = load_file(name)
        texts = bench_texts(compiled_examples.compiled(name), file, 2)
        assert "int main(void)" in texts[f"{file.name}_bench.c"]
        assert "AG_PROBE(2);" in texts[f"{file.name}.c"]


def test_steps_must_be_a_number(capsys):
    assert main(["bench-sources", "xor", "--out", "nowhere", "--steps", "0"]) == 1
    assert "must be at least 1" in capsys.readouterr().err


# Kernels and tables


@pytest.mark.cc
@pytest.mark.qemu
def test_kernels_are_counted_by_themselves(built):
    record = json.loads((built / "build/mps2_an386/kernels+kernels=armv7em+ref/kernels.json").read_text())
    told = {"family", "sizes", "symbol", *MEASURED}
    assert all(set(case) == told and case["instructions"] > 0 for case in record["cases"])
    cases = {(case["family"], case["sizes"]): case for case in record["cases"]}
    assert len(cases) == len(record["cases"])
    gemv = cases["gemv", "32x784"]
    assert (gemv["symbol"], gemv["macs"]) == ("ag_gemv_f32_armv7em", 25_088)
    assert 1 < gemv["instructions_per_mac"] < 2
    families = {
        name.removesuffix("_f32")
        for name in CONTRACT
        if name.startswith(("ge", "axp", "col", "conv", "depth", "dense", "softmax"))
    }
    assert {family for family, _ in cases} == families - {"gemm_tt"}
    assert 300 < record["stack"] <= 1024
    assert "ag_gemv_f32_armv7em" in kernel_report(record, None)
    before = copy.deepcopy(record)
    before["cases"][0]["instructions_per_mac"] = 9.0
    assert kernel_report(record, before).count(" before") == 1


def published(name):
    text = (ROOT / "bench" / "qemu" / "published.toml").read_text()
    return next(entry for entry in tomllib.loads(text)["board"] if entry["id"] == name)


@pytest.mark.cc
@pytest.mark.qemu
def test_kernels_are_no_slower_than_the_best_known(built):
    record = json.loads((built / "build/mps2_an386/kernels+kernels=armv7em+ref/kernels.json").read_text())
    measured_here = {f"{c['family']} {c['sizes']}": c["instructions_per_mac"] for c in record["cases"]}
    known = published("mps2_an386")["per_mac"]
    assert len(known) == 11
    assert {k: measured_here[k] for k, (best, _) in known.items() if measured_here[k] > best} == {}


@pytest.mark.cc
@pytest.mark.qemu
def test_a_step_of_w1_is_no_slower_than_the_best_known(library, tmp_path):
    b = board.load("mps2_an386")
    tables = registry.load(["armv7em", "ref"], features=b.target.features)
    file = load_file("w1")
    program = compile_file(file.made, "w1", tables.names, b)
    for name, text in {**bench_texts(program, file, 4), **emit(program)}.items():
        (tmp_path / name).write_text(text)
    include = [f"-I{p}" for p in (tmp_path, *tables.include_dirs(), *build_commands.include_dirs(b))]
    gcc = [build_commands.tool(b, "gcc"), *build_commands.compile_flags(b), *include]
    called = {k.source for k in program.kernels} | set(tables.backends[0].shared)
    for source in tables.sources():
        if source.path in called:
            call([*gcc, *source.cflags, "-c", str(source.path)], tmp_path, 60)
    call(
        [*gcc, *build_commands.model_flags(b), "-ffp-contract=fast", "-c", "w1.c", "w1_params.c"],
        tmp_path,
        60,
    )
    call(
        [*gcc, "-DAG_PROBE_HINTS=1", "-c", "w1_bench.c", *map(str, build_commands.support_sources(b))],
        tmp_path,
        60,
    )
    objects = [path.name for path in sorted(tmp_path.glob("*.o"))]
    call([gcc[0], *objects, "-o", "w1.elf", *build_commands.link_flags(b)], tmp_path, 60)
    step, *_ = (m.id for m in probes(program) if m.entry == "train_step")
    best, _ = published("mps2_an386")["step"]["w1"]
    assert 51_136 < count(b, tmp_path / "w1.elf", library).instructions[step] / 4 <= best


def test_tables_come_from_the_records(built, tmp_path, monkeypatch):
    record = json.loads((built / "record0.json").read_text())
    kernels = (built / "build/mps2_an386/kernels+kernels=armv7em+ref/kernels.json").read_text()
    monkeypatch.setattr(installation, "root", lambda: tmp_path)
    for part in ("bench", "boards", "kernels"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / "docs").mkdir()
    document = tmp_path / "docs" / "benchmarks.md"
    document.write_text("above\n<!-- qemu -->\nold\n<!-- /qemu -->\n<!-- host -->\nmine\n<!-- /host -->\n")

    def run(words):
        given = dict(word.split("=", 1) for word in words if "=" in word)
        model = given.get("model", "kernels")
        name = f"{model}+kernels={given['kernels'].replace(',', '+')}"
        name += f"+profile={given['profile']}" if "profile" in given else ""
        folder = tmp_path / "build" / Path(given["board"]).stem / name
        folder.mkdir(parents=True)
        if words[-1] == "bench":
            (folder / "bench.json").write_text(json.dumps({**record, "model": model}))
        else:
            (folder / "kernels.json").write_text(kernels)

    text = write_qemu_tables(run)
    assert document.read_text().startswith("above\n<!-- qemu -->\n\nCounted with arm-none-eabi-gcc")
    assert (
        document.read_text().endswith("\n<!-- host -->\nmine\n<!-- /host -->\n")
        and text in document.read_text()
    )
    step = record["instructions_per_step"]
    assert f"| XOR perceptron | {step:,}" in text and f"| 2,197 ({step / 2197:.2f}), " in text
    assert "### Networks on Cortex-M4F" in text and f"| ResNet-8 | {step:,}" in text
    assert "| gemv | 64x128 |" in text
    assert (
        f"Built for size (`profile=size`) MNIST perceptron has {record['text']['together']:,} bytes" in text
    )


def test_a_document_without_the_section_is_rejected(tmp_path):
    path = tmp_path / "a.md"
    path.write_text("nothing\n")
    with pytest.raises(ToolError, match="has no section between `<!-- qemu -->` and `<!-- /qemu -->`"):
        replace_section(path, "qemu", "text")
