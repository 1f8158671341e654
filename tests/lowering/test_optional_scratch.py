"""Scratch memory that kernels can do without: granted where the arena has room while a step runs, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen import compiler as codegen
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.lowering.plan import EntryPlan, PlannedStep

ROW = """
[[kernel]]
name = "{name}"
symbol = "{name}_mine"
source = "mine.c"
scratch = "{bytes}"
scratch_optional = true
"""
# Both use all of their memory.
SOURCE = """\
#include "ag_kernels.h"

#include <string.h>

ag_conv2d_f32_fn conv2d_f32_mine;
ag_conv2d_dx_f32_fn conv2d_dx_f32_mine;

void conv2d_f32_mine(const float *x, const float *w, float *y, int32_t n, void *scratch,
                     const ag_conv2d_shape *s, const ag_epilogue *epilogue) {
    if (scratch != NULL) {
        memset(scratch, 0xff, (size_t)(32 * s->kh * s->kw * s->c));
    }
    ag_conv2d_f32_ref(x, w, y, n, NULL, s, epilogue);
}

void conv2d_dx_f32_mine(const float *dy, const float *w, float *dx, int32_t n, void *scratch,
                        const ag_conv2d_shape *s) {
    if (scratch != NULL) {
        memset(scratch, 0xff, (size_t)(4 * n * s->o * s->h));
    }
    ag_conv2d_dx_f32_ref(dy, w, dx, n, NULL, s);
}
"""
INPUT = (6, 3, 12, 12)
# the memory that the program may take, as a share of its memory without a limit
LIMITS: dict[str, Any] = {"no limit": None, "micro-batches": 0.5, "regions": {"main": 0.7, "more": 0.4}}


def model() -> ag.Model:
    layers: list[Any] = []
    for c, o in ((3, 8), (8, 16), (16, 4)):
        layers += [nn.Conv2d(c, o, 3, padding=1), nn.Tanh()]
    net = nn.Sequential(*layers, nn.AvgPool2d(12), nn.Flatten(), nn.Linear(4, 3))
    return ag.Model.supervised(net, input=INPUT, loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kernels") / "mine"
    made.mkdir()
    rows = {"conv2d_f32": "32 * kh * kw * c", "conv2d_dx_f32": "4 * n * o * h"}
    table = "schema = 1\n" + "".join(ROW.format(name=name, bytes=size) for name, size in rows.items())
    (made / "kernels.toml").write_text(table)
    (made / "mine.c").write_text(SOURCE)
    return made


def limit(share: Any) -> Any:
    whole = compile_model(model(), "m").struct_bytes
    if isinstance(share, dict):
        return {name: int(part * whole) // 4 * 4 for name, part in share.items()}
    return share and int(share * whole)


def steps(program: Program) -> list[tuple[EntryPlan, PlannedStep]]:
    plans = [plan for e in program.entries for plan in e.plan.all_plans()]
    return [(plan, step) for plan in plans for step in plan.steps]


@pytest.mark.parametrize("name", LIMITS)
def test_it_is_where_nothing_else_is_and_nothing_grows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kernels, ram = [str(folder), "ref"], limit(LIMITS[name])
    program = compile_model(model(), "m", kernels, ram=ram)
    with monkeypatch.context() as patch:
        patch.setattr(codegen, "grant_scratch", lambda plans, alignment: None)
        without = compile_model(model(), "m", kernels, ram=ram)
    assert program.struct_bytes == without.struct_bytes
    granted, rejected, inner = 0, 0, 0
    for plan, step in steps(program):
        for node, (call, kernel) in step.calls.items():
            if not kernel.scratch_optional:
                continue
            size = call.scratch(kernel.scratch)
            own = [b for b in plan.placed if b.values == [step.memory.get(node)]]
            assert [(b.owner, b.bytes, b.start, b.end) for b in own] in (
                [],
                [(step, size, step.number, step.number)],
            )
            for arena in plan.plans.keys() - {"int"}:
                used = bytearray(plan.plans[arena].peak)
                for b in plan.placed:
                    if b.arena_name == arena and b.start <= step.number <= b.end:
                        assert b.offset % 4 == 0 and b.offset + b.bytes <= len(used)
                        of_it = used[b.offset : b.offset + b.bytes]
                        assert b not in own or not any(of_it)
                        used[b.offset : b.offset + b.bytes] = b"\1" * b.bytes
                assert own or bytes(size) not in bytes(used)
            granted, rejected = granted + len(own), rejected + (not own)
            inner += bool(own) and all(plan is not e.plan for e in program.entries)
    assert granted and rejected and (inner > 0) == (name == "micro-batches")
    if name == "regions":
        assert len(program.regions) == 2


@pytest.mark.cc
@pytest.mark.parametrize("name", LIMITS)
def test_kernels_that_write_it_change_no_number(folder: Path, name: str) -> None:
    ram, compiler = limit(LIMITS[name]), Compiler(find_compiler(), "-O1")
    both = [
        Trainer(compile_model(model(), "m", kernels, ram=ram), compiler)
        for kernels in ([str(folder), "ref"], ["ref"])
    ]
    random = np.random.default_rng(2)
    for _ in range(3):
        x, t = random.standard_normal(INPUT).astype(np.float32), random.integers(0, 3, 6)
        mine, plain = (trainer.train_step(x, t) for trainer in both)
        assert mine == plain
        assert np.array_equal(*(trainer.predict(x) for trainer in both))
