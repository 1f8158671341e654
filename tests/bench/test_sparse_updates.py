"""The 8-bit networks of the benchmark, which train in part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.ir.parameter_layout import PartialStorage
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board, installation

# Bytes of state, arena and scratch memory; MIT's compiler takes 237,456 for the first.
MOST = {"mcunet": 204_000, "mbv2": 287_000, "proxyless": 173_000}


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With random weights."""
    monkeypatch.delenv("AUTODIFF_DATA", raising=False)
    return load_file(name)


@pytest.mark.parametrize("name", installation.sparse_updates())
def test_bytes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = compile_model(
        loaded(name, monkeypatch).made, name, ["armv7em", "ref"], board.load("mps2_an386")
    )
    assert program.struct_bytes <= MOST[name]


@pytest.mark.parametrize(("name", "budget"), [("mcunet", 150_000), ("mbv2", 140_000)])
def test_a_budget_is_met_by_strips(name: str, budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made, b = loaded(name, monkeypatch).made, board.load("mps2_an386")
    assert compile_model(made, name, ["armv7em", "ref"], b, budget).struct_bytes <= budget


@pytest.mark.cc
def test_it_trains_what_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    file = loaded("mcunet", monkeypatch)
    trainer = file.made.on_host("host,ref")
    before = trainer.state_dict()
    losses = [trainer.train_step(*file.batch(0), lr=1e-4) for _ in range(4)]
    after = trainer.state_dict()
    assert losses[-1] < losses[0], losses
    parts = {s.name: s.state.storage for s in trainer.program.slots}
    weights = [name for name in before if name.startswith("backbone.") and name.endswith("weight")]
    assert len(weights) == 3 and sum(name.endswith("bias") for name in before) == 21
    for name in weights:
        storage = parts[name]
        assert isinstance(storage, PartialStorage)
        changed = (before[name] != after[name]).any((0, 2, 3))
        assert changed[list(storage.index)].any() and not np.delete(changed, storage.index).any()
