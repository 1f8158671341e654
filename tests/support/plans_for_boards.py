"""A model as it is planned for a board, run on the host, against the plan without a board."""

from __future__ import annotations

import numpy as np

import autodiff_gen as ag
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer, host_trainer
from autodiff_gen.ir.types import planned
from autodiff_gen.targets import board


def assert_trains_as_for_the_host(
    model: ag.Model, name: str, rng: np.random.Generator, classes: int = 3, ram: int | None = None
) -> Program:
    """Three steps of a classifier have the same losses and states with both plans; returns that for board `name`, for a
    RAM budget of `ram` bytes. Memory that holds no value is NaN."""
    program = compile_model(model, "model", ["ref"], board.load(name), ram)
    trainers = [host_trainer(model), Trainer(program, Compiler(find_compiler(), ""), poison=True)]
    shape = planned(model.inputs[0].type.shape)
    x, label = rng.standard_normal((3, *shape)).astype(np.float32), rng.integers(0, classes, (3, shape[0]))
    losses = [[t.train_step(*batch) for batch in zip(x, label, strict=True)] for t in trainers]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    expected, states = (t.state_dict() for t in trainers)
    for key, value in states.items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-4, atol=1e-6, err_msg=key)
    return program
