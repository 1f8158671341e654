"""Training by compiled C compared with that of the interpreter."""

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
