"""Models and functions: graphs with named inputs and outputs, from which C is generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import functional as _functional  # noqa: F401  (fills the registry)
from .. import nn
from ..errors import GraphError, ModelError
from ..functional.inputs import Buffer, Input, Param, check_outputs, check_parameter_name, why_not
from ..ir.build import make_input
from ..ir.graph import ROLES, Graph, State
from ..ir.identifiers import is_identifier
from ..ir.module import Module
from ..ir.node import INPUT, STATE, Value, topological
from ..ir.types import Dim, Type, f32, s32, u8
from ..ir.verifier import verify
from ..lowering.pipeline import run
from ..optim import EMA, Optimizer
from ..optim.lr_scheduler import LRScheduler
from ..passes.apply_optimizer import with_guard
from ..passes.context import Context, Training
from ..passes.resolve_mode import resolved

__all__ = ["Buffer", "Function", "Input", "Model", "Param", "function"]

ACCUMULATE = (None, "mean", "sum")
GUARDS = ("loss", "gradients", None)
NO_INDEX = -100  # PyTorch's default of ignore_index, which no label of type u8 equals


class Model:
    """Inputs, targets, outputs, a scalar loss and an optimizer: what `train_step` and `predict` are generated
    from.

    outputs maps names to values that depend on inputs and parameters; `predict` returns them. Raises
    ModelError, GraphError or ShapeError with the name of what is wrong.

    schedule: one of optim.lr_scheduler, by which the device computes the learning rate of each step; without one it is
    an argument of train_step. clip_grad_value: no element of a gradient exceeds it; clip_grad_norm: nor does
    the length of all gradients together, after that. Parameters with requires_grad=False, and those that
    the optimizer was not given, keep their values; requires_grad cannot be changed once a model is built.

    accumulate: "mean" or "sum", what the loss is over its samples: there are entries `accumulate`, which sums the
    gradients of small batches, and `apply`, which makes one step of their total, equal to that of one large batch.
    ema: optim.EMA keeps averages of the parameters, and `predict_averaged` computes with them.

    guard: "loss": a step whose inputs or loss are not finite is refused before any state changes; "gradients": so is
    one whose updates cannot be proved finite, for which the gradients of all layers' outputs are in memory at once;
    None: nobody looks.
    split: there is `train_part` too, which makes a step in parts, so that a program may do something else between the
    layers, such as serve a watchdog; until the last part all other entries answer that the trainer is busy.
    restore_after: steps in a row refused for their loss or gradients, after which the firmware of the link loads the
    last good checkpoint by itself; 0: never.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        targets: Sequence[Value],
        outputs: Mapping[str, Value],
        loss: Value,
        optimizer: Optimizer,
        *,
        schedule: LRScheduler | None = None,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        accumulate: str | None = None,
        ema: EMA | None = None,
        guard: str | None = "loss",
        split: bool = False,
        restore_after: int = 0,
    ) -> None:
        self.inputs, self.targets, self.outputs = tuple(inputs), tuple(targets), dict(outputs)
        self.loss, self.optimizer, self.schedule = loss, optimizer, schedule
        self.clip_grad_norm, self.clip_grad_value = clip_grad_norm, clip_grad_value
        self.accumulate, self.ema, self.guard, self.split = accumulate, ema, guard, split
        self.restore_after = restore_after
        self._check_kinds()
        self.batch = _batch((*self.inputs, *self.targets))
        self._states = _states([loss, *self.outputs.values()])
        step = Graph("train_step", (*self.inputs, *self.targets), {"loss": loss}, training=True)
        module = Module((step, Graph("predict", self.inputs, self.outputs)))
        try:
            ((_, module),) = self.stages = list(run(module, Context(), until="resolve_mode", check=False))
        except GraphError as error:
            raise ModelError(str(error)) from None
        self._check_names(module)
        for graph in module.entries:
            verify(graph)
        training = self._training_options()
        self.lr = training.lr
        self.stages += run(module, Context(training), after="resolve_mode", until="apply_optimizer")
        self._check_states()
        for graph in self.entries():
            verify(graph)
        for state, _ in self._states:
            state.fixed = True

    @classmethod
    def supervised(
        cls,
        net: Callable[[Value], Value],
        input: Sequence[int],
        loss: Callable[[Value, Value], Value],
        optimizer: Optimizer,
        *,
        schedule: LRScheduler | None = None,
        clip_grad_norm: float | None = None,
        clip_grad_value: float | None = None,
        accumulate: str | None = None,
        ema: EMA | None = None,
        guard: str | None = "loss",
        split: bool = False,
        restore_after: int = 0,
    ) -> Model:
        """A model of one input "x" of shape `input` (the batch size first), one output "scores" and one
        target.

        The target is "label", the class indices u8[B] (s32 for more than 256 classes, or for an ignore_index of
        the loss that u8 cannot hold), for the losses over classes; else "target", of the scores' shape.
        """
        x = Input("x", input, batch_axis=0)
        scores = net(x)
        if not isinstance(scores, Value):
            raise ModelError(f"the network returned {type(scores).__name__}, not one graph value")
        if getattr(loss, "takes_classes", False):
            if scores.ndim != 2:
                raise ModelError(f"the scores are {scores.type}; a loss over classes wants [batch, classes]")
            classes = scores.shape[-1]
            ignored = getattr(loss, "ignore_index", NO_INDEX)
            narrow = classes <= 256 and (ignored == NO_INDEX or 0 <= ignored <= 255)
            target = make_input("label", Type(u8 if narrow else s32, scores.shape[:1]))
            target.node.attrs["classes"] = classes
        else:
            target = make_input("target", scores.type)
        model = cls(
            [x],
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

    @property
    def default_lr(self) -> float | None:
        """What train_step takes when no learning rate is given; None where a schedule computes it."""
        return self.optimizer.lr if self.schedule is None else None

    @property
    def states(self) -> tuple[State, ...]:
        """Parameters and buffers in the order of a state_dict, then counters and the optimizer's state."""
        module = self.stages[-1][1]
        own = [module.state(state) for state, _ in self._states]
        return tuple(dict.fromkeys((*own, *(s for g in module.entries for s in g.updates))))

    def entries(self, guard: str | None = "") -> list[Graph]:
        """train_step, accumulate and apply where asked for, predict, and predict_averaged where there are averages;
        `guard` replaces the model's."""
        guard = self.guard if guard == "" else guard
        found = self.stages[-1][1].entries
        return [with_guard(g, guard) if g.updates else g for g in found]

    def on_host(self, kernels: str = "ref") -> Any:
        """The model's generated C, compiled with the host compiler: train_step, predict, state_dict, save,
        load from Python."""
        from ..host.trainer import host_trainer

        return host_trainer(self, kernels=kernels)

    def _check_kinds(self) -> None:
        for role, values in (("input", self.inputs), ("target", self.targets)):
            for v in values:
                if not isinstance(v, Value) or v.node.op is not INPUT:
                    raise ModelError(f"{role} {v!r} is not an ag.Input")
        check_outputs("", self.outputs, self.inputs)
        if not isinstance(self.optimizer, Optimizer):
            raise ModelError(f"optimizer: expected one of ag.optim, got {self.optimizer!r}")
        if self.schedule is not None and not isinstance(self.schedule, LRScheduler):
            raise ModelError(f"schedule: expected one of optim.lr_scheduler, got {self.schedule!r}")
        if self.accumulate not in ACCUMULATE:
            raise ModelError(
                f'accumulate={self.accumulate!r}; known: "mean" and "sum", what the loss is over the samples'
            )
        if self.ema is not None and not isinstance(self.ema, EMA):
            raise ModelError(f"ema: expected optim.EMA, got {self.ema!r}")
        if self.guard not in GUARDS:
            raise ModelError(f"guard={self.guard!r}; known: {', '.join(map(repr, GUARDS))}")
        rows = self.restore_after
        if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows < 1 << 32:
            raise ModelError(f"restore_after={rows!r} must be a whole number of steps, 0 for never")
        if rows and self.guard is None:
            raise ModelError("restore_after: without a guard no step is refused for its state")
        if not isinstance(self.loss, Value):
            raise ModelError(f"the loss is {type(self.loss).__name__}, not a graph value")
        if self.loss.shape != () or self.loss.dtype is not f32:
            raise ModelError(
                f"the loss is {self.loss.type}, not a scalar f32[]; reduce it with F.mean or F.sum"
            )

    def _check_names(self, module: Module[Graph]) -> None:
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
                raise ModelError(f"{role} {name!r}: {other} has this name already; rename one")
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

    def _check_states(self) -> None:
        names: set[str] = set()
        for state in self.states:
            if state.name in names:
                raise ModelError(f"two states are called {state.name!r}; rename the parameter or buffer")
            names.add(state.name)

    def _is_trained(self, state: State) -> bool:
        """Whether the optimizer would train a parameter that the model does not use."""
        return state.trainable and self.optimizer.takes_all

    def _training_options(self) -> Training:
        parameters = [(state, v) for state, v in self._states if state.trainable]
        if not parameters:
            raise ModelError("the loss depends on no parameter that may be trained")
        groups = self.optimizer.groups([state for state, _ in self._states if state.role == "parameter"])
        chosen = {state for group in groups for state in group.states}
        trained = [(state, v) for state, v in parameters if state in chosen]
        if not trained:
            raise ModelError("the optimizer was given parameters with requires_grad=False alone")
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


def _states(roots: Sequence[Value]) -> list[tuple[State, Value]]:
    """The states below `roots` with their old values: parameters and buffers in the order in which they were made,
    which is that of a state_dict, then counters."""
    leaves = [n for n in topological(roots) if n.op is STATE]
    leaves.sort(key=lambda n: (max(1, ROLES.index(n.attrs["state"].role)), n.serial))
    return [(n.attrs["state"], n.results[0]) for n in leaves]


def _batch(inputs: Sequence[Value]) -> int:
    """The largest batch; 1 where no input has a batch axis."""
    caps = {d.cap: v.name for v in inputs for d in v.shape if isinstance(d, Dim)}
    if len(caps) > 1:
        shown = " and ".join(f"{name!r} has {cap}" for cap, name in caps.items())
        raise ModelError(f"the inputs have different batch sizes: {shown}")
    return next(iter(caps), 1)


class Function:
    """A graph as one C function: `graph` is what is generated from, `on_host()` gives a Python callable."""

    def __init__(
        self, inputs: Sequence[Value], outputs: Mapping[str, Value], name: str, training: bool = False
    ) -> None:
        if not is_identifier(name):
            raise ModelError(f"function {name!r}: {why_not(name)}")
        for v in inputs:
            if not isinstance(v, Value) or v.node.op not in (INPUT, STATE):
                raise ModelError(f"function {name!r}: {v!r} is neither an ag.Input nor an ag.Param")
        given = {v.node for v in inputs}
        if len(given) != len(inputs):
            raise ModelError(f"function {name!r}: an input is given twice")
        names = [v.name for v in inputs]
        if len(set(names)) != len(names):
            raise ModelError(
                f"function {name!r}: two inputs are called {max(names, key=names.count)!r}; rename one"
            )
        check_outputs(f"function {name!r}: ", outputs, inputs)
        in_mode = resolved(list(outputs.values()), training)
        for node in topological(in_mode.roots):
            if node.op in (INPUT, STATE) and node not in given:
                raise ModelError(
                    f"function {name!r}: {node.results[0].name!r} is used, but not among the inputs"
                )
        self.name, self.batch = name, _batch(inputs)
        named = dict(zip(outputs, in_mode.roots, strict=True))
        self.graph = Graph(name, tuple(inputs), named, least_n=in_mode.least_n)
        verify(self.graph)

    def on_host(self, kernels: str = "ref") -> Any:
        """A callable, arrays in the order of the inputs -> a list of arrays in the order of the outputs,
        computed by the generated C."""
        from ..host.trainer import host_function

        return host_function(self, kernels=kernels)


class Functions(tuple[Function, ...]):
    """Functions that a file defines together: their names differ, and their largest batch is the same."""

    def __new__(cls, functions: Sequence[Function]) -> Functions:
        if not functions:
            raise ModelError("functions: the list is empty")
        for f in functions:
            if not isinstance(f, Function):
                raise ModelError(f"functions: expected what ag.function returns, got {type(f).__name__}")
        names = [f.name for f in functions]
        if len(set(names)) != len(names):
            twice = max(names, key=names.count)
            raise ModelError(f"functions: two are called {twice!r}; give another name to ag.function")
        caps = {f.batch: f.name for f in functions if f.batch > 1}
        if len(caps) > 1:
            shown = " and ".join(f"{name!r} has {cap}" for cap, name in caps.items())
            raise ModelError(f"functions: the batch sizes differ: {shown}")
        return super().__new__(cls, functions)

    @property
    def batch(self) -> int:
        return max(f.batch for f in self)


def function(
    inputs: Sequence[Value],
    outputs: Sequence[Value] | Mapping[str, Value],
    name: str = "f",
    *,
    training: bool = False,
) -> Function:
    """A C function of the given inputs (parameters may be among them). Outputs in a list are called out0,
    out1, ...

    training: what differs between the modes (batch_norm, dropout) is as in training, else as in evaluation. A
    function has no state, so running statistics stay as they are; ask for new values as outputs.
    """
    named = dict(outputs) if isinstance(outputs, Mapping) else {f"out{i}": v for i, v in enumerate(outputs)}
    return Function(inputs, named, name, training)
