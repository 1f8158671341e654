"""The SCons front door: what an edit rebuilds, what a wrong word says, what a build leaves."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bare_environment import bare_python
from firmware_build import once
from scons_object_cache import environment
from scons_tree import Tree

from autodiff_gen.targets import board as boards
from autodiff_gen.targets import size

KERNELS = {"CC gemv.o", "CC ger.o"}
LINKED = {"AR libnet.a", "LINK firmware.elf"}


@pytest.fixture
def tree(tmp_path: Path, root: Path) -> Tree:
    return Tree.of(root, tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, root: Path) -> tuple[Path, Path]:
    """A folder with a tree that is built for the host, and its copy. What SCons has stored names the folder."""
    folder, copy = (tmp_path_factory.mktemp(name) for name in ("built", "built copy"))
    first = once(tmp_path_factory, "built tree", lambda f: Tree.of(root, f).build())
    shutil.copytree(first, folder, dirs_exist_ok=True)
    Tree(folder).build()
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return folder, copy


@pytest.fixture
def built_tree(built: tuple[Path, Path]) -> Tree:
    """A tree after a build for the host."""
    folder, copy = built
    restore(filecmp.dircmp(copy, folder, ignore=[], hide=[]))
    return Tree(folder)


def restore(trees: filecmp.dircmp[str]) -> None:
    """Make the right folder as the left one; files of the same size and time are left alone."""
    for name in trees.right_only:
        path = Path(trees.right, name)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in (*trees.left_only, *trees.diff_files, *trees.common_funny):
        path, target = Path(trees.left, name), Path(trees.right, name)
        shutil.copytree(path, target) if path.is_dir() else shutil.copy2(path, target)
    assert not trees.funny_files
    for below in trees.subdirs.values():
        restore(below)


def append(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def template(tree: Tree) -> Path:
    return tree.root / "autodiff_gen/codegen/templates/source.c.j2"


# edit, steps that must be taken, steps that must not
EDITS: dict[str, tuple[Callable[[Tree], object], set[str], set[str]]] = {
    "kernel that the model does not call": (
        lambda t: append(t.root / "kernels/ref/gemm.c", "int edited;\n"),
        set(),
        {"GEN net.c", "CC main.o", "CC gemm.o", *LINKED},
    ),
    "model touched": (lambda t: os.utime(t.model / "model.py"), set(), {"GEN net.c"}),
    "comment in the model": (lambda t: append(t.model / "model.py", "# c\n"), {"GEN net.c"}, {"CC net.o"}),
    "learning rate": (
        lambda t: replace(t.model / "model.py", "0.01", "0.02"),
        {"GEN net.c"},
        KERNELS,
    ),
    "module that the model imports": (
        lambda t: replace(t.model / "helper.py", "5", "6"),
        {"GEN net.c", "CC net.o", "CC net_params.o", "CC main.o", *LINKED},
        KERNELS,
    ),
    "data that the model reads": (lambda t: append(t.model / "scale.txt", "\n"), {"GEN net.c"}, KERNELS),
    "folder of the data": (
        lambda t: t.variables.update(AUTODIFF_DATA="elsewhere"),
        {"GEN net.c"},
        KERNELS | {"CC net.o"},
    ),
    "template": (
        lambda t: append(template(t), "/* edited */\n"),
        {"GEN net.c", "CC net.o"},
        KERNELS | {"CC net_params.o", "CC main.o"},
    ),
    "generator source": (
        lambda t: append(t.root / "autodiff_gen/codegen/files.py", "# c\n"),
        {"GEN net.c"},
        KERNELS | {"CC net.o"},
    ),
    "board profile": (lambda t: append(t.root / "boards/host.toml", "# c\n"), {"GEN net.c"}, {"CC net.o"}),
    "kernel table": (
        lambda t: append(t.root / "kernels/ref/kernels.toml", "# c\n"),
        {"GEN net.c"},
        KERNELS | {"CC net.o"},
    ),
    "kernel": (
        lambda t: append(t.root / "kernels/ref/gemv.c", "int edited;\n"),
        {"CC gemv.o", "AR libnet_kernels.a", "LINK firmware.elf"},
        {"GEN net.c", "CC ger.o", "CC net.o"},
    ),
    "kernel moved to another file": (
        lambda t: (t.root / "kernels/ref/gemv.c").rename(t.root / "kernels/ref/row_products.c"),
        {"GEN net.c", "CC row_products.o", "AR libnet_kernels.a", "LINK firmware.elf"},
        {"CC ger.o", "CC net.o"},
    ),
    "batch, so that another kernel is called": (
        lambda t: replace(t.model / "model.py", "(1, 100)", "(2, 100)"),
        {"GEN net.c", "CC gemm.o", "AR libnet_kernels.a", *LINKED},
        KERNELS,
    ),
    "kernel contract": (
        lambda t: append(t.root / "kernels/ag_kernels.h", "\n"),
        KERNELS | {"GEN net.c", "CC net.o"},
        {"CC ag_console.o"},
    ),
    "main program": (
        lambda t: append(t.model / "main.c", "int edited;\n"),
        {"CC main.o", "LINK firmware.elf"},
        KERNELS | {"GEN net.c", "CC net.o"},
    ),
    "header removed": (lambda t: (t.out() / "net.h").unlink(), {"GEN net.c"}, KERNELS | {"CC net.o"}),
    "program removed": (
        lambda t: (t.out() / "firmware.elf").unlink(),
        {"LINK firmware.elf"},
        {"GEN net.c", "CC main.o"},
    ),
}


@pytest.mark.cc
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_rebuilds_what_depends_on_it(built_tree: Tree, edit: str) -> None:
    tree, (change, must, must_not) = built_tree, EDITS[edit]
    change(tree)
    steps = tree.build()
    assert must <= steps, f"not rebuilt: {must - steps}"
    assert not must_not & steps, f"rebuilt for nothing: {must_not & steps}"
    assert tree.build() == set(), "the build after that did something again"


@pytest.mark.cc
def test_a_first_build_makes_everything(tree: Tree) -> None:
    assert {"GEN net.c", *KERNELS, *LINKED} <= tree.build()


@pytest.mark.cc
def test_again_says_up_to_date(built_tree: Tree) -> None:
    tree = built_tree
    done = tree.scons(f"model={tree.model}", "board=host")
    assert done.stdout == "scons: `firmware' is up to date.\n"


@pytest.mark.cc
def test_new_import_is_seen_at_once(built_tree: Tree) -> None:
    tree = built_tree
    (tree.model / "more.py").write_text("LR = 0.01\n")
    replace(tree.model / "model.py", "from helper", "from more import LR\nfrom helper")
    assert "GEN net.c" in tree.build()
    assert tree.build() == set()
    append(tree.model / "more.py", "# c\n")
    assert "GEN net.c" in tree.build()


@pytest.mark.cc
def test_broken_model_leaves_the_last_good_c(built_tree: Tree) -> None:
    tree = built_tree
    names = ("net.c", "net.h", "net_params.c", "net.deps.json")
    good = {n: (tree.out() / n).read_bytes() for n in names}
    append(tree.model / "model.py", "raise ValueError('no such day')\n")
    done = tree.scons(f"model={tree.model}", "board=host")
    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "no such day" in errors[0]
    assert "Traceback" not in done.stdout + done.stderr
    assert {n: (tree.out() / n).read_bytes() for n in names} == good
    replace(tree.model / "model.py", "raise ValueError('no such day')\n", "")
    tree.build()
    assert tree.build() == set()


@pytest.mark.cc
def test_options_build_elsewhere(tree: Tree) -> None:
    plain = tree.build()
    assert tree.build("kernels=ref") == plain
    assert (tree.root / "build/host/net+kernels=ref/net.c").is_file()
    assert tree.build() == set()
    assert len(list((tree.root / "build/host").glob("*/.sconsign*"))) == 2


@pytest.mark.cc
def test_two_builds_at_once(tree: Tree) -> None:
    command = [bare_python(), "-P", "-m", "SCons", "-Q", f"model={tree.model}", "board=host"]
    builds = [subprocess.Popen(command, cwd=tree.root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    texts = [b.communicate(timeout=300)[0] for b in builds]
    assert [b.returncode for b in builds] == [0, 0]
    assert sum("waiting for another build" in t for t in texts) == 1
    assert sum("is up to date" in t for t in texts) == 1


@pytest.mark.cc
def test_clean_removes_one_or_all(built_tree: Tree) -> None:
    tree = built_tree
    tree.build("kernels=ref")
    assert tree.scons("clean", "board=host", f"model={tree.model}").returncode == 0
    assert not tree.out().exists()
    assert (tree.root / "build/host/net+kernels=ref").is_dir()
    done = tree.scons("clean", "firmware", "board=host", f"model={tree.model}")
    assert done.returncode == 0, done.stderr
    assert tree.out().is_dir()
    assert tree.scons("clean").returncode == 0
    assert not (tree.root / "build").exists()


@pytest.mark.cc
def test_run_prints_as_the_program_does_and_fails_with_it(built_tree: Tree) -> None:
    tree = built_tree
    main = tree.model / "main.c"
    replace(main, "    return", '    ag_print("hello\\n");\n    return')
    words = (f"model={tree.model}", "board=host", "run")
    done = tree.scons(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("hello\n")
    replace(main, "return net", "return 5 + net")
    done = tree.scons(*words)
    assert done.returncode != 0
    assert "Error 5" in done.stderr


@pytest.mark.cc
def test_compile_commands_compile(built_tree: Tree, tmp_path: Path) -> None:
    tree = built_tree
    entries = json.loads((tree.out() / "compile_commands.json").read_text())
    assert {Path(e["file"]).name for e in entries} >= {"net.c", "net_params.c", "main.c", "gemm.c"}
    for entry in entries:
        words = [str(tmp_path / "again.o") if w == entry["output"] else w for w in entry["arguments"]]
        subprocess.run(words, cwd=entry["directory"], check=True)
        assert (tmp_path / "again.o").is_file()


@pytest.mark.cc
def test_verbose_prints_whole_commands(tree: Tree) -> None:
    done = tree.scons(f"model={tree.model}", "board=host", "verbose=yes", "run")
    assert re.search(r"^gcc .* -c .*main\.c", done.stdout, re.MULTILINE)
    assert re.search(r"^'/.*/firmware\.elf'$", done.stdout, re.MULTILINE)
    assert "CC    main.o" not in done.stdout


@pytest.mark.cc
def test_poison_has_its_own_folder(tree: Tree) -> None:
    tree.build("poison=yes")
    assert "ag_poison(t->arena" in (tree.root / "build/host/net+poison=yes/net.c").read_text()
    assert not tree.out().exists()


@pytest.mark.cc
def test_model_without_main_builds_the_library(tree: Tree) -> None:
    (tree.model / "main.c").unlink()
    assert "AR libnet.a" in tree.build()
    done = tree.scons(f"model={tree.model}", "board=host", "run")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "error: run: the model has no main.c, so there is no program; train it on data "
    )
    assert ": autodiff-gen train '../my models/net' --board host --data FILE; " in done.stderr


@pytest.mark.qemu
def test_firmware_files_and_sizes(tree: Tree) -> None:
    assert {"COPY firmware.bin", "COPY firmware.hex"} <= tree.build(board="stm32")
    assert tree.build(board="stm32") == set()
    out = tree.out("stm32")
    names = ["net.h", "net.c", "net_params.c", "firmware.elf", "firmware.bin", "firmware.hex", "firmware.map"]
    assert [n for n in names if not (out / n).is_file()] == []
    board = boards.load("stm32")
    used = {u.region: u.used for u in size.usage(board, out / "firmware.elf")}
    table = subprocess.run(
        ["arm-none-eabi-size", "-A", out / "firmware.elf"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split() for line in table.splitlines() if re.match(r"\.\S+\s+\d+\s+\d+$", line)]
    ram = board.memory["sram"]
    last = max(int(a) + int(s) for _, s, a in rows if ram.origin <= int(a) < ram.end)
    assert used["sram"] == last - ram.origin
    assert used["sram"] >= board.stack_bytes
    assert used["flash"] == (out / "firmware.bin").stat().st_size
    done = tree.scons(f"model={tree.model}", "board=stm32", "size")
    assert f"sram    {used['sram']:>12,} of {ram.bytes:>12,} bytes" in done.stdout


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
        "ram=64KB: must be bytes, such as 98304 or 96K, or those of regions, sram=96K,ccm=64K",
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
    (["board=host", "board=stm32"], "board= is given twice: host and stm32"),
    (["python=/no/such"], "python=/no/such: no such program"),
    (["baud=fast"], "baud=fast: must be a number of bits per second, such as 921600"),
    (["baud=921600", "link"], "baud=921600: the port of host has no speed: "),
    (["name=a-b"], "name=a-b: must be a name in C: letters, digits and _"),
    (["pio", "run"], "pio: a target of its own; give the others to a second command"),
    (["model=mnist", "bench", "size"], "bench size: bench is a target of its own; only upload with port="),
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
    board = [] if any(w.startswith("board=") for w in words) else ["board=host"]
    done = example_tree.scons(*board, *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1
    assert not (example_tree.root / "build").exists()


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


@pytest.mark.cc
def test_flags_of_a_board_reach_the_compiler_without_a_shell(tree: Tree, tmp_path: Path) -> None:
    """What a shell would run, SCons would evaluate, or `sh` itself makes the file."""
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
def test_paths_start_in_the_users_folder(tree: Tree) -> None:
    done = tree.scons("model=net/model.py", "board=host", cwd=tree.model.parent)
    assert done.returncode == 0, done.stderr
    assert (tree.out() / "net.c").is_file()


@pytest.mark.cc
def test_nothing_to_do_does_not_start_the_generator(built_tree: Tree, tmp_path: Path) -> None:
    python, started = tmp_path / "python", tmp_path / "started"
    python.write_text(f'#!/bin/sh\necho "$@" >>"{started}"\nexec "{bare_python()}" "$@"\n')
    python.chmod(0o755)
    replace(built_tree.model / "helper.py", "5", "6")
    built_tree.build(f"python={python}")
    assert " build " in started.read_text()
    started.unlink()
    assert built_tree.build(f"python={python}") == set()
    assert not started.exists()
