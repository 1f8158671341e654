"""The most stack that a call of a kernel takes on Cortex-M, with all that it calls, by the graph of calls."""

import dataclasses
import subprocess

import pytest
from c_build import KERNELS, RUNTIME
from objects_once import objects
from stack_use import StackUse

from autodiff_gen.kernels import registry
from autodiff_gen.targets import board
from autodiff_gen.targets.build_commands import compile_flags, tool

MOST = 1024  # bytes
PLACES = [("mps2_an386", "speed"), ("mps2_an386", "size"), ("mps3_an547", "speed"), ("mps2_an385", "speed")]


@pytest.mark.cc
@pytest.mark.parametrize(("name", "profile"), PLACES)
def test_no_kernel_takes_more_than_a_kilobyte(name, profile, tmp_path, record_property):
    place = dataclasses.replace(board.load(name), profile=profile)
    tables = registry.load(place.kernels.backends, features=place.target.features, root=KERNELS)
    command = [
        tool(place, "gcc"),
        *compile_flags(place),
        "-g0",  # debug information is not read, and does not change the code
        *(f"-I{d}" for d in (*tables.include_dirs(), RUNTIME)),
    ]
    made = [made for s in tables.sources() for made in objects([*command, *s.cflags], [s.path])]
    library = tmp_path / "library.o"  # functions of the compiler's libraries that the kernels call
    called = StackUse(tool(place, "objdump"), made).missing
    wanted = [f"-Wl,-u,{symbol}" for symbol in sorted(called)]
    link = [tool(place, "gcc"), *place.target.cflags, "-r", "-nostdlib", *wanted, "-lm", "-lc", "-lgcc"]
    subprocess.run([*link, "-o", str(library)], check=True)
    use = StackUse(tool(place, "objdump"), [*made, library])
    assert not use.missing
    kernels = {k.symbol for b in tables.backends for k in b.kernels if k.runs_on(place.target.features)}
    deepest = sorted((use.deepest(symbol) for symbol in kernels), reverse=True)
    record_property("stack", deepest[0][0])
    print(f"{name}, {profile}: {deepest[0][0]} bytes")
    over = [f"{bytes_} bytes: " + " -> ".join(chain) for bytes_, chain in deepest if bytes_ > MOST]
    assert not over, "\n".join([f"more than {MOST} bytes of stack on {name}:", *over])
