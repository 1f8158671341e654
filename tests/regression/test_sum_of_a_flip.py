"""GCC 12.2 at -O3 adds up wrong terms of an in-order sum whose loads are permuted: sums of flips were wrong."""

from __future__ import annotations

import numpy as np
import pytest
from generated_c import Running, library_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function

pytestmark = pytest.mark.cc

SUMS = {
    "inner": lambda x: F.sum(F.flip(x, (2,))),
    "outer": lambda x: F.sum(F.flip(x, (1,))),
    "both": lambda x: F.sum(F.flip(x, (1, 2)) * 0.3),
    "all": lambda x: F.sum(F.flip(x, (0, 1, 2)), (1, 2)),
    "kept_outer": lambda x: F.sum(F.flip(x, (0,)), (1, 2)),
    "kept_inner": lambda x: F.sum(F.flip(x, (2,)), (0, 1)),
    "kept_all": lambda x: F.sum(F.flip(x, (0, 1, 2)), (0, 1)),
    "of_functions": lambda x: F.mean(F.square(F.relu(F.flip(x, (1, 2)) - 0.1))),
    "transposed": lambda x: F.sum(F.permute(F.reshape(x, (3, 5, 2, 2)), (0, 1, 3, 2))),
    "backwards": lambda x: F.sum(x[:, ::-1, 3:1:-1], (1, 2)),
    "product": lambda x: F.sum(F.flip(x, (1, 2)) * F.flip(x, (0,)), (1, 2)),
}


def test_sums_have_the_same_bits_at_all_levels() -> None:
    x = ag.Input("x", (3, 5, 4))
    numbers = (1.0 / np.arange(3, 63, dtype=np.float32)).reshape(x.shape)
    programs = [
        compile_function(ag.function([x], [made(x)]), f"sum_{k}", ("ref",)) for k, made in SUMS.items()
    ]
    found = [
        [Running(library, p).call(p.entries[0], {x: numbers}, 1)["out0"].tobytes() for p in programs]
        for library in (library_of(programs, level, "gcc") for level in ("-O0", "-O3"))
    ]
    assert dict(zip(SUMS, found[0], strict=True)) == dict(zip(SUMS, found[1], strict=True))
