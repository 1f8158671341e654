"""Kernels compared with `ref`: kernels for a certain core on every emulated core of it, portable ones on
the host and on a core of each kind; host kernels by both compilers, with every width of vectors."""

import pytest
from c_build import HOST, KERNELS, WIDTHS, widths
from firmware_build import boards

from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board

LOADED = [registry.load([name], root=KERNELS).backends[0] for name in registry.available(KERNELS)]
TUNED = [b for b in LOADED if b.kernels and b.name != "ref"]  # fastmath only has functions
CORES = {b.target.core: b.id for b in map(board.load, reversed(boards()))}  # one board of each
KINDS = ("host", "mps2_an385", "virt_a53")  # for portable kernels: the host, no FPU, AArch64
PLACES = [
    (backend.name, name)
    for backend in TUNED
    for name in (sorted([*CORES.values(), "host"]) if backend.requires else KINDS)
    if set(backend.requires) <= set(board.load(name).target.features)
]
WIDE = [
    b.name for b in TUNED if b.requires == ("host",) and not b.ldflags
]  # libraries have their own vectors
pytestmark = [pytest.mark.cc, pytest.mark.qemu, pytest.mark.slow]


def test_every_backend_has_a_core():
    assert {backend for backend, _ in PLACES} == {b.name for b in TUNED}


def all_right(backend, place, compiler="gcc"):
    lines, good = compare(backend, place, compiler)
    assert good, "\n".join(lines)
    kernels = registry.load([backend]).backends[0].kernels
    assert len(lines) == sum(k.runs_on(place.target.features) for k in kernels)


@pytest.mark.parametrize(("backend", "place"), PLACES)
def test_kernels_equal_the_reference(backend, place):
    all_right(backend, board.load(place))


@pytest.mark.parametrize("backend", [backend for backend, name in PLACES if name == "host"])
def test_by_the_other_compiler(backend):
    all_right(backend, board.load("host"), HOST[1])


@pytest.mark.parametrize("width", [w for w in widths() if w])
@pytest.mark.parametrize("backend", WIDE)
def test_with_wider_vectors(backend, width, tmp_path):
    path = tmp_path / f"{width}.toml"
    flags = ", ".join(f'"{flag}"' for flag in WIDTHS[width])
    features = board.load(f"host_{width}").target.features
    listed = ", ".join(f'"{feature}"' for feature in sorted(features))
    target = f"[target]\nfeatures = [{listed}]\ncflags = [{flags}]\n"
    path.write_text(f'schema = 1\nname = "host"\ninherits = "host"\n{target}')
    all_right(backend, board.load(str(path)))
