"""Models: graphs with named inputs and outputs from which the entries that train and predict are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .. import functional as _functional  # noqa: F401  (fills the registry)
from .. import nn
from ..errors import ModelError
from ..frontends.pytorch import training as torch_training
from ..functional.inputs import Input, check_outputs, check_parameter_name, largest_batch
from ..ir.build import make_input
from ..ir.graph import ROLES, Graph, State
from ..ir.module import IRModule
from ..ir.node import INPUT, STATE, Value, topological
from ..ir.types import Type, f32, s32, u8
from ..ir.verifier import verify
from ..lowering.pipeline import MODEL, run, without_cycle_collection
from ..optim import EMA, Optimizer
from ..optim.lr_scheduler import LRScheduler
from ..passes.context import Context, Training
from ..passes.training.apply_optimizer import with_guard
from . import program_id
from .loss_function import layer_of

if TYPE_CHECKING:
    import torch

    from ..host.trainer import Trainer

ACCUMULATE = (None, "mean", "sum")
GUARDS = ("loss", "gradients", None)
NO_INDEX = -100  # PyTorch's default of ignore_index; no u8 label equals it


class Model:
    """Inputs, targets, outputs, a scalar loss and an optimizer, from which `train_step` and `predict` are generated.

    outputs: name -> value that depends only on inputs and parameters; `predict` returns them, and takes the inputs that
    they depend on. Raises ModelError, GraphError or ShapeError, which name the input, parameter or output.

    schedule: one of optim.lr_scheduler, or of torch.optim.lr_scheduler over an optimizer of PyTorch; the device
    computes the learning rate of each step. Without one the learning rate is an argument of train_step.
    clip_grad_value: limits the absolute value of each gradient element; clip_grad_norm: then limits the Euclidean norm
    of all gradients. Parameters with requires_grad=False, and those that are not in the optimizer's params, keep their
    values; requires_grad cannot be changed once a model is built.

    optimizer: one of ag.optim, or of torch.optim over the parameters of modules that ag.from_torch imported.

    accumulate: the reduction of the loss over its samples, "mean" or "sum"; adds the entry `accumulate`, which sums the
    gradients of micro-batches, and `apply`, one optimizer step equal to the step of one large batch.
    ema: optim.EMA keeps averages of the parameters; adds `predict_averaged`, which uses them.

    guard: "loss": a step with non-finite inputs or loss is rejected before any state changes; "gradients": also a step
    whose updates are not provably finite, which needs the gradients of all layers' outputs in memory at once; None: no
    check.
    split: adds `train_part`, which executes a step in parts, so that a program may do other work between the layers,
    such as serve a watchdog; until the last part all other entries return the status "busy".
    restore_after: the number of consecutive steps rejected for their loss or gradients after which the link's firmware
    restores the last good checkpoint; 0: never.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        targets: Sequence[Value],
        outputs: Mapping[str, Value],
        loss: Value,
        optimizer: Optimizer | torch.optim.Optimizer,
        *,
        schedule: LRScheduler | torch.optim.lr_scheduler.LRScheduler | None = None,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        accumulate: str | None = None,
        ema: EMA | None = None,
        guard: str | None = "loss",
        split: bool = False,
        restore_after: int = 0,
    ) -> None:
        self.inputs, self.targets, self.outputs = tuple(inputs), tuple(targets), dict(outputs)
        self.loss = loss
        self.optimizer, self.schedule = torch_training.training(optimizer, schedule)
        self.clip_grad_norm, self.clip_grad_value = clip_grad_norm, clip_grad_value
        self.accumulate, self.ema, self.guard, self.split = accumulate, ema, guard, split
        self.restore_after = restore_after
        self._check_kinds()
        self.batch = largest_batch((*self.inputs, *self.targets))
        self._states = _states([loss, *self.outputs.values()])
        training = self._training_options()
        self.lr = training.lr
        context, specified = Context(training), IRModule(self._specification)
        with without_cycle_collection():
            for stage, module in run(MODEL[:1], specified, context, check=False):
                self._check_names(module)
                for graph in module.entries:  # for mistakes of the model, not of a stage
                    verify(graph, context.verified)
                self.stages = [(stage, module), *run(MODEL[1:], module, context)]
            for graph in self.entries():
                verify(graph)
        for state, _ in self._states:
            state.fix()

    @classmethod
    def supervised(
        cls,
        net: Callable[..., Value],
        input: Sequence[int] | Value | Sequence[Value],
        loss: Callable[[Value, Value], Value],
        optimizer: Optimizer | torch.optim.Optimizer,
        *,
        schedule: LRScheduler | torch.optim.lr_scheduler.LRScheduler | None = None,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        accumulate: str | None = None,
        ema: EMA | None = None,
        guard: str | None = "loss",
        split: bool = False,
        restore_after: int = 0,
    ) -> Model:
        """A model with one input "x" of shape `input` (batch size first), one output "scores" and one target.

        input: a shape; or an ag.Input, such as one of integers; or a list of several, which the network takes in this
        order. loss: a layer of ag.nn or torch.nn; a loss function of ag.functional or PyTorch, such as F.cross_entropy;
        or a function of (scores, target).

        For a loss over classes the target is "label", the class indices: u8[B, ...] for scores [B, C, ...]. They are
        s32 for more than 256 classes, or if u8 cannot represent the loss's ignore_index. For other losses the target is
        "target", of the scores' shape.
        """
        single = isinstance(input, Value) or not any(isinstance(v, Value) for v in input)
        inputs: list[Any] = [input] if single else list(input)
        shapes = [tuple(v.shape) if isinstance(v, Value) else tuple(v) for v in inputs]
        if torch_training.is_torch(net):
            example = shapes[0] if single else "EXAMPLES"
            raise ModelError(
                f"the network is {type(net).__name__} of PyTorch; import it: ag.from_torch(net, input={example})"
            )
        loss = torch_training.loss(loss) if torch_training.is_torch(loss) else layer_of(loss)
        for what, given in (("network", net), ("loss", loss)):
            if isinstance(given, type):
                raise ModelError(f"the {what} is the class {given.__name__}; make one: {given.__name__}()")
            if not callable(given):
                raise ModelError(f"the {what} is {type(given).__name__}, expected a layer or a function")
        batch = net.fixed_batch if isinstance(net, nn.Module) else None
        if batch is not None and shapes[0][0] != batch:
            raise ModelError(
                f"the network was imported for a batch of {batch}, which it has as a number; give "
                f"input={(batch, *shapes[0][1:])}, or import it for {shapes[0][0]}"
            )
        xs = [
            v if isinstance(v, Value) else Input("x", v, batch_axis=0 if batch is None else None)
            for v in inputs
        ]
        scores = net(*xs)
        if not isinstance(scores, Value):
            raise ModelError(f"the network returned {type(scores).__name__}, expected one graph value")
        target = _target(scores, loss)
        model = cls(
            xs,
            [target],
            {"scores": scores},
            loss(scores, target),
            optimizer,
            schedule=schedule,
            clip_grad_norm=clip_grad_norm,
            clip_grad_value=clip_grad_value,
            accumulate=accumulate,
            ema=ema,
            guard=guard,
            split=split,
            restore_after=restore_after,
        )
        if isinstance(net, nn.Module):
            reached = {state for state, _ in model._states}
            for name, value in net.named_parameters():
                state = value.node.attrs["state"]
                if state not in reached and model._is_trained(state):
                    raise ModelError(
                        f"the loss does not reach the parameter {name!r}: the network does not use it"
                    )
        return model

    def with_accumulate(self, reduction: str) -> Model:
        """This model with the entries `accumulate` and `apply`."""
        return Model(
            self.inputs,
            self.targets,
            self.outputs,
            self.loss,
            self.optimizer,
            schedule=self.schedule,
            clip_grad_norm=self.clip_grad_norm,
            clip_grad_value=self.clip_grad_value,
            accumulate=reduction,
            ema=self.ema,
            guard=self.guard,
            split=self.split,
            restore_after=self.restore_after,
        )

    @property
    def default_lr(self) -> float | None:
        """The default learning rate of train_step; None if a schedule computes it."""
        return self.optimizer.lr if self.schedule is None else None

    @property
    def _specification(self) -> tuple[Graph, Graph]:
        """The entries before any pass."""
        step = Graph("train_step", (*self.inputs, *self.targets), {"loss": self.loss}, training=True)
        return step, Graph("predict", self.inputs, self.outputs)

    @cached_property
    def program_id(self) -> int:
        """A hash of the model's computation, 32 bits; see program_id.py."""
        return program_id.of_model(*self._specification, self._training_options(), self._states)

    @property
    def states(self) -> tuple[State, ...]:
        """The states that are trained or updated, in the order of a state_dict, then counters and the state of the
        optimizer."""
        module = self.stages[-1][1]
        kept = {s for g in module.entries for s in g.states}
        every = (module.state(state) for state, _ in self._states)
        own = [s for s in every if s in kept]
        return tuple(dict.fromkeys((*own, *(s for g in module.entries for s in g.updates))))

    @property
    def trained(self) -> list[State]:
        """The parameters that the optimizer changes, in the order of a state_dict."""
        return [state for state, _ in self._training_options().trained]

    @property
    def frozen(self) -> dict[str, Any]:
        """The parameters that are not trained, and buffers that are not updated, by name: constants of the generated
        program."""
        states = {s.name for s in self.states}
        return {
            s.name: s.init.array().astype(s.type.dtype.numpy, copy=False)
            for s, _ in self._states
            if s.name not in states
        }

    @property
    def state_names(self) -> tuple[str, ...]:
        """All names of a state_dict, in its order, with the names of frozen states."""
        return tuple(dict.fromkeys((*(s.name for s, _ in self._states), *(s.name for s in self.states))))

    @property
    def tied(self) -> dict[str, str]:
        """Other names of parameters and buffers that several modules share -> their name in a state_dict."""
        return {alias: s.name for s, _ in self._states for alias in s.aliases}

    def entries(self, guard: str | None = "") -> list[Graph]:
        """train_step, accumulate and apply if the model has them, predict, and predict_averaged with `ema`. `guard`
        replaces the model's."""
        guard = self.guard if guard == "" else guard
        found = self.stages[-1][1].entries
        return [with_guard(g, guard) if g.updates else g for g in found]

    def on_host(self, kernels: str = "ref", ram: int | Mapping[str, int] | None = None) -> Trainer:
        """The model's generated C compiled for the host, as a Python object with train_step, predict, state_dict, save
        and load. `kernels`: backends by priority; `ram`: the bytes that parameters, optimizer state and arena may take
        together, or the bytes of each memory region by name, the main region first: {"sram": 96 << 10, "ccm": 64 <<
        10}. Raises PlanError if they need more."""
        from ..host.trainer import host_trainer

        return host_trainer(self, kernels=kernels, ram=ram)

    def _check_kinds(self) -> None:
        for role, values in (("input", self.inputs), ("target", self.targets)):
            for v in values:
                if not isinstance(v, Value) or v.node.op is not INPUT:
                    raise ModelError(f"{role} {v!r} is not an ag.Input")
        check_outputs("", self.outputs, self.inputs)
        if isinstance(self.optimizer, type):
            name = self.optimizer.__name__
            raise ModelError(f"the optimizer is the class {name}; make one: {name}()")
        if not isinstance(self.optimizer, Optimizer):
            raise ModelError(f"optimizer: expected one of ag.optim, got {self.optimizer!r}")
        if self.schedule is not None and not isinstance(self.schedule, LRScheduler):
            raise ModelError(f"schedule: expected one of optim.lr_scheduler, got {self.schedule!r}")
        if self.accumulate not in ACCUMULATE:
            raise ModelError(
                f'accumulate={self.accumulate!r}; expected the reduction of the loss, "mean" or "sum"'
            )
        if self.ema is not None and not isinstance(self.ema, EMA):
            raise ModelError(f"ema: expected optim.EMA, got {self.ema!r}")
        if self.guard not in GUARDS:
            raise ModelError(f"guard={self.guard!r}; known: {', '.join(map(repr, GUARDS))}")
        steps = self.restore_after
        if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps < 1 << 32:
            raise ModelError(f"restore_after={steps!r} must be a number of steps, an integer; 0: never")
        if steps and self.guard is None:
            raise ModelError(
                f"restore_after={steps}: guard=None rejects no step; give guard='loss' or 'gradients'"
            )
        if not isinstance(self.loss, Value):
            raise ModelError(f"the loss is {type(self.loss).__name__}, expected a graph value")
        if self.loss.shape != () or self.loss.dtype is not f32:
            raise ModelError(
                f"the loss is {self.loss.type}, not a scalar f32[]; reduce it with F.mean or F.sum"
            )

    def _check_names(self, module: IRModule[Graph]) -> None:
        step, predict = module.entries
        seen = {"lr"}
        named = [("input", v.name) for v in self.inputs] + [("target", v.name) for v in self.targets]
        named += [("output", name) for name in self.outputs] + [(s.role, s.name) for s, _ in self._states]
        for role, name in named:
            assert name is not None
            if role in ROLES:
                check_parameter_name(name)
            if name in seen:
                other = "the learning rate" if name == "lr" else "something else"
                unheld = role in ROLES and name in [s.name for s, _ in self._states]
                fix = "; modules in a list are named by nn.ModuleList" if unheld else ""
                raise ModelError(f"{role} {name!r}: {other} has this name already; rename one{fix}")
            seen.add(name)
        given = {v.node for v in self.inputs}
        for name, v in predict.outputs.items():
            for node in topological([v]):
                if node.op is INPUT and node not in given:
                    raise ModelError(
                        f"output {name!r} depends on {node.attrs['name']!r}, which is not among the inputs"
                    )
        given |= {v.node for v in self.targets}
        for node in step.nodes:
            if node.op is INPUT and node not in given:
                raise ModelError(
                    f"the loss depends on {node.attrs['name']!r}, which is neither input nor target"
                )

    def _is_trained(self, state: State) -> bool:
        """Whether the optimizer would train a parameter that the model does not use."""
        return state.trainable and self.optimizer.takes_all

    def _training_options(self) -> Training:
        parameters = [(state, v) for state, v in self._states if state.trainable]
        if not parameters:
            raise ModelError("the loss depends on no trainable parameter; set requires_grad=True for one")
        groups = self.optimizer.groups([state for state, _ in self._states if state.role == "parameter"])
        chosen = {state for group in groups for state in group.states}
        trained = [(state, v) for state, v in parameters if state in chosen]
        if not trained:
            raise ModelError(
                "all parameters of the optimizer have requires_grad=False; give it a trainable one"
            )
        lr = make_input("lr", Type(f32, ())) if self.schedule is None else None
        return Training(
            trained,
            self.optimizer,
            groups,
            lr,
            self.schedule,
            self.clip_grad_norm,
            self.clip_grad_value,
            self.accumulate,
            self.ema,
            self.guard,
        )


def _target(scores: Value, loss: Callable[[Value, Value], Value]) -> Value:
    """The input that a loss compares the scores with: class indices, or numbers of the scores' shape."""
    if not getattr(loss, "takes_classes", False):
        return make_input("target", scores.type)
    if scores.ndim < 2:
        raise ModelError(
            f"the scores are {scores.type}; a loss over classes needs [batch, classes] or [batch, classes, ...]"
        )
    classes = scores.shape[1]
    ignored = getattr(loss, "ignore_index", NO_INDEX)
    narrow = classes <= 256 and (ignored == NO_INDEX or 0 <= ignored <= 255)
    label = Type(u8 if narrow else s32, (scores.shape[0], *scores.shape[2:]))
    return make_input("label", label, classes=classes)


def _states(roots: Sequence[Value]) -> list[tuple[State, Value]]:
    """The states that `roots` depend on, with their old values: parameters and buffers in order of creation, as in a
    state_dict, then counters."""
    nodes = [n for n in topological(roots) if n.op is STATE]
    nodes.sort(key=lambda n: (max(1, ROLES.index(n.attrs["state"].role)), n.serial))
    return [(n.attrs["state"], n.results[0]) for n in nodes]
