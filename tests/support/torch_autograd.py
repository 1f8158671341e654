"""A model's graph trained by PyTorch: gradients by its autograd, the update by torch.optim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autodiff_gen.check.torch_oracle import torch_gradients, torch_values
from autodiff_gen.ir.node import STATE, Value, topological
from autodiff_gen.model.model import Model


class TorchTrainer:
    """A model trained by PyTorch: its graph's loss differentiated by autograd, the update by torch.optim. `floats`: the
    dtype of all floats of the two passes; states and updates are in float64."""

    def __init__(self, model: Model, floats: str = "float64") -> None:
        import torch

        self.floats = floats
        self.model, (self.train, self.eval) = model, model.entries()[:2]
        self.loss = self.train.outputs["loss"]
        leaves = [
            n.results[0] for n in topological([self.loss, *self.eval.outputs.values()]) if n.op is STATE
        ]
        states = {v.node.attrs["state"]: _exact(v) for v in leaves}
        self.values = {s: s.stored(s.init.array()).astype(kind) for s, kind in states.items()}
        groups = model.optimizer.groups(list(self.values))
        trained = {s for g in groups for s in g.states if s.trainable}
        self.parameters = {
            s: torch.tensor(self.values[s], requires_grad=True) for s in self.values if s in trained
        }
        rule = getattr(torch.optim, type(model.optimizer).__name__)
        self.optimizer = rule(
            [{"params": [self.parameters[s] for s in g.states if s in trained], **g.options} for g in groups]
        )
        self.schedule = None
        if model.schedule is not None:
            scheduler = getattr(torch.optim.lr_scheduler, type(model.schedule).__name__)
            self.schedule = scheduler(self.optimizer, **vars(model.schedule))

    def feeds(self, roots: Sequence[Value], given: Mapping[str, Any]) -> dict[Value, Any]:
        found = {}
        for node in topological(roots):
            v = node.results[0]
            if node.op is STATE:
                found[v] = self.values[node.attrs["state"]]
            elif v.name in given and not node.operands:
                found[v] = given[v.name]
        return found

    def step(self, given: Mapping[str, Any]) -> float:
        """One step; the loss before it."""
        import torch

        buffers = {
            s: v for s, v in self.train.updates.items() if s in self.values and s not in self.parameters
        }
        feeds = self.feeds([self.loss, *buffers.values()], given)
        variables = [v for v in feeds if v.node.op is STATE and v.node.attrs["state"] in self.parameters]
        loss, *news = torch_values([self.loss, *buffers.values()], feeds, self.model.batch, self.floats)
        gradients = torch_gradients(self.loss, variables, feeds, self.model.batch, self.floats)
        for v, g in zip(variables, gradients, strict=True):
            self.parameters[v.node.attrs["state"]].grad = torch.from_numpy(g).double()
        if self.model.clip_grad_value is not None:
            torch.nn.utils.clip_grad_value_(self.parameters.values(), self.model.clip_grad_value)
        if self.model.clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.model.clip_grad_norm)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.values |= dict(zip(buffers, news, strict=True))
        self.values |= {s: p.detach().numpy().copy() for s, p in self.parameters.items()}
        return float(loss)

    def predict(self, given: Mapping[str, Any]) -> dict[str, Any]:
        roots = list(self.eval.outputs.values())
        return dict(
            zip(
                self.eval.outputs,
                torch_values(roots, self.feeds(roots, given), self.model.batch, self.floats),
                strict=True,
            )
        )


def _exact(v: Value) -> Any:
    return "float64" if v.type.dtype.kind == "f" else v.type.dtype.numpy
