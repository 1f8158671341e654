"""An index is checked as it is used: after all that is computed of the inputs, and before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.codegen.compiler import compile_functions
from autodiff_gen.errors import AutodiffError, ShapeError
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import _Compiled
from autodiff_gen.ir.index_ranges import range_of
from autodiff_gen.ir.node import Value

C, N = 5, 4
FITS = [0, 1, 2, 4]
MISSING = [-1, 1, 2, 4]
ABOVE = [0, 1, 2, 5]


def _losses(z: Value, y: Value, **options: Any) -> Value:
    return F.cross_entropy(z, y, reduction="none", **options)


def _in_scan(z: Value, y: Value) -> Value:
    """The rows of z are read in a loop, whose index is repaired there."""
    _, rows = F.scan(
        lambda h, i: (h, F.embedding(F.where(F.lt(i, 0), 0, i), z.T)), np.zeros(1, np.float32), y
    )
    return rows


# The expression, the same in PyTorch, labels that it takes, and labels that it rejects.
ROWS: dict[str, tuple[Callable[[Value, Value], Value], str, Sequence[Any], Sequence[Any]]] = {
    "clamp": (lambda z, y: _losses(z, y.clamp(min=0)), "L(z, y.clamp(min=0))", [FITS, MISSING], [ABOVE]),
    "both limits": (
        lambda z, y: _losses(z, y.clamp(0, 4)),
        "L(z, y.clamp(0, 4))",
        [FITS, MISSING, ABOVE],
        [],
    ),
    "where": (
        lambda z, y: _losses(z, F.where(y < 0, 0, y)),
        "L(z, torch.where(y < 0, 0, y))",
        [MISSING],
        [ABOVE],
    ),
    "masked_fill": (
        lambda z, y: _losses(z, F.masked_fill(y, F.eq(y, -1), 3)),
        "L(z, y.masked_fill(y == -1, 3))",
        [MISSING],
        [ABOVE, [-2, 0, 0, 0]],
    ),
    "sum": (lambda z, y: _losses(z, y + 1), "L(z, y + 1)", [[*MISSING[:3], 3]], [FITS, [-2, 0, 0, 0]]),
    "product": (lambda z, y: _losses(z, y * 2), "L(z, y * 2)", [[0, 1, 2, 2]], [FITS, MISSING]),
    "remainder": (
        lambda z, y: _losses(z, F.to(F.remainder(F.to(y, "f32"), 5.0), "s32")),
        "L(z, y % 5)",
        [FITS, MISSING, ABOVE],
        [],
    ),
    "floor_divide": (
        lambda z, y: _losses(z, F.to(F.floor_divide(F.to(y, "f32"), 3.0), "s32")),
        "L(z, y // 3)",
        [FITS, [14, 0, 3, 9]],
        [MISSING, [15, 0, 0, 0]],
    ),
    "ignore_index": (
        lambda z, y: _losses(z, y, ignore_index=-1),
        "L(z, y, ignore_index=-1)",
        [MISSING],
        [ABOVE, [-100, 0, 0, 0]],
    ),
    "table": (
        lambda z, y: _losses(z, F.index_select(np.int32([4, 2, 0, 1, 3]), 0, y)),
        "L(z, torch.tensor([4, 2, 0, 1, 3])[y])",
        [FITS],
        [ABOVE],
    ),
    "table of other labels": (
        lambda z, y: _losses(z, F.index_select(np.int32([4, 9, 0]), 0, y)),
        "L(z, torch.tensor([4, 9, 0])[y])",
        [[0, 2, 2, 0]],
        [[0, 1, 2, 0], [0, 3, 2, 0]],
    ),
    "nll_loss": (
        lambda z, y: F.nll_loss(z, y.clamp(min=0), reduction="none"),
        "TF.nll_loss(z, y.clamp(min=0), reduction='none')",
        [MISSING],
        [ABOVE],
    ),
    "gather": (
        lambda z, y: F.gather(z, 1, F.reshape(y.clamp(min=0), (N, 1))),
        "z.gather(1, y.clamp(min=0)[:, None])",
        [MISSING],
        [ABOVE],
    ),
    "embedding": (
        lambda z, y: F.embedding(y.clamp(min=0), z.T),
        "TF.embedding(y.clamp(min=0), z.T)",
        [MISSING],
        [ABOVE],
    ),
    "index_select": (
        lambda z, y: F.index_select(z, 1, y + 1),
        "z.index_select(1, y + 1)",
        [[-1, 0, 3, 3]],
        [FITS],
    ),
    "one_hot": (
        lambda z, y: F.to(F.one_hot(y.clamp(min=0), C), "f32"),
        "TF.one_hot(y.clamp(min=0), 5).float()",
        [MISSING],
        [ABOVE],
    ),
    "scatter": (
        lambda z, y: F.scatter(z, 1, F.reshape(y.clamp(min=0), (N, 1)), 7.0),
        "z.scatter(1, y.clamp(min=0)[:, None], 7.0)",
        [MISSING],
        [ABOVE],
    ),
    "negative key": (lambda z, y: z[:, y], "z[:, y]", [MISSING, [-5, 0, -2, 4]], [ABOVE, [-6, 0, 0, 0]]),
    "two keys": (
        lambda z, y: z[np.arange(N), y - 1],
        "z[torch.arange(4), y - 1]",
        [FITS, MISSING, ABOVE],
        [[-5, 0, 0, 0], [6, 0, 0, 0]],
    ),
    "take_along_dim": (
        lambda z, y: F.take_along_dim(z, F.reshape(y, (N, 1)), 1),
        "torch.take_along_dim(z, y[:, None] % z.shape[1], 1)",
        [MISSING],
        [ABOVE, [-6, 0, 0, 0]],
    ),
    "index_put": (
        lambda z, y: F.index_put(z, (np.arange(N), y), np.float32(7)),
        "z.clone().index_put((torch.arange(4), y), torch.tensor(7.0))",
        [MISSING],
        [ABOVE, [-6, 0, 0, 0]],
    ),
    "float": (
        lambda z, y: F.embedding(F.to(F.to(y, "f32") * 0.5, "s32"), z.T),
        "TF.embedding((y * 0.5).int(), z.T)",
        [FITS, [9, 0, 0, 0]],
        [[10, 0, 0, 0], [-2, 0, 0, 0]],
    ),
    "count": (
        lambda z, y: F.embedding(F.cumsum(F.to(F.to(y > 0, "f32"), "f32"), 0).to("s32") + y[0], z.T),
        "TF.embedding((y > 0).cumsum(0) + y[0], z.T)",
        [FITS, [1, 1, 0, 1]],
        [[2, 1, 1, 1]],
    ),
    "scan": (_in_scan, "TF.embedding(y.clamp(min=0), z.T)", [MISSING], [ABOVE]),
    "branch": (
        lambda z, y: F.cond(F.ge(y[0], 0), lambda: F.embedding(y[0], z.T), lambda: z[:, 0] * 0.0),
        "TF.embedding(y[0], z.T) if y[0] >= 0 else z[:, 0] * 0",
        [FITS, MISSING, [4, 9, 9, 9]],
        [[5, 0, 0, 0]],
    ),
}


@pytest.fixture(scope="module")
def compiled() -> _Compiled:
    """The rows as functions of one program."""
    functions = []
    for k, (build, *_) in enumerate(ROWS.values()):
        z, y = ag.Input("z", (N, C)), ag.Input("y", (N,), dtype="s32")
        functions.append(ag.function([z, y], [build(z, y)], name=f"row{k}"))
    return _Compiled(compile_functions(functions, "rows"), Compiler(find_compiler()), False)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("row", range(len(ROWS)), ids=list(ROWS))
def test_an_index_is_checked_as_it_is_used(
    row: int, compiled: _Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    import torch.nn.functional as TF

    _, in_torch, taken, rejected = list(ROWS.values())[row]
    scores = np.random.default_rng(0).standard_normal((N, C)).astype(np.float32)
    known = {"torch": torch, "TF": TF, "z": torch.tensor(scores)}
    known["L"] = lambda z, y, **options: TF.cross_entropy(z, y, reduction="none", **options)

    def f(labels: Sequence[Any]) -> Any:
        return compiled.run(compiled.program.entries[row], [scores, labels])[0]

    for labels in taken:
        want = eval(in_torch, {**known, "y": torch.tensor(labels)}).numpy()  # of this file
        np.testing.assert_allclose(f(labels), want, rtol=1e-5, atol=1e-6)
    for labels in rejected:
        with pytest.raises(ShapeError, match=r"^y.* -?\d+.*, outside -?\d to \d$"):
            f(labels)
    for module in ("arguments", "trainer"):  # as on the device
        monkeypatch.setattr(f"autodiff_gen.host.{module}.reject_wrong_indices", lambda checks, arrays: None)
    for labels in rejected:
        with pytest.raises(AutodiffError, match=r"status -3"):
            f(labels)


@pytest.mark.cc
def test_a_step_whose_index_is_out_of_range_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, w = ag.Input("x", (2, 3)), ag.Input("y", (2,), dtype="s32"), ag.Param("w", np.ones((4, 3)) * 0.5)
    loss = F.cross_entropy(F.matmul(x, w.T), y + 1)
    model = ag.Model([x], [y], {"z": F.matmul(x, w.T)}, loss, optim.Adam(lr=0.1), accumulate="mean")
    trainer = model.on_host()
    data = np.ones((2, 3), np.float32)
    with pytest.raises(ShapeError, match=r"^y\[1\] is 3, which gives the index 4, outside 0 to 3$"):
        trainer.train_step(data, [-1, 3])
    for module in ("arguments", "trainer"):
        monkeypatch.setattr(f"autodiff_gen.host.{module}.reject_wrong_indices", lambda checks, arrays: None)
    before = bytes(trainer.memory)
    for step in (trainer.train_step, trainer.accumulate):
        for labels in ([-2, 0], [0, 3]):
            with pytest.raises(AutodiffError, match="status -3"):
                step(data, labels)
            assert bytes(trainer.memory) == before
    trainer.train_step(data, [-1, 2])
    assert bytes(trainer.memory) != before


def _y(dtype: str = "s32") -> Value:
    return ag.Input("y", (3,), dtype=dtype)


RANGES: list[tuple[Callable[[], Value], tuple[float, float]]] = [
    (lambda: _y("u8"), (0, 255)),
    (lambda: _y().clamp(0, 4), (0, 4)),
    (lambda: _y().clamp(min=-2), (-2, 2**31 - 1)),
    (lambda: F.to(_y("u8"), "s32") * 2 - 3, (-3, 507)),
    (lambda: _y() + 1, (-(2**31), 2**31 - 1)),
    (lambda: F.to(_y() < 3, "s32"), (0, 1)),
    (lambda: F.sum(F.to(_y() < 3, "f32")), (-np.inf, np.inf)),
    (lambda: F.max(ag.Input("x", (2, 7)), 1)[1], (0, 6)),
    (lambda: F.topk(ag.Input("x", (2, 7)), 3, 1)[1], (0, 6)),
    (lambda: F.where((y := _y().clamp(-3, 3)) < 0, y + 4, y), (0, 3)),
    (lambda: F.where((y := _y().clamp(-3, 3)) < 0, F.flip(y, 0) + 4, y), (0, 7)),
    (lambda: F.to(F.floor(F.to(_y("u8"), "f32") / 3.0), "s32"), (0, 85)),
]


@pytest.mark.parametrize("row", range(len(RANGES)))
def test_ranges(row: int) -> None:
    build, want = RANGES[row]
    assert range_of(build()) == want


@pytest.mark.cc
def test_labels_of_two_losses_are_in_the_range_of_both() -> None:
    label = ag.Input("label", (2,), dtype="u8")
    wide, narrow = ag.Input("wide", (2, 10)), ag.Input("narrow", (2, 3))
    losses = [F.cross_entropy(wide, label), F.cross_entropy(narrow, F.to(label, "s32"))]
    f = ag.function([wide, narrow, label], losses).on_host()
    given = np.zeros((2, 10), np.float32), np.zeros((2, 3), np.float32)
    assert f(*given, np.uint8([2, 0]))[1] == pytest.approx(np.log(3))
    with pytest.raises(ag.AutodiffError, match=r"label\[1\] is 3, outside 0 to 2"):
        f(*given, np.uint8([0, 3]))
