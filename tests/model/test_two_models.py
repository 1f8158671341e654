"""Several models in one program, by `export --as` each build system."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from exported_projects import CPP, run, two, unoptimised

from autodiff_gen.cli.main import main
from autodiff_gen.errors import ToolError
from autodiff_gen.model.project.export import export
from autodiff_gen.targets import board


@pytest.mark.cc
@pytest.mark.parametrize(
    "form, build, on",
    [
        ("make", "make -s all run", "host"),
        pytest.param(
            "cmake",
            "cmake -S . -B build && cmake --build build -t run",
            "stm32",
            marks=[pytest.mark.qemu, pytest.mark.slow],
        ),
    ],
)
def test_two_models_in_a_program_in_cpp(form: str, build: str, on: str, tmp_path: Path) -> None:
    """In one with a path that needs quotes; the runtime and each kernel are there once."""
    models, out = two(tmp_path), tmp_path / "it's (2) & more for $5"
    (tmp_path / "main.cpp").write_text(CPP)
    export(models, board.load(on), out, form=form)
    unoptimised(out)
    assert "both trained" in run("sh", "-c", build, cwd=out)
    compiled = [p.name for p in (out / "lib").rglob("*.c")]
    assert len(compiled) == len({*compiled}) and {"ag_main.c", "net.c", "test.c"} < {*compiled}
    assert "serve one model" in (out / "README.md").read_text()


@pytest.mark.cc
def test_two_models_without_a_program_get_one_that_trains_both(tmp_path: Path) -> None:
    export(two(tmp_path), board.load("host"), tmp_path / "out", form="make")
    unoptimised(tmp_path / "out")
    printed = run("make", "-s", "all", "run", cwd=tmp_path / "out")
    for name in ("net", "test"):
        losses = [float(x) for x in re.findall(rf"^{name}: step \d+, loss ([\d.]+)$", printed, re.MULTILINE)]
        assert len(losses) == 10 and losses[-1] < losses[0] / 2


USE = """\
#include "net.h"
#include "test.h"
#include <stdio.h>
static net_trainer net;
static test_trainer test;
int main(void) { return puts(net_strstatus(net_init(&net, 0) + test_init(&test, 0))) < 0; }
"""


@pytest.mark.cc
@pytest.mark.slow
def test_cmake_exports_in_one_project(tmp_path: Path) -> None:
    """As subfolders, and as installed packages; of other boards, or of one name, they are rejected."""
    net, test = two(tmp_path)
    host = board.load("host")
    for name, model, on in (("net", net, host), ("test", test, host), ("board", test, board.load("stm32"))):
        export(model, on, tmp_path / name, form="cmake")
    unoptimised(tmp_path / "net", tmp_path / "test")
    prefix = tmp_path / "a prefix (1)"
    for name in ("net", "test"):
        run("cmake", "-S", name, "-B", f"{name}/build", cwd=tmp_path)
        run("cmake", "--build", f"{name}/build", cwd=tmp_path)
        run("cmake", "--install", f"{name}/build", "--prefix", prefix, cwd=tmp_path)
    ways = {
        "folders": "add_subdirectory(../net net)\nadd_subdirectory(../test test)",
        "packages": "find_package(net 0.1 REQUIRED)\nfind_package(test REQUIRED)",
        "boards": "add_subdirectory(../net net)\nadd_subdirectory(../board board)",
        "names": "add_subdirectory(../net net)\nadd_subdirectory(../net again)",
    }
    said = {}
    for way, lines in ways.items():
        own = tmp_path / way
        own.mkdir()
        (own / "app.c").write_text(USE)
        (own / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.21)\nproject(own C)\n{lines}\n"
            "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE net::net test::test)\n"
        )
        words = ["cmake", "-S", own, "-B", own / "build", f"-DCMAKE_PREFIX_PATH={prefix}"]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        said[way] = " ".join(done.stderr.split())
        if way in ("folders", "packages"):
            assert done.returncode == 0, done.stderr
            run("cmake", "--build", "build", cwd=own)
            assert run("build/app", cwd=own) == "ok\n"
    assert re.search(
        r"test was exported for stm32 with .*, and another model of this project for host with .*: export both",
        said["boards"],
    )
    assert "this project has another model called net: export one of them with --name" in said["names"]


@pytest.mark.parametrize(
    "names, message",
    [
        (["net", "net"], "two models in one program are called 'net' and 'net'"),
        (["net", "Net"], "two models in one program are called 'net' and 'Net'"),
        (["net", "net_params"], "so that both would have a file net_params"),
        (["net", "net_init"], "the models 'net' and 'net_init' both define net_init"),
        (["net"], "--name net: give 2 names, with commas between them"),
    ],
)
def test_models_of_one_program_have_names_of_their_own(
    names: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=message):
        export(["xor", "scalar"], board.load("host"), tmp_path, names, form="make")


def test_two_models_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    done = export(["xor", "tanh4"], board.load("stm32"), tmp_path, ram=600, form="plain")
    assert re.match(r"stm32 has 600 bytes of RAM for trainers, and these take xor_trainer \d+", done.notes[0])


@pytest.mark.parametrize("command", ["train", "hil"])
def test_commands_about_one_model_say_so(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *two(tmp_path), "--board", "host"]) == 2
    assert re.search(rf"unexpected argument '.*test.py': {command} serves one model", capsys.readouterr().err)
