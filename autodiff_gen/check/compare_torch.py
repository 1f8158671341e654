"""`check NET.pt2`, and `check` of a model file with `from_torch`: compare an imported network with the program in the
file, or with the module itself as a user runs it. Compared are outputs, loss, every gradient, and the parameters and
buffers after training steps. Both are computed in float64 and without dropout; their random numbers would differ, so
both use the mean in place of each."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import functional as F
from .. import optim
from ..autodiff import grad
from ..errors import ToolError, counted, pip_install
from ..frontends.imported.network import network
from ..frontends.imported.program import CONSTANT, ImportedProgram, ValueRef, names, references
from ..functional.inputs import Input
from ..ir.build import make_input
from ..ir.graph import State
from ..ir.interpreter import evaluate
from ..ir.node import STATE, Value, topological
from ..ir.types import Type, s32
from ..model.model import Model
from ..report.text_table import table

BATCH, STEPS = 4, 3
# Accepted errors: of outputs and gradients, where float64 leaves 1e-10, and after training steps, which amplify errors.
TOLERANCE, AFTER_STEPS = 1e-6, 1e-4
FLOOR = 1e-3  # errors are relative to at least this share of the largest element of all tensors: some gradients are 0
OPTIMIZERS = {"SGD": {"lr": 0.001, "momentum": 0.9}, "Adam": {"lr": 0.001}}
DROPOUT = ("dropout", "dropout1d", "dropout2d")
MEANS = {"rand": ("full", (0.5,)), "randn": ("full", (0.0,))}  # random numbers -> their replacement
MEANS |= {f"{name}_like": ("full_like", mean) for name, (_, mean) in MEANS.items()}

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class ComparedValue:
    """One comparison: the largest error, relative to the largest element."""

    what: str
    tensor: str
    error: float
    allowed: float = TOLERANCE

    @property
    def good(self) -> bool:
        return self.error <= self.allowed


def compare(
    program: ImportedProgram,
    given: Any,
    name: str,
    seed: int = 0,
    data: Arrays | None = None,
    steps: int = STEPS,
) -> tuple[str, bool]:
    """The report, and whether all agrees. given: the module that was imported, or the file of torch.export; data:
    arrays for some or all inputs, the others are random; steps: the number of training steps. Raises ToolError without
    PyTorch, and for a network that PyTorch cannot run in float64."""
    rows = comparisons(program, given, name, seed, data, steps)
    worst: dict[str, ComparedValue] = {}
    count: dict[str, int] = {}
    for row in rows:
        count[row.what] = count.get(row.what, 0) + 1
        if row.what not in worst or not row.error <= worst[row.what].error:
            worst[row.what] = row
    lines = [
        f"{name}: the imported network compared with PyTorch in float64, batch {BATCH}, without dropout",
        table(
            ("compared", "tensors", "worst error", "at", ""),
            [
                (what, str(count[what]), f"{row.error:.1e}", row.tensor, "ok" if row.good else "WRONG")
                for what, row in worst.items()
            ],
            right=(1, 2),
        ),
    ]
    bad = next((row for row in rows if not row.good), None)
    if bad is None:
        lines.append("everything agrees; errors are relative to the largest element of the tensor")
    else:
        layer = bad.tensor.rpartition(".")[0]
        where = f" of layer {layer!r}" if layer else ""
        lines.append(f"FAILED: the first that differs is {bad.what}: {bad.tensor}{where}")
    return "\n".join(lines), bad is None


def comparisons(
    program: ImportedProgram,
    given: Any,
    name: str,
    seed: int = 0,
    data: Arrays | None = None,
    steps: int = STEPS,
) -> list[ComparedValue]:
    """All comparisons: outputs and loss, then the gradients, then each optimizer's steps. Parameters are in the order
    from the network's end to its start."""
    if importlib.util.find_spec("torch") is None:
        raise ToolError(f"comparing with the original needs PyTorch; run: {pip_install('torch')}")
    from .reference_torch import reference_module

    program = deterministic(program)
    inputs = _inputs(program, np.random.default_rng(seed), data or {})
    with reference_module(given, program.tied, program.views) as theirs:
        return _compared(program, theirs, name, inputs, seed + 1, steps)


def _compared(
    program: ImportedProgram, original: Any, name: str, inputs: Arrays, seed: int, count: int
) -> list[ComparedValue]:
    theirs = original.outputs(inputs)
    generator = np.random.default_rng(seed)
    classes = len(theirs) == 1 and theirs[0].ndim == 2 and theirs[0].shape[1] > 1
    targets = [
        generator.integers(0, t.shape[1], t.shape[:1]) if classes else generator.normal(size=t.shape)
        for t in theirs
    ]
    rows: list[ComparedValue] = []
    for k, (rule, options) in enumerate(OPTIMIZERS.items()):
        ours = _Ours(program, name, inputs, targets, getattr(optim, rule)(**options))
        if k == 0:
            loss, outputs, gradients = ours.derivatives()
            their_loss, their_outputs, their_gradients = original.derivatives(inputs, targets)
            named = zip(_output_names(program), outputs, their_outputs, strict=True)
            rows += [ComparedValue("outputs", n, _error(a, b)) for n, a, b in named]
            rows.append(ComparedValue("loss", "loss", _error(loss, their_loss)))
            untrained = {n: 0.0 * g for n, g in their_gradients.items() if g.any() and n in program.weights}
            rows += _rows("gradients", untrained | gradients, their_gradients, program)
        after, losses = ours.steps(count)
        their_after, their_losses = original.steps(inputs, targets, rule, options, count)
        steps = f"{counted(count, 'step')} of {rule}"
        rows.append(ComparedValue(f"{steps}: losses", "loss", _error(losses, their_losses), AFTER_STEPS))
        rows += _rows(steps, after, their_after, program, AFTER_STEPS)
    return rows


def deterministic(program: ImportedProgram) -> ImportedProgram:
    """The program without dropout, and with the means in place of random numbers."""
    known: dict[str, Any] = {}

    def new(given: Any) -> Any:
        if isinstance(given, ValueRef):
            return known.get(given.name, given)
        return tuple(map(new, given)) if type(given) in (tuple, list) else given

    calls = []
    for call in program.calls:
        args = tuple(map(new, call.args))
        options = {k: 0.0 if k in ("dropout", "dropout_p") else new(v) for k, v in call.options.items()}
        if call.function in DROPOUT:
            known[names(call.results)[0]] = args[0]
        else:
            function, more = MEANS.get(call.function, (call.function, ()))
            calls.append(replace(call, function=function, args=(*args, *more), options=options))
    return replace(program, calls=calls, outputs=new(program.outputs))


def _inputs(
    program: ImportedProgram, generator: np.random.Generator, data: Arrays
) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {}
    for name, dtype in program.inputs.items():
        shape = [BATCH if d is None else d for d in program.shapes[name]]
        drawn = generator.normal(size=shape) if dtype == "f32" else generator.integers(0, 2, shape)
        found[name] = np.asarray(data.get(name, drawn))
    return found


def _output_names(program: ImportedProgram) -> list[str]:
    return [f"output {k}" for k, _ in enumerate(references(program.outputs))]


def _error(ours: Any, theirs: Any, least: float = 0.0) -> float:
    """The largest error of all elements, relative to the largest element, or to `least`."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    return float(np.abs(a - b).max(initial=0.0) / (max(np.abs(b).max(initial=0.0), least) or 1.0))


def _rows(
    what: str, ours: Arrays, theirs: Arrays, program: ImportedProgram, allowed: float = TOLERANCE
) -> list[ComparedValue]:
    order = [n for n, w in program.weights.items() if w.role != CONSTANT and n in ours]
    floats = [np.abs(a).max(initial=0.0) for a in theirs.values() if a.dtype.kind == "f"]
    least = FLOOR * float(max(floats, default=0.0))
    errors = {n: _error(ours[n], theirs[n], least) if n in theirs else float("inf") for n in order}
    return [ComparedValue(what, n, errors[n], allowed) for n in reversed(order)]


class _Ours:
    """A model of the imported network, evaluated by the interpreter."""

    def __init__(
        self,
        program: ImportedProgram,
        name: str,
        inputs: Arrays,
        targets: Sequence[NDArray[Any]],
        optimizer: optim.Optimizer,
    ) -> None:
        net = network(program, name)
        given = []
        results_of = [program.shapes.get(r.name, ()) for r in references(program.outputs)]
        # A free batch must be the first axis of outputs; otherwise the batch gets a fixed size.
        one_batch = any(None in shape[1:] for shape in results_of)
        for n, array in inputs.items():
            free = program.shapes[n] and program.shapes[n][0] is None and not one_batch
            given.append(Input(n, array.shape, program.inputs[n], 0 if free else None))
        results = flat(net(*given))
        wanted = []
        loss: Any = 0.0
        for k, (result, array) in enumerate(zip(results, targets, strict=True)):
            integer = array.dtype.kind == "i"
            kind = Type(s32, result.shape[:1]) if integer else result.type
            t = make_input(f"target{k}", kind)
            loss = loss + (F.cross_entropy(result, t) if integer else F.mse_loss(result, t))
            wanted.append(t)
        outputs = {f"output{k}": v for k, v in enumerate(results)}
        self.model = Model(given, wanted, outputs, loss, optimizer, guard=None)
        self.feeds: dict[Value, Any] = dict(zip([*given, *wanted], [*inputs.values(), *targets], strict=True))
        step = self.model.entries()[0]
        self.step, self.lr = step, self.model.lr
        self.n = next((a.shape[0] for a in inputs.values()), 1)
        self.states = {}
        for node in topological([*step.outputs.values(), *step.updates.values()]):
            if node.op is STATE:
                state: State = node.attrs["state"]
                self.states[node.results[0]] = state
                self.feeds[node.results[0]] = state.stored(state.init.array())
        if self.lr is not None:
            self.feeds[self.lr] = self.model.default_lr
        self.outputs = results

    def derivatives(self) -> tuple[Any, list[Any], dict[str, Any]]:
        """The loss, the outputs in training mode, and the gradients by name."""
        loss = self.step.outputs["loss"]
        trained = [v for v, s in self.states.items() if s.role == "parameter" and s.trainable]
        from ..passes.training.resolve_mode import resolved

        training = resolved(self.outputs, True).roots
        feeds = dict(self.feeds)
        for node in topological(training):
            if node.op is STATE:
                feeds[node.results[0]] = node.attrs["state"].init.array()
        outputs = evaluate(list(training), feeds, self.n, "float64")
        value, *gradients = evaluate([loss, *grad(loss, trained)], self.feeds, self.n, "float64")
        named = {
            self.states[v].name: _logical(self.states[v], g) for v, g in zip(trained, gradients, strict=True)
        }
        return value, outputs, named

    def steps(self, count: int) -> tuple[dict[str, Any], list[float]]:
        """Parameters and buffers after some steps, and the losses."""
        feeds, losses = dict(self.feeds), []
        for _ in range(count):
            loss, *new = evaluate(
                [self.step.outputs["loss"], *self.step.updates.values()], feeds, self.n, "float64"
            )
            losses.append(float(loss))
            updated = dict(zip(self.step.updates, new, strict=True))
            feeds.update((v, updated[s]) for v, s in self.states.items() if s in updated)
        kept = {
            s.name: _logical(s, feeds[v]) for v, s in self.states.items() if s.role in ("parameter", "buffer")
        }
        return kept, losses


def flat(results: Any) -> list[Value]:
    """The values that a network returns, also from nested tuples."""
    return [v for part in results for v in flat(part)] if isinstance(results, tuple) else [results]


def _logical(state: State, stored: Any) -> Any:
    """`stored`, an array in a state's storage order, in its logical order and shape."""
    if state.storage is None:
        return stored
    shape = state.init.array().shape
    order = state.stored(np.arange(int(np.prod(shape))).reshape(shape)).reshape(-1)
    found = np.empty(order.size, stored.dtype)
    found[order] = np.asarray(stored).reshape(-1)
    return found.reshape(shape)
