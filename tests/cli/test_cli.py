"""The command line: files, output, time and imports of each command."""

import json
import os
import re
import shlex
import subprocess
import sys
import time

import pytest
from call_count import calls
from checkout import ROOT

from autodiff_gen import __version__
from autodiff_gen.cli.main import main
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_kinds import Leaf
from autodiff_gen.targets import board

MNIST = ROOT / "examples" / "mnist" / "model.py"


def run(*words, cwd=ROOT, env=None):
    """The real program; its stdout. Fails when it fails."""
    command = [sys.executable, "-m", "autodiff_gen", *map(str, words)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("words", [[], ["--quiet"]], ids=["shown", "quiet"])
def test_build_writes_four_files_with_a_record_and_says_how_to_go_on(words, tmp_path, capsys):
    assert main(["build", "mnist", "--board", "stm32", "--out", str(tmp_path / "a" / "b"), *words]) == 0
    assert sorted(p.name for p in (tmp_path / "a" / "b").iterdir()) == [
        ".autodiff_gen.json",
        "mnist.c",
        "mnist.deps.json",
        "mnist.h",
        "mnist_params.c",
    ]
    said, error = capsys.readouterr()
    assert error == ""
    if words:
        assert said == ""
    else:
        assert str(tmp_path / "a" / "b" / "mnist_params.c") in said.splitlines()
        assert "`autodiff-gen export mnist --board stm32 --as FORMAT --out DIR`" in said


def test_build_takes_the_name_that_it_is_given(tmp_path):
    assert main(["build", "mnist", "--board", "host", "--name", "digits", "--out", str(tmp_path)]) == 0
    assert "digits_train_step(digits_trainer *t" in (tmp_path / "digits.h").read_text()


def test_built_files_are_newer_than_the_model(tmp_path):
    """Also when nothing in them changed: make-like tools compare times."""
    command = ["build", "mnist", "--board", "host", "--out", str(tmp_path)]
    assert main(command) == 0
    for p in tmp_path.iterdir():
        os.utime(p, (0, 0))
    begin = time.time() - 1
    assert main(command) == 0
    assert all(p.stat().st_mtime > begin for p in tmp_path.iterdir())


def test_ram_overrides_the_boards(tmp_path):
    words = ["build", "mnist", "--board", "stm32", "--out", str(tmp_path)]
    assert main([*words, "--ram", "102400"]) == 0
    assert main([*words, "--ram", "101000"]) == 1


def test_dump_writes_the_graph_after_each_pass(tmp_path):
    dump = tmp_path / "dump"
    assert main(["build", "mnist", "--board", "host", "--out", str(tmp_path / "o"), "--dump", str(dump)]) == 0
    texts = [p.read_text() for p in dump.rglob("*.txt")]
    assert len(texts) >= 4
    assert all("entry " in text for text in texts)


def test_deps_lists_what_the_model_opened(tmp_path):
    (tmp_path / "sizes.txt").write_text("4")
    (tmp_path / "layers.py").write_text("def width():\n    return 3\n")
    (tmp_path / "model.py").write_text(
        "import pathlib, layers\n"
        "import autodiff_gen as ag\n"
        "from autodiff_gen import nn, optim\n"
        "rows = int((pathlib.Path(__file__).parent / 'sizes.txt').read_text())\n"
        "net = nn.Linear(layers.width(), 2)\n"
        "model = ag.Model.supervised(net, input=(rows, 3), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.1))\n"
    )
    expected = sorted(str(tmp_path / name) for name in ("layers.py", "model.py", "sizes.txt"))
    for _ in range(2):  # with and without a cached .pyc
        assert json.loads(run("deps", tmp_path / "model.py")) == {"schema": 1, "files": expected}
    run("build", "model.py", "--name", "net", "--out", "o", cwd=tmp_path)
    listed = json.loads((tmp_path / "o" / "net.deps.json").read_text())
    assert listed == {"schema": 1, "files": expected, "kernels": []}


def test_explain_tells_kernels_arena_peak_bound_and_ram(capsys):
    assert main(["explain", "mnist", "--board", "stm32"]) == 0
    assert "entry train_step" not in capsys.readouterr().out
    assert main(["explain", "mnist", "--board", "stm32", "--full"]) == 0
    text = capsys.readouterr().out
    assert "entry train_step(x: f32[1,784], label: u8[1], lr: f32[])" in text
    assert re.search(r"ag_gemv_f32_\w+ \(m=32 n=784", text)
    assert re.search(r"ag_ger_f32_\w+ \(m=32 n=784", text)
    assert re.search(r"float arena: peak \d+ bytes, 1\.00 x the lower bound of this schedule \(\d+\)", text)
    (size,) = re.findall(r"sizeof\(mnist_trainer\) +(\d+)", text)
    assert int(size) <= 102_400
    assert re.search(rf"RAM budget +{board.load('stm32').ram_bytes}\b", text)


def test_choices_of_kernels_are_shown_in_explain_and_in_the_header(capsys, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('schema=1\nname="mine"\ninherits="stm32"\n[kernels.use]\nger_f32="ref"\n')
    assert main(["explain", "mnist", "--board", str(path)]) == 0
    told = capsys.readouterr().out
    assert "kernel backends by priority: armv7em, ref; for ger_f32: ref\n" in told
    why = "not armv7em, as the board's [kernels.use] lists ref\n"
    assert re.search(rf" +ag_ger_f32_ref \(m=10 n=32\)\n +{re.escape(why)}", told)
    assert "ag_gemv_t_f32_armv7em (m=10 n=32)" in told
    assert main(["build", "mnist", "--board", str(path), "--out", str(tmp_path)]) == 0
    header = (tmp_path / "mnist.h").read_text()
    assert " *   but for ger_f32: ref\n" in header
    assert f" step 8: ag_ger_f32_ref (m=10 n=32)\n *   {why}" in header
    assert main(["explain", "mnist", "--board", str(path), "--kernels", "armv7em"]) == 0
    assert "ag_ger_f32_armv7em" in capsys.readouterr().out  # the command line overrides all


def test_explain_of_a_model_that_does_not_fit_tells_what_is_missing(capsys):
    assert main(["explain", "mnist", "--board", "stm32", "--ram", "1000"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"MISSING +\d+", text)
    assert "0.weight 100352" in text


@pytest.mark.torch
def test_check_names_the_worst_element(capsys):
    assert main(["check", "mnist", "--samples", "5"]) == 0
    text = capsys.readouterr().out
    assert re.search(
        r"0\.weight +\[32, 784\] +finite differences +5 of 25088 .* 0\.weight\[\d+,\d+\] +ok", text
    )
    assert re.search(r"0\.weight +\[32, 784\] +PyTorch +25088 of 25088 .* ok", text)


def test_lists(capsys):
    for command, names in {
        "boards": board.names(),
        "models": [p.parent.name for p in (ROOT / "examples").glob("*/model.py")],
        "ops": [name for name, op in OPS.items() if not isinstance(op.lower, Leaf)],
    }.items():
        assert main([command]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert {line.split()[0] for line in lines} >= set(names)


def test_version_and_help():
    assert run("--version") == f"autodiff_gen {__version__}\n"
    assert "explain" in run("--help")
    for command in ("build", "deps", "check", "explain", "boards", "models", "ops"):
        assert command in run(command, "--help")


def test_boards_needs_neither_numpy_nor_jinja(tmp_path):
    for module in ("numpy", "jinja2"):
        (tmp_path / f"{module}.py").write_text("raise ImportError('not here')\n")
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    assert "stm32" in run("boards", env=env)


def test_a_closed_pipe_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m autodiff_gen explain mnist | head -1"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=ROOT, env=env, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


IMPORTED = {
    "import autodiff_gen as ag; ag.Model, ag.functional, ag.nn": {"autodiff_gen", "numpy"},
    "from autodiff_gen.cli.main import main; assert main({words}) == 0": {
        "autodiff_gen",
        "jinja2",
        "markupsafe",
        "numpy",
    },
}


@pytest.mark.parametrize("statement", IMPORTED, ids=["import", "build"])
def test_what_is_imported(statement, tmp_path):
    words = ["build", "mnist", "--board", "stm32", "--quiet", "--out", str(tmp_path)]
    script = (
        f"import sys; before = set(sys.modules); {statement.replace('{words}', repr(words))}; "
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}; "
        "print(*sorted(m for m in new - set(sys.stdlib_module_names) if not m.startswith('_')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == IMPORTED[statement]


def test_building_a_small_model_is_little_work(tmp_path):
    """Function calls, which took half a second; `./scons bench` measures time."""
    words = ["build", "mnist", "--board", "stm32", "--out", str(tmp_path)]
    assert main(words) == 0
    assert calls(lambda: main(words)) < 400_000
