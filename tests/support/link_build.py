"""The link's firmware for tests: a model, its NAME_link.c and the generic main program."""

from __future__ import annotations

from firmware_build import REF
from firmware_build import program as build_program

from autodiff_gen.codegen.board_link_source import link_source
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board, build_commands


def link_program(name, model, folder, *, flags=(), main=None, cc=None, ram=None):
    """Path of the firmware for board `name`; the program is called `net`. `ram`: as in compile_model."""
    b = board.load(name)
    program = compile_model(model, "net", REF, b, ram)
    sources = {**emit(program), "net_link.c": link_source(program)}
    for file, text in sources.items():
        (folder / file).write_text(text)
    tables = registry.load(REF, features=b.target.features)
    elf = folder / "link.elf"
    kernels = [s.path for s in tables.sources(program.kernels)]
    own = [*(folder / f for f in sources if f.endswith(".c")), main or build_commands.link_main()]
    return build_program(b, tables, kernels, own, elf, cc=cc, flags=flags, include=[folder])
