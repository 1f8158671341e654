"""The SCons front door: rebuilds after an edit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from bare_environment import bare_python
from edited_files import append, replace
from scons_tree import Tree

KERNELS = {"CC gemv.o", "CC ger.o"}
LINKED = {"AR libnet.a", "LINK firmware.elf"}


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
