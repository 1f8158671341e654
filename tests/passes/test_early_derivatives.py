"""Derivatives that the forward pass computes: that training stays PyTorch's, and that the backward pass calls no
function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from training_comparison import trains_as_pytorchs

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.targets import board

CLASSES, BATCH = 5, 4


def network(nn: Any) -> Any:
    """Two layers whose activation both the next layer and its own gradient read."""
    layers = [nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, CLASSES)]
    return nn.Sequential(*layers)


@pytest.mark.cc
@pytest.mark.torch
def test_training_equals_pytorchs() -> None:
    import torch

    model = ag.Model.supervised(
        network(nn), input=(BATCH, 16), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.5)
    )
    program = compile_model(model, "model", ["ref"], board.load("host_avx2"))
    step = emit(program)["model.c"]
    backward = step[step.index("/* ---- backward") : step.index("int model_predict")]
    assert "ag_erff" not in backward and "ag_expf" not in backward
    twin = network(torch.nn)
    rng = np.random.default_rng(3)
    batches = [
        (rng.normal(size=(BATCH, 16)).astype(np.float32), rng.integers(0, CLASSES, BATCH)) for _ in range(4)
    ]
    trainer = Trainer(program, Compiler(find_compiler(None), ""))
    trains_as_pytorchs(trainer, twin, torch.optim.SGD(twin.parameters(), lr=0.5), batches)
