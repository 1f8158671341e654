"""gcc 12 takes the load of a constant vector for 4 bytes: branches over two of them in short functions fell short."""

import pytest
from checkout import ROOT
from firmware_build import board, build_commands, call

from autodiff_gen.codegen.files import emit
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file


@pytest.mark.cc
@pytest.mark.qemu
def test_short_functions_with_constant_vectors_assemble(tmp_path):
    file = load_file("w5")
    program = compile_file(file.made, "w5")
    for name, text in emit(program).items():
        (tmp_path / name).write_text(text)
    b = board.load("mps3_an547")
    include = [f"-I{path}" for path in (*program.backends.include_dirs(), ROOT / "runtime")]
    call(
        [build_commands.tool(b, "gcc"), *build_commands.compile_flags(b), *include, "-c", "w5_params.c"],
        tmp_path,
        60,
    )
