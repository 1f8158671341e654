"""docs/adding-a-kernel.md: its blocks, as a reader would type them, have the effect that the text says."""

import re

import pytest
from checkout import ROOT
from documented_numbers import agrees
from firmware_build import copy_of_the_project, once, scons

from autodiff_gen.cli.main import main

DOC_NAME = "docs/adding-a-kernel.md"
DOC = (ROOT / DOC_NAME).read_text()
pytestmark = [pytest.mark.cc, pytest.mark.qemu]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", DOC, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a reader") / "mine"
    folder.mkdir()
    table, board = blocks("toml")
    (folder / "gemv.c").write_text(blocks("c")[0])
    (folder / "kernels.toml").write_text(table)
    (folder.parent / "board.toml").write_text(board)
    return folder


@pytest.mark.parametrize("name", ["host", "mps2_an386"])
def test_it_is_right(mine, name, capsys, pytestconfig):
    assert main(["test-kernels", str(mine), "--board", name]) == 0
    said, shown = capsys.readouterr().out, blocks("text")[0]
    number = r"\d+(?:\.\d+)?(?:e-\d+)?"
    assert re.sub(number, "", said) == re.sub(number, "", shown)
    if name != "host":
        numbers = zip(*(map(float, re.findall(number, text)) for text in (shown, said)), strict=True)
        for k, (written, measured) in enumerate(numbers):
            assert agrees(f"{DOC_NAME}: number {k} of test-kernels", written, measured, pytestconfig), said


def test_it_is_taken_where_its_condition_holds(mine, capsys):
    assert main(["explain", "mnist", "--board", "mps2_an386", "--kernels", f"{mine},ref"]) == 0
    assert blocks("text")[1] in capsys.readouterr().out


def test_the_board_file_takes_it_for_one_kernel(mine, capsys):
    assert main(["explain", "mnist", "--board", str(mine.parent / "board.toml")]) == 0
    told = capsys.readouterr().out
    assert "ag_gemv_f32_mine of mine (m=32 n=784" in told and "ag_gemv_f32_armv7em (m=10 n=32)" in told
    assert "ag_ger_f32_armv7em (m=10 n=32)" in told


def test_the_benchmark_counts_what_the_text_says(mine, tmp_path_factory, pytestconfig):
    tree = once(tmp_path_factory, "tree", copy_of_the_project)
    said = scons(tree, "board=mps2_an386", f"kernels={mine},ref", "bench-kernels")
    measured = re.search(r"gemv +32x784 +([\d,]+) .* (\d\.\d\d)  ag_gemv_f32_mine", said).groups()
    written = re.search(r"^\| this one \| ([\d,]+) \| (\d\.\d\d) \|$", DOC, re.MULTILINE).groups()
    for unit, *both in zip(("instructions", "per multiply-accumulate"), written, measured, strict=True):
        numbers = [float(text.replace(",", "")) for text in both]
        assert agrees(f"{DOC_NAME}: {unit}", *numbers, pytestconfig), said
