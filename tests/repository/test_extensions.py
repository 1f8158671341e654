"""The cost of one addition: each section "Add ..." of CONTRIBUTING.md is applied to a copy of the project, in as many
files as its table says. The tests that enumerate a registry then find the addition, and the project uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from example_output import printed
from extensions import Copy, edits, sections
from firmware_build import once

SECTIONS = [
    "an elementwise op",
    "an op with a kernel",
    "a kernel of a backend",
    "an optimizer",
    "a board",
    "a chip",
    "a pass",
]


# addition -> (words of the names of its tests, the files that they are in, how many there are at least)
OPS = ("tests/ops/test_ops.py", "tests/ops/test_ops_torch.py", "tests/ops/test_ops_c.py")
TESTS = {
    "an elementwise op": ("tanhshrink", (*OPS, "tests/autodiff/test_vjp_mutations.py"), 9),
    "an op with a kernel": ("logcumsumexp", OPS, 4),
    "a kernel of the contract": ("contract_has_cases", ("tests/check/test_kernel_check.py",), 1),
    "a board": ("mps2_an511", ("tests/targets/test_boards.py",), 1),
    "a board that boots": ("boots and mps2_an511", ("tests/boards/test_support.py",), 1),
    "a chip": ("emcraft_sf2", ("tests/targets/test_boards.py",), 1),
    "a chip that boots": ("boots and emcraft_sf2", ("tests/boards/test_support.py",), 1),
    "a pass": ("strength_reduction", ("tests/passes/test_pass_examples.py",), 1),
    "a pass on random graphs": ("random_graphs", ("tests/passes/test_passes.py",), 1),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy of the project with all additions."""

    def make(folder: Path) -> None:
        made = Copy.made(folder / "project")
        for section in SECTIONS:
            for edit in edits(section):
                edit.apply(made.root)

    return Copy(once(tmp_path_factory, "extended", make) / "project")


def test_every_kind_of_addition_has_a_section() -> None:
    assert sections() == SECTIONS
    table = (ROOT / "CONTRIBUTING.md").read_text()
    promised = dict(re.findall(r"^\| (an? [\w ]+) \| (\d) \|", table, re.MULTILINE))
    files = {section: {e.path for e in edits(section) if not e.is_test} for section in SECTIONS}
    assert promised == {section: str(len(paths)) for section, paths in files.items()}


def test_what_the_sections_show_is_formatted(copy: Copy) -> None:
    python = sorted({e.path for s in SECTIONS for e in edits(s) if e.path.endswith(".py")})
    copy.python("-m", "ruff", "check", "--no-cache", *python)
    copy.python("-m", "ruff", "format", "--no-cache", "--check", *python)


@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.torch
def test_what_enumerates_a_registry_tests_what_was_added(copy: Copy) -> None:
    """In one process, as most of its time would be its start."""
    passed = copy.tests({(words, file) for words, files, _ in TESTS.values() for file in files})
    for addition, (words, files, least) in TESTS.items():
        found = [t for t in passed if t.startswith(files) and all(w in t for w in words.split(" and "))]
        assert len(found) >= least, addition
    collected = copy.python("-m", "pytest", "--collect-only", "-q", "tests/kernels/test_op_kernels.py")
    assert "logcumsumexp" in collected


@pytest.mark.cc
@pytest.mark.parametrize("addition", ["elementwise_op", "op_with_a_kernel", "optimizer", "a_pass"])
def test_it_is_used(copy: Copy, addition: str) -> None:
    copy.use(addition)


def test_an_op_is_listed(copy: Copy) -> None:
    assert "| `tanhshrink` |" in copy.python("-m", "autodiff_gen", "ops", "--markdown")


@pytest.mark.slow
@pytest.mark.cc
def test_a_kernel_of_a_backend(copy: Copy) -> None:
    copy.use("kernel_of_a_backend")
    command = ("-m", "autodiff_gen")
    shown = copy.python(*command, "explain", "sums.py", "--full", "--kernels", "fast,ref")
    assert re.search(r"cumsum.* ag_cumsum_f32_fast \(", shown)
    compared = copy.python(*command, "test-kernels", "fast")
    assert re.search(r"^cumsum_f32 ag_cumsum_f32_fast: \d+ cases right", compared, re.MULTILINE)


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.parametrize("board", ["mps2_an511", "emcraft_sf2"])
def test_firmware_of_a_board_trains_in_qemu_with_the_numbers_of_every_board(copy: Copy, board: str) -> None:
    text = copy.python("-P", "-m", "SCons", "-Q", f"board={board}", "model=xor", "run")
    rows, documented = (
        re.findall(r"^ +(\d+) +(\d\.\d+)$", t, re.MULTILINE)
        for t in (printed(text, "xor", board), (ROOT / "examples" / "xor" / "README.md").read_text())
    )
    assert len(rows) == 11 and rows == documented
