"""The SCons front door: messages for wrong words and for tools that the machine does not have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scons_object_cache import environment
from scons_tree import Tree

from autodiff_gen.targets import board as boards

WRONG = [
    (["tests"], "unknown target 'tests'; did you mean test? (known: firmware, run, "),
    (["kernals=ref"], "unknown option 'kernals='; did you mean kernels=? (known: board=, "),
    (["board=stm23"], "unknown board 'stm23'; did you mean 'stm32'? (known: "),
    (["board=no/such.toml"], "board file "),
    (["model=mnits"], "unknown model 'mnits'"),
    (["model=no/such.py"], "unknown model 'no/such.py'"),
    (["kernels=reff"], "unknown kernel backend 'reff'; did you mean 'ref'? (known: "),
    (["kernels="], "kernels= is empty"),
    (["kernels=ref,ref"], "backend 'ref' is listed after 'ref'"),
    (
        ["ram=64KB"],
        "ram=64KB: must be bytes, such as 98304 or 96K, or bytes of each region, sram=96K,ccm=64K",
    ),
    (["verbose=on"], "verbose=on: must be yes or no"),
    (["poison=on"], "poison=on: must be yes or no"),
    *(
        (["fleet", f"{key}={value}"], f"fleet: {key}= is for other targets")
        for key, value in (
            ("board", "stm32"),
            ("steps", "9"),
            ("seed", "1"),
            ("kernels", "ref"),
            ("ram", "96K"),
        )
    ),
    (["fleet", "python=/no/such"], "python=/no/such: no such program"),
    (
        ["fleet", f"python={sys.executable}", "args=--synchronous --rounds 2"],
        "--rounds has no effect with --synchronous: say --epochs or --steps",
    ),
    (["board=host", "board=stm32"], "board= is given twice: host and stm32"),
    (["python=/no/such"], "python=/no/such: no such program"),
    (["baud=fast"], "baud=fast: must be a number of bits per second, such as 921600"),
    (["baud=921600", "link"], "baud=921600: the port of host has no speed: "),
    (["name=a-b"], "name=a-b: must be a name in C: letters, digits and _"),
    (["pio", "run"], "pio: it runs without other targets; give them to a second command"),
    (
        ["model=mnist", "bench", "size"],
        "bench size: bench runs without other targets; only upload with port=",
    ),
    (
        ["model=mnist", "link", "run"],
        "link run: the firmware of the link waits for a host; autodiff-gen train ",
    ),
    (["test", "args='open"], "args='open: cannot be split into words: No closing quotation"),
]


def test_a_board_that_the_sconstruct_does_not_build_for_is_named(root: Path, tmp_path: Path) -> None:
    tool = f'tools=["train"], toolpath=["{root}/site_scons/site_tools"], AUTODIFF_BOARD="stm32"'
    (tmp_path / "SConstruct").write_text(f'Environment({tool}).TrainFirmware("build/net", "net.py")\n')
    (tmp_path / "net.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "SCons", "-Q", "board=host", "run"],
        cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "board=host: the SConstruct builds for stm32; let the command line choose: " in done.stderr
    assert list(tmp_path.rglob("*.c")) == []


def test_a_folder_that_scons_would_substitute_is_named(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a $(x)"
    folder.mkdir()
    tool = f'tools=["train"], toolpath=["{root}/site_scons/site_tools"], AUTODIFF_BOARD="host"'
    (folder / "SConstruct").write_text(f'Environment({tool}).TrainFirmware("build/net", "net.py")\n')
    (folder / "net.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "SCons", "-Q"],
        cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2 and f"{folder}: SCons cannot build where a path has $( or $)" in done.stderr


@pytest.fixture(scope="module")
def example_tree(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Tree:
    tree = Tree.of(root, tmp_path_factory.mktemp("wrong words"))
    shutil.copytree(tree.model, tree.root / "examples/mnist")
    return tree


@pytest.mark.cc
@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(w) for w, _ in WRONG])
def test_wrong_word_gives_one_line(example_tree: Tree, words: list[str], message: str) -> None:
    board = [] if any(w.startswith("board=") or w == "fleet" for w in words) else ["board=host"]
    done = example_tree.scons(*board, *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert not (example_tree.root / "build").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["args=--stepz 3"], "error: unknown option '--stepz'; did you mean '--steps'?"),
        (["boards=0"], "error: argument --boards: "),
        (["args=--steps 3"], ""),
    ],
)
def test_words_of_a_fleet_are_checked_before_its_environment_is_made(
    example_tree: Tree, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTODIFF_CHECK", "yes")
    done = example_tree.scons("fleet", *words)
    assert done.returncode == bool(message) and done.stdout == ""
    assert done.stderr.startswith(message) and done.stderr.count("\n") == bool(message)


def test_lists(example_tree: Tree) -> None:
    assert example_tree.scons("models").stdout == "mnist\n"
    _, _, *names = [line.split()[0] for line in example_tree.scons("boards").stdout.splitlines()]
    assert names == boards.names()
    text = example_tree.scons("help").stdout
    assert all(word in text for word in ("firmware", "upload", "kernels=", "python="))


@pytest.mark.cc
def test_missing_compiler_names_the_packages(example_tree: Tree, tmp_path: Path) -> None:
    board = tmp_path / "odd.toml"
    board.write_text('schema = 1\nname = "odd"\ninherits = "host"\n[toolchain]\nprefix = "odd-none-"\n')
    done = example_tree.scons(f"board={board}")
    assert done.returncode == 1
    assert done.stderr == (
        "error: board odd: odd-none-gcc is not installed; run: sudo apt-get install -y "
        "--no-install-recommends gcc libc6-dev\n"
    )


@pytest.mark.cc
def test_python_without_numpy_names_the_command(example_tree: Tree, tmp_path: Path) -> None:
    python = tmp_path / "a python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'numpy'\" >&2\nexit 1\n")
    python.chmod(0o755)
    done = example_tree.scons("board=host", f"python={python}")
    assert done.returncode == 1
    requirements = example_tree.root / "requirements/runtime.txt"
    assert done.stderr == (
        f"error: {python} cannot run the generator (ModuleNotFoundError: No module named 'numpy'); "
        f"run: '{python}' -m pip install -r '{requirements}'\n"
    )


@pytest.mark.qemu
def test_missing_emulator_names_the_packages(tree: Tree, tmp_path: Path) -> None:
    board = tmp_path / "odd.toml"
    board.write_text(
        'schema = 1\nname = "odd"\ninherits = "mps2_an386"\n[qemu]\nbinary = "qemu-system-odd"\n'
    )
    done = tree.scons(f"model={tree.model}", f"board={board}", "run")
    assert done.returncode != 0
    assert "error: qemu-system-odd is not installed; run: sudo apt-get install -y " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cc
def test_upload_says_what_is_missing(tree: Tree) -> None:
    done = tree.scons(f"model={tree.model}", "board=host", "upload")
    assert done.returncode != 0
    assert done.stderr.startswith("error: board host: ")
    assert "[upload]" in done.stderr.splitlines()[0]


@pytest.mark.cc
def test_flags_of_a_board_reach_the_compiler_without_a_shell(tree: Tree, tmp_path: Path) -> None:
    """Names that a shell would run, SCons would evaluate, or with which `sh` itself makes the file."""
    made, board, shell = tmp_path / "made", tmp_path / "evil.toml", tmp_path / "bin" / "sh"
    shell.parent.mkdir()
    shell.write_text(f'#!/bin/bash\ntouch "{made}"\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    tree.variables["PATH"] = f"{shell.parent}:{os.environ['PATH']}"
    hostile = [f"$(touch {made})", f"`touch {made}`", f"1; touch {made}", "'a'  \"b;\" $)"]
    hostile.append(f"${{__import__('os').system('touch {made}')}}")
    flags = [f"-DNOT_READ_{k}={text}" for k, text in enumerate(hostile)]
    text = f'schema = 1\nname = "evil"\ninherits = "host"\n[target]\ncflags = {json.dumps(flags)}\n'
    board.write_text(text)
    words = [f"model={tree.model}", f"board={board}"]
    rejected = tree.scons(*words)
    assert rejected.returncode == 1 and rejected.stdout == "" and not made.exists()
    assert rejected.stderr.startswith(f"error: {board}: target.cflags: '-DNOT_READ_0=$(touch ")
    done = tree.scons(*words, "trust_board=yes")
    assert done.returncode == 0, done.stderr
    assert not made.exists()
    commands = json.loads((tree.out("evil") / "compile_commands.json").read_text())
    assert all(set(flags) <= set(entry["arguments"]) for entry in commands)
