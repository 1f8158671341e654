"""Estimates of cycles by instruction."""

from __future__ import annotations

import pytest
from firmware_build import boards

from autodiff_gen.bench import cycle_model
from autodiff_gen.targets import board


@pytest.mark.parametrize(
    ("core", "code", "expected"),
    [
        ("cortex-m4", ("adds", "r0, r1, r2"), 1),
        ("cortex-m4", ("vfma.f32", "s0, s1, s2"), 3),
        ("cortex-m4", ("vldmia", "r0!, {s0-s7}"), 9),
        ("cortex-m4", ("ldr.w", "r0, [r1]"), 2),
        ("cortex-m4", ("bne.n", "1234"), 2),
        ("cortex-m4", ("bic.w", "r0, r1, #3"), 1),
        ("cortex-m4", ("vdiv.f32", "s0, s1, s2"), 14),
        ("cortex-m4", ("pop", "{r4, r5, pc}"), 6),
        ("cortex-m55", ("vfma.f32", "q0, q1, r2"), 2),
        ("cortex-m55", ("vldrw.u32", "q0, [r1], #16"), 2),
        ("cortex-m7", ("vldmia", "r0!, {s0-s7}"), 4.5),
        ("cortex-a53", ("fmla", "v0.4s, v1.4s, v2.s[0]"), 1),
    ],
)
def test_cycles_of_an_instruction(core, code, expected):
    assert cycle_model.estimate(core, {8: 3}, {8: code}) == 3 * expected


def test_cores_without_a_model_have_no_cycles():
    assert cycle_model.estimate("cortex-x9", {8: 1}, {8: ("nop", "")}) is None
    cores = {board.load(name).target.core for name in boards()}
    assert cores <= cycle_model.CORES.keys()
