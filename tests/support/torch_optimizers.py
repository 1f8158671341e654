"""Models with an optimizer, a schedule and clipping, and the same in PyTorch, compared step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from generated_c import host_trainers
from small_models import mlp

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE
from autodiff_gen.optim import lr_scheduler as lrs

STEPS = 10
WEIGHT = np.float32([0.5, 2.0])
Options = dict[str, Any]

OPTIMIZERS: list[tuple[str, Options]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "dampening": 0.5}),
    ("SGD", {}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "betas": (0.0, 0.9)}),
    ("Adam", {}),
    ("AdamW", {"lr": 0.05}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.3}),
    ("AdamW", {"weight_decay": 0.0}),
    ("AdamW", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.6), "eps": 1e-3, "amsgrad": True}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.6), "eps": 1e-3, "amsgrad": True, "maximize": True}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    *((rule, {"lr": 0.01, "eps": 1e-3, "maximize": True}) for rule in ("RMSprop", "Adagrad", "NAdam", "RAdam")),
    *((rule, {"lr": 0.01, "eps": 1e-3, "maximize": True}) for rule in ("Adamax", "Adadelta")),
    ("RMSprop", {}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum": 0.5}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.8, "centered": True}),
    ("RMSprop", {"lr": 0.02, "alpha": 0.8, "eps": 1e-4, "centered": True, "momentum": 0.9, "weight_decay": 0.01}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.01, "initial_accumulator_value": 0.1, "eps": 1e-3}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.05, "betas": (0.0, 0.6), "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}),
]  # fmt: skip

# One of each rule for tests of all rules; large epsilons, where a gradient near 0 would decide a sign.
RULES: list[tuple[str, Options]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "dampening": 0.3}),
    ("Adam", {"lr": 0.05, "eps": 1e-3}),
    ("AdamW", {"lr": 0.05, "eps": 1e-3}),
    ("RMSprop", {"lr": 0.02, "eps": 1e-3, "centered": True, "momentum": 0.5}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-3}),
    ("NAdam", {"lr": 0.05, "eps": 1e-3}),
    ("RAdam", {"lr": 0.05, "eps": 1e-3}),
    ("Adamax", {"lr": 0.05, "eps": 1e-3}),
    ("Adadelta", {"eps": 1e-3}),
]

SCHEDULES: list[tuple[str, Options]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 6], "gamma": 0.3}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.8}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.05, "total_steps": 10}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.05, "step_size_up": 2, "step_size_down": 3, "mode": "triangular2"}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("PolynomialLR", {"total_iters": 6, "power": 1.5}),
    ("OneCycleLR", {"max_lr": 0.05, "total_steps": 12, "anneal_strategy": "linear", "three_phase": True}),
]  # fmt: skip
CLIPS: list[Options] = [{"clip_grad_norm": 0.3}, {"clip_grad_value": 0.05}]


def name_of(v: Any) -> str:
    return v if isinstance(v, str) else ""


def takes_momentum(rule: str) -> bool:
    return rule not in ("Adagrad", "Adadelta")


def schedule_of(module: Any, schedule: tuple[str, Options] | None, rule: str, *first: Any) -> Any:
    if schedule is None:
        return None
    name, options = schedule
    if name in ("OneCycleLR", "CyclicLR") and not takes_momentum(rule):
        options = {**options, "cycle_momentum": False}
    return getattr(module, name)(*first, **options)


def built(
    rule: str, options: Options, schedule: tuple[str, Options] | None = None, clip: Options | None = None
) -> ag.Model:
    return ag.Model.supervised(
        mlp(3, 4, 2),
        (5, 3),
        nn.MSELoss(),
        getattr(optim, rule)(**options),
        schedule=schedule_of(lrs, schedule, rule),
        **(clip or {}),
    )


class Torch:
    """The same network, optimizer, schedule and clipping in PyTorch."""

    def __init__(
        self,
        model: ag.Model,
        kind: str,
        rule: str,
        options: Options,
        schedule: tuple[str, Options] | None = None,
        clip: Options | None = None,
    ) -> None:
        import torch

        self.dtype = getattr(torch, kind)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).to(
            self.dtype
        )
        start = model.frozen | {s.name: s.init.array() for s in model.states if s.trainable}
        net.load_state_dict({name: torch.tensor(array) for name, array in start.items()})
        self.net, self.clip = net, clip or {}
        params = options.get("params")
        groups = params(net) if callable(params) else net.parameters()
        self.optimizer = getattr(torch.optim, rule)(
            groups, **{k: v for k, v in options.items() if k != "params"}
        )
        self.schedule = schedule_of(torch.optim.lr_scheduler, schedule, rule, self.optimizer)
        self.steps = 0

    def step(self, x: Any, t: Any) -> float:
        import torch

        self.optimizer.zero_grad()
        y = self.net(torch.tensor(x, dtype=self.dtype))
        loss = torch.nn.functional.mse_loss(y, torch.tensor(t, dtype=self.dtype))
        loss.backward()
        parameters = list(self.net.parameters())
        if "clip_grad_value" in self.clip:
            torch.nn.utils.clip_grad_value_(parameters, self.clip["clip_grad_value"])
        if "clip_grad_norm" in self.clip:
            torch.nn.utils.clip_grad_norm_(parameters, self.clip["clip_grad_norm"])
        self.optimizer.step()
        self.steps += 1
        if self.schedule is not None and self.steps < STEPS:
            self.schedule.step()
        return loss.item()

    def state(self) -> dict[str, Any]:
        out: dict[str, Any] = {"optimizer.step": np.float32(self.steps)}
        for name, p in self.net.named_parameters():
            out[name] = p.detach().numpy().copy()
            for key, value in self.optimizer.state.get(p, {}).items():
                if key != "step" and value is not None:
                    out[f"{name}.{key}"] = value.detach().numpy().copy()
        return out


def batches() -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(11)
    for _ in range(STEPS):
        yield (
            rng.uniform(-1, 1, (5, 3)).astype(np.float32),
            rng.uniform(-1, 1, (5, 2)).astype(np.float32),
        )


def interpreted(model: ag.Model, kind: str) -> Callable[[dict[str, Any], Any, Any], dict[str, Any]]:
    """A step of the model in the interpreter: states by name, x, t -> the states and the loss after it."""
    graph = model.entries()[0]
    leaves = {v.node.attrs["state"]: v for v in graph.leaves(STATE)}

    def step(state: dict[str, Any], x: Any, t: Any) -> dict[str, Any]:
        given = [x, t] if model.default_lr is None else [x, t, model.default_lr]
        feeds = dict(zip(graph.inputs, given, strict=True))
        old = {v: state[s.name] for s, v in leaves.items()}
        loss, *new = evaluate(graph.roots, {**feeds, **old}, float_dtype=kind)
        return {**state, **{s.name: v for s, v in zip(graph.updates, new, strict=True)}, "loss": loss}

    return step


def in_c(models: Sequence[ag.Model]) -> list[Callable[[dict[str, Any], Any, Any], dict[str, Any]]]:
    """The same of each model in generated C, which is compiled together."""

    def step(trainer: Trainer, state: dict[str, Any], x: Any, t: Any) -> dict[str, Any]:
        trainer.load_state_dict(state)
        loss = trainer.train_step(x, t)
        return {**trainer.state_dict(), "loss": loss}

    return [partial(step, trainer) for trainer in host_trainers(models)]


def compare(model: ag.Model, theirs: Torch, step: Callable[..., Any], rtol: float) -> None:
    """Ten steps of PyTorch, each also taken by ours from PyTorch's own state."""
    first = model.frozen | {s.name: s.init.array() for s in model.states}
    for x, t in batches():
        state = {**first, **{k: v for k, v in theirs.state().items() if k in first}}
        loss = theirs.step(x, t)
        ours, want = step(state, x, t), theirs.state()
        assert set(ours) - {"loss", "optimizer.step"} == set(want) - {"optimizer.step"}
        for name, value in ours.items():
            expected = np.asarray(loss if name == "loss" else want[name])
            np.testing.assert_allclose(
                value,
                expected,
                rtol=rtol,
                atol=rtol * np.abs(expected).max(),
                err_msg=f"{name}, step {theirs.steps}",
            )
