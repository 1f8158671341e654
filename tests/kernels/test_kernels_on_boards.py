"""Kernels compared with `ref`: those that need a core of their own on every emulated core that has it, portable ones on
the host and on a core of each kind."""

import pytest
from c_build import KERNELS
from firmware_build import boards

from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board

LOADED = [registry.load([name], root=KERNELS).backends[0] for name in registry.available(KERNELS)]
TUNED = [  # test_kernels.py has the host's; fastmath brings functions alone
    b for b in LOADED if b.kernels and b.name != "ref" and "host" not in b.requires
]
MACHINES = {
    (b.qemu.machine, b.qemu.cpu): b.id for b in map(board.load, reversed(boards()))
}  # one board of each
KINDS = ("host", "mps2_an385", "virt_a53")  # for what is portable: the host, no FPU, AArch64
PLACES = [
    (backend.name, name)
    for backend in TUNED
    for name in (sorted(MACHINES.values()) if backend.requires else KINDS)
    if set(backend.requires) <= set(board.load(name).target.features)
]
pytestmark = [pytest.mark.cc, pytest.mark.qemu]


def test_every_backend_has_a_core():
    assert {backend for backend, _ in PLACES} == {b.name for b in TUNED}


@pytest.mark.parametrize(("backend", "place"), PLACES)
def test_kernels_equal_the_reference(backend, place):
    lines, good = compare(backend, board.load(place))
    assert good, "\n".join(lines)
    assert len(lines) == len(registry.load([backend]).backends[0].kernels)
