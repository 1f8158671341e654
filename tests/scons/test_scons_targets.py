"""The SCons front door: what its targets and options build, print and leave."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from bare_environment import bare_python
from edited_files import replace
from scons_tree import Tree

from autodiff_gen.targets import board as boards
from autodiff_gen.targets import size


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


@pytest.mark.cc
def test_paths_start_in_the_users_folder(tree: Tree) -> None:
    done = tree.scons("model=net/model.py", "board=host", cwd=tree.model.parent)
    assert done.returncode == 0, done.stderr
    assert (tree.out() / "net.c").is_file()
