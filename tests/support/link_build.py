"""The link's firmware for tests: a model, its NAME_link.c and the generic main program."""

from __future__ import annotations

from pathlib import Path

from firmware_build import REF, call

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.link import link_source
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board, build_commands


def link_program(name, model, folder, *, flags=(), main=None, cc=None):
    """Path of the firmware for board `name`; the program is called `net`."""
    b = board.load(name)
    program = compile_model(model, "net", REF, b)
    sources = {**emit(program), "net_link.c": link_source(program)}
    for file, text in sources.items():
        (folder / file).write_text(text)
    tables = registry.load(REF, features=b.target.features)
    elf = folder / "link.elf"
    include = (folder, *tables.include_dirs(), *build_commands.include_dirs(b))
    command = [
        cc or build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b),
        *build_commands.STRICT_FLAGS,
        "-ffp-contract=off",
        *flags,
        *(f"-I{path}" for path in include),
        *(str(s.path) for s in tables.sources()),
        *map(str, build_commands.support_sources(b)),
        *(str(folder / f) for f in sources if f.endswith(".c")),
        str(main or build_commands.link_main()),
        *("-o", str(elf)),
        *build_commands.link_flags(b, folder / "link.map"),
    ]
    call(command, folder, 120)
    return Path(elf)
