"""What one addition costs: each section "Add ..." of CONTRIBUTING.md is applied to a copy of the project, in as many
files as its table says, and what was added is then found by the tests that enumerate a registry, and used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from example_output import printed
from extensions import Copy, edits, sections

SECTIONS = [
    "an elementwise op",
    "an op with a kernel",
    "a kernel of a backend",
    "an optimizer",
    "a board",
    "a chip",
    "a pass",
]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy.made(tmp_path / "project")


def add(copy: Copy, section: str) -> Copy:
    for edit in edits(section):
        edit.apply(copy.root)
    return copy


def test_every_kind_of_addition_has_a_section() -> None:
    assert sections() == SECTIONS
    table = (ROOT / "CONTRIBUTING.md").read_text()
    promised = dict(re.findall(r"^\| (an? [\w ]+) \| (\d) \|", table, re.MULTILINE))
    files = {section: {e.path for e in edits(section) if not e.is_test} for section in SECTIONS}
    assert promised == {section: str(len(paths)) for section, paths in files.items()}


def test_what_the_sections_show_is_formatted(copy: Copy) -> None:
    for section in SECTIONS:
        add(copy, section)
    python = sorted({e.path for s in SECTIONS for e in edits(s) if e.path.endswith(".py")})
    copy.python("-m", "ruff", "check", "--no-cache", *python)
    copy.python("-m", "ruff", "format", "--no-cache", "--check", *python)


@pytest.mark.cc
@pytest.mark.torch
def test_an_elementwise_op(copy: Copy) -> None:
    add(copy, "an elementwise op")
    files = ("tests/ops/test_ops.py", "tests/ops/test_ops_torch.py", "tests/ops/test_ops_c.py")
    assert copy.tests("tanhshrink", *files, "tests/autodiff/test_vjp_mutations.py") >= 9
    copy.use("elementwise_op")
    assert "| `tanhshrink` |" in copy.python("-m", "autodiff_gen", "ops", "--markdown")


@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.torch
def test_an_op_with_a_kernel(copy: Copy) -> None:
    add(copy, "an op with a kernel")
    files = ("tests/ops/test_ops.py", "tests/ops/test_ops_torch.py", "tests/ops/test_ops_c.py")
    compared = "tests/check/test_kernel_check.py"  # one test, with the cases of the new kernel
    assert copy.tests("logcumsumexp or contract_has_cases", *files, compared) >= 5
    collected = copy.python("-m", "pytest", "--collect-only", "-q", "tests/kernels/test_op_kernels.py")
    assert "logcumsumexp" in collected
    copy.use("op_with_a_kernel")


@pytest.mark.slow
@pytest.mark.cc
def test_a_kernel_of_a_backend(copy: Copy) -> None:
    add(copy, "a kernel of a backend")
    copy.use("kernel_of_a_backend")
    command = ("-m", "autodiff_gen")
    shown = copy.python(*command, "explain", "sums.py", "--full", "--kernels", "fast,ref")
    assert re.search(r"cumsum.* ag_cumsum_f32_fast \(", shown)
    compared = copy.python(*command, "test-kernels", "fast")
    assert re.search(r"^cumsum_f32 ag_cumsum_f32_fast: \d+ cases right", compared, re.MULTILINE)


@pytest.mark.cc
def test_an_optimizer(copy: Copy) -> None:
    add(copy, "an optimizer").use("optimizer")


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.parametrize(("section", "board"), [("a board", "mps2_an511"), ("a chip", "emcraft_sf2")])
def test_a_board(copy: Copy, section: str, board: str) -> None:
    """Its firmware trains a model in QEMU, with the numbers of every board."""
    add(copy, section)
    assert copy.tests(board, "tests/targets/test_boards.py") >= 1
    assert copy.tests(f"{board} and boots", "tests/boards/test_support.py") >= 1
    text = copy.python("-P", "-m", "SCons", "-Q", f"board={board}", "model=xor", "run")
    rows, documented = (
        re.findall(r"^ +(\d+) +(\d\.\d+)$", t, re.MULTILINE)
        for t in (printed(text, "xor", board), (ROOT / "examples" / "xor" / "README.md").read_text())
    )
    assert len(rows) == 11 and rows == documented


@pytest.mark.cc
def test_a_pass(copy: Copy) -> None:
    add(copy, "a pass")
    assert copy.tests("strength_reduction", "tests/passes/test_pass_examples.py") == 1
    assert copy.tests("random_graphs", "tests/passes/test_passes.py") >= 1
    copy.use("a_pass")
