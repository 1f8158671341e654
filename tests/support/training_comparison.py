"""Training by compiled C compared with the interpreter and PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from interpreted_training import InterpretedTrainer

from autodiff_gen.host.trainer import Trainer
from autodiff_gen.model.model import Model


def trains_as_the_interpreter(trainer: Trainer, model: Model, batches: Iterable[Mapping[str, Any]]) -> None:
    """Compiled C has the losses of the interpreter, and its states after these batches, name -> array of each input."""
    expected = InterpretedTrainer(model)
    for batch in batches:
        assert trainer.train_step(*batch.values()) == pytest.approx(expected.step(batch), rel=1e-5)
    found = trainer.state_dict()
    for state, value in expected.values.items():
        if state.type.dtype.kind == "f":
            most = 1e-5 * np.abs(value).max() + 1e-6
            np.testing.assert_allclose(
                found[state.name], state.restored(value), rtol=0, atol=most, err_msg=state.name
            )


def trains_as_pytorchs(
    trainer: Trainer,
    twin: Any,
    step: Any,
    batches: Iterable[tuple[Any, Any]],
    clip_grad_norm: float | None = None,
) -> None:
    """Compiled C has the losses of `twin`, a classifier of PyTorch that gets its weights, and its states after these
    batches of images and labels. step: the optimizer of the twin."""
    import torch

    own = {k: torch.tensor(v) for k, v in trainer.state_dict().items()}
    twin.load_state_dict({k: own[k].reshape(v.shape) for k, v in twin.state_dict().items()})
    for x, label in batches:
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        if clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(twin.parameters(), clip_grad_norm)
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=2e-4)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value, rtol=2e-3, atol=2e-4, err_msg=name)
