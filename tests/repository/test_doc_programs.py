"""The pages about models and the runtime: their programs run, and their tables are complete."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

from autodiff_gen.cli.build import FORMATS
from autodiff_gen.cli.main import main
from autodiff_gen.model.loader import load_model
from autodiff_gen.model.model import Model

sys.path.insert(0, str(ROOT / "site_scons"))
from site_tools import train

MODEL = (ROOT / "docs" / "model.md").read_text()
RUNTIME = (ROOT / "docs" / "runtime.md").read_text()
HEADERS = ("ag_console.h", "ag_flash.h", "ag_main.h", "ag_samples.h", "ag_store.h", "ag_system.h")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(text: str, language: str) -> str:
    (found,) = blocks(text, language)
    return found


@pytest.mark.cc
def test_the_program_of_the_page_about_models_runs(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(blocks(MODEL, "python")[0])
    (tmp_path / "main.c").write_text(block(MODEL, "c"))
    assert (
        main(["build", str(tmp_path / "net.py"), "--board", "host", "--quiet", "--out", str(tmp_path)]) == 0
    )
    folders = [tmp_path, ROOT / "kernels", ROOT / "kernels/ref", ROOT / "runtime"]
    sources = [*tmp_path.glob("*.c"), ROOT / "kernels/ref/gemv.c", ROOT / "boards/support/host/system.c"]
    sources += [ROOT / f"runtime/{name}.c" for name in ("ag_console", "ag_format", "ag_main")]
    words = ["gcc", "-O1", "-fno-strict-aliasing", *(f"-I{f}" for f in folders), *map(str, sources)]
    program = tmp_path / "program"
    done = subprocess.run([*words, "-lm", "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"loss \d\.\de-0[3-9]\n", said)


@pytest.mark.cc
def test_a_loss_and_an_optimizer_of_ones_own_train(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(blocks(MODEL, "python")[1])
    trainer = load_model(str(tmp_path / "net.py"))[0].on_host()
    x = np.float32([[0.1, 0.9], [0.4, 0.2], [0.8, 0.7], [0.3, 0.6]])
    losses = [trainer.train_step(x, x.sum(axis=1, keepdims=True)) for _ in range(100)]
    assert losses[-1] < losses[0] / 20
    assert "0.weight.mean" in trainer.state_dict()
    far = trainer.predict(x) + np.float32([[1000], [-1000], [90], [-90]])
    assert trainer.train_step(x, far) == pytest.approx(2180 / 4 - np.log(2))


@pytest.mark.cc
def test_the_program_of_the_page_about_checkpoints_resumes(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import autodiff_gen as ag\n"
        "from autodiff_gen import nn, optim\n"
        "net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))\n"
        "model = ag.Model.supervised(net, (1, 2), nn.MSELoss(), optim.SGD(lr=0.1))\n"
    )
    (tmp_path / "main.c").write_text(block((ROOT / "docs" / "store.md").read_text(), "c"))
    command = ["build", str(tmp_path / "net.py"), "--board", "host", "--quiet", "--out", str(tmp_path)]
    assert main([*command, "--kernels", "ref"]) == 0
    folders = [tmp_path, ROOT / "kernels", ROOT / "kernels/ref", ROOT / "runtime"]
    sources = [*tmp_path.glob("*.c"), *(ROOT / "boards/support/host").glob("*.c")]
    names = ("console", "flash_file", "format", "main", "store", "store_records", "store_notes")
    sources += [ROOT / f"runtime/ag_{name}.c" for name in names] + [*(ROOT / "kernels/ref").glob("ge*.c")]
    words = [
        "gcc",
        "-O1",
        "-Werror",
        "-fno-strict-aliasing",
        *(f"-I{f}" for f in folders),
        *map(str, sources),
    ]
    program = tmp_path / "program"
    done = subprocess.run([*words, "-lm", "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    runs = [
        subprocess.run([str(program)], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs == ["10 steps\n", "resumed\n20 steps\n"]


def test_every_option_of_a_model_is_described() -> None:
    listed = re.findall(r"^\| `(\w+)` \| .* \|$", MODEL, re.MULTILINE)
    parameters = inspect.signature(Model).parameters.values()
    assert listed == [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def test_every_target_and_format_of_a_project_is_described() -> None:
    text = (ROOT / "docs" / "projects.md").read_text()
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    cells = {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
    assert cells >= {*FORMATS, *train.TARGETS}


@pytest.mark.parametrize("header", HEADERS)
def test_every_function_of_the_runtime_is_described(header: str) -> None:
    text = (ROOT / "runtime" / header).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    declared = re.findall(r"^(?!typedef)\w[\w ]*?[ *](ag_\w+)\(([^;]*)\);", text, re.MULTILINE)
    assert declared
    rows = {
        function: arguments
        for cell in re.findall(rf"^\| (.*?) \| `{re.escape(header)}` \|", RUNTIME, re.MULTILINE)
        for function, arguments in re.findall(r"`(ag_\w+)\((.*?)\)`", cell)
    }
    names = {f: re.findall(r"(\w+)(?:,|$)", "" if a == "void" else a) for f, a in declared}
    assert {f: a.split(", ") if a else [] for f, a in rows.items()} == names
