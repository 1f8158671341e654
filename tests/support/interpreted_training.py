"""A model trained by the interpreter, in NumPy: for updates that torch.optim does not have, as of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autodiff_gen.ir.graph import State
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, Value, topological
from autodiff_gen.model.model import Model


class InterpretedTrainer:
    """`floats`: the dtype of all floats."""

    def __init__(self, model: Model, floats: str = "float64") -> None:
        self.model, self.floats = model, floats
        self.train, self.eval = model.entries()[:2]
        self.values = {s: s.stored(s.init.array()) for s in (*self.train.states, *self.eval.states)}

    def _evaluated(self, roots: Sequence[Value], given: Mapping[str, Any]) -> list[Any]:
        feeds = {}
        for node in topological(roots):
            v = node.results[0]
            if node.op is STATE:
                state: State = node.attrs["state"]
                feeds[v] = self.values[state].astype(
                    self.floats if v.type.dtype.kind == "f" else v.type.dtype.numpy
                )
            elif v.name in given and not node.operands:
                feeds[v] = given[v.name]
        return evaluate(roots, feeds, self.model.batch, self.floats)

    def step(self, given: Mapping[str, Any]) -> float:
        """One step with the default learning rate; the loss before it."""
        given = {**given, "lr": self.model.default_lr}
        loss, *news = self._evaluated([self.train.outputs["loss"], *self.train.updates.values()], given)
        self.values |= dict(zip(self.train.updates, news, strict=True))
        return float(loss)

    def predict(self, given: Mapping[str, Any]) -> dict[str, Any]:
        roots = list(self.eval.outputs.values())
        return dict(zip(self.eval.outputs, self._evaluated(roots, given), strict=True))
