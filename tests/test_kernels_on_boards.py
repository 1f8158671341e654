"""The kernels that need a core of their own, compared with `ref` on every emulated core that has it."""

import pytest
from c_build import KERNELS
from firmware_build import boards, call, run

from autodiff_gen import backends, board, firmware

LOADED = [backends.load([name], root=KERNELS).backends[0] for name in backends.available(KERNELS)]
TUNED = [
    b for b in LOADED if b.requires and "host" not in b.requires
]  # test_kernels.py has those of the host
PLACES = [
    (backend.name, name)
    for backend in TUNED
    for name in boards()
    if set(backend.requires) <= set(board.load(name).target.features)
]
pytestmark = [pytest.mark.cc, pytest.mark.qemu]


def test_every_backend_has_a_core():
    assert {backend for backend, _ in PLACES} == {b.name for b in TUNED}


@pytest.mark.parametrize(("backend", "place"), PLACES)
def test_kernels_equal_the_reference(backend, place, tmp_path):
    b = board.load(place)
    tables = backends.load([backend, "ref"], features=b.target.features)
    objects = []
    for source in tables.sources():
        objects.append(tmp_path / f"{source.backend}_{source.path.stem}.o")
        compile_one(b, tables, source.path, objects[-1], source.cflags)
    main = tmp_path / "main.o"
    compile_one(b, tables, KERNELS / "compare" / "compare.c", main, (f"-DBACKEND={backend}",))
    elf = tmp_path / "compare.elf"
    support = map(str, firmware.support_sources(b))
    include = [f"-I{path}" for path in firmware.include_dirs(b)]
    command = [
        firmware.tool(b, "gcc"),
        *firmware.compile_flags(b),
        *include,
        *support,
        *map(str, [main, *objects]),
    ]
    call([*command, "-o", str(elf), *firmware.link_flags(b)], tmp_path, 120)
    said = run(place, elf, tmp_path)
    print(f"{backend} on {place}: {said.splitlines()[-1]}")
    assert said.splitlines()[-1].endswith(" cases, 0 wrong")


def compile_one(b, tables, source, output, flags):
    include = [f"-I{path}" for path in (*tables.include_dirs(), *firmware.include_dirs(b))]
    strict = [*firmware.compile_flags(b), *firmware.STRICT_FLAGS, *flags, *include]
    call([firmware.tool(b, "gcc"), *strict, "-c", str(source), "-o", str(output)], output.parent, 120)
