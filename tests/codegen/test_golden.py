"""Golden files: the C of five examples with `ref`, without parameters; for two, with every other list that a board
names, the lines that differ; by the costs of the host. The C of all examples on all boards is compared by
`./scons diff-generated`."""

import difflib
import functools
import shutil
from dataclasses import replace

import pytest
from checkout import ROOT

from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board

GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = ("gesture", "lenet", "mnist", "scalar", "xor")
LISTS = {board.load(name).kernels.backends: name for name in board.names()}
GOLDENS = [(e, k) for e in EXAMPLES for k in LISTS if k == ("ref",) or e in ("lenet", "mnist")]


def golden_folder(example, kernels):
    return GOLDEN / f"{example}+{'+'.join(kernels)}"


@functools.cache
def with_ref(example):
    return emit(compile_file(load_file(example).made, example, ("ref",), board.load("host"), ram=1 << 30))


def without_parameters(example, files):
    return {name: text for name, text in files.items() if name != f"{example}_params.c"}


def as_stored(example, kernels, files):
    """The files of `ref` without parameters; of other kernels one file of the lines that differ, `-` for ref's."""
    files = without_parameters(example, files)
    if kernels == ("ref",):
        return files
    lines = []
    for name, text in without_parameters(example, with_ref(example)).items():
        changed = difflib.unified_diff(text.splitlines(), files[name].splitlines(), lineterm="", n=0)
        lines += [name, *(line for line in list(changed)[2:] if not line.startswith("@@"))]
    return {f"{example}.diff": "\n".join(lines) + "\n"}


@pytest.mark.parametrize(("example", "kernels"), GOLDENS, ids=lambda v: v if type(v) is str else "+".join(v))
def test_golden(example, kernels, request):
    chosen = board.load("host" if kernels == ("ref",) else LISTS[kernels])
    target = replace(chosen, cost=registry.host_cost())
    compiled = compile_file(load_file(example).made, example, kernels, target, ram=1 << 30)
    files, folder = as_stored(example, kernels, emit(compiled)), golden_folder(example, kernels)
    if request.config.getoption("--update-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert sorted(p.name for p in folder.glob("*")) == sorted(files), (
        "run pytest --update-golden, read the diff"
    )
    for name, text in files.items():
        assert text == (folder / name).read_text(encoding="utf-8"), (
            f"{name}: pytest --update-golden, read the diff"
        )


@pytest.mark.parametrize("board_name", board.names())
def test_golden_files_are_what_every_board_gets_of_the_same_costs(board_name):
    target = replace(board.load(board_name), cost=registry.host_cost())
    kernels = target.kernels.backends
    files = emit(compile_file(load_file("mnist").made, "mnist", kernels, target))
    for name, text in as_stored("mnist", kernels, files).items():
        assert text == (golden_folder("mnist", kernels) / name).read_text(encoding="utf-8"), name


def test_no_golden_folder_is_left_over():
    assert set(GOLDEN.iterdir()) == {golden_folder(*case) for case in GOLDENS}
