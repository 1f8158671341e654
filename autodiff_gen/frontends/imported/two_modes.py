"""Merge the programs of a network in training and in evaluation mode: common calls appear once, and `by_mode` chooses
where the modes differ.

    training:   h = x + noise; y = relu(h)
    evaluation: y = relu(x)
->
    h = x + noise; c = by_mode(h, x); y = relu(c)
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import count
from typing import Any

import numpy as np

from ... import functional as F
from ...errors import ModelError, quoted
from .layer_rules import RECURRENT, parameters_of
from .program import (
    CONSTANT,
    PARAMETER,
    ImportedProgram,
    ModuleFrame,
    ProgramCall,
    Shape,
    ValueRef,
    WeightRef,
    chains,
    names,
)
from .states import with_states, without_states

FLAGS = ("training", "use_input_stats")  # options that are True if the function follows the mode
STATISTICS = ("running_mean", "running_var")


class Different(ModelError):
    """The two programs cannot be merged. The message completes the sentence "in evaluation mode ..."."""


def in_two_modes(training: ImportedProgram, evaluation: ImportedProgram) -> ImportedProgram:
    """The program that computes `training` in training mode and `evaluation` in evaluation mode. In `evaluation` a flag
    that is True takes the statistics of the batch. Raises Different."""
    made = _Merge(without_states(training), _of_batches(without_states(evaluation))).run()
    made = with_states(made, training.updates, training.class_name)
    made.calls = made.live
    return made


class _Merge:
    def __init__(self, training: ImportedProgram, evaluation: ImportedProgram) -> None:
        self.training, self.evaluation = training, evaluation
        self.weights = dict(training.weights)
        self.shapes: dict[str, Shape] = dict(training.shapes)
        self.calls: list[ProgramCall] = []
        self.here: dict[Any, Any] = {}  # references in the evaluation program -> in the merged program
        self.chosen: dict[tuple[Any, Any], ValueRef] = {}
        self.sizes = Counter(chain for call in training.calls for chain in chains(call.frames))

    def run(self) -> ImportedProgram:
        self._add_weights()
        ours, theirs = self.training.calls, self.evaluation.calls
        matcher = SequenceMatcher(None, list(map(_key, ours)), list(map(_key, theirs)), autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal":
                for one, other in zip(ours[a:b], theirs[c:d], strict=True):
                    self._both(one, other)
            else:
                self.calls += ours[a:b]
                for call in theirs[c:d]:
                    self._evaluated(call)
        outputs = self._mapped(self.evaluation.outputs)
        if not self._are_alike(self.training.outputs, outputs):
            raise Different("it returns other results")
        return replace(
            self.training,
            outputs=self._choose(self.training.outputs, outputs, ()),
            calls=self.calls,
            weights=self.weights,
            shapes=self.shapes,
            tied={**self.evaluation.tied, **self.training.tied},
            views={**self.evaluation.views, **self.training.views},
            modules=tuple(dict.fromkeys((*self.training.modules, *self.evaluation.modules))),
            keeps_gradients=self.training.keeps_gradients or self.evaluation.keeps_gradients,
        )

    def _add_weights(self) -> None:
        """Add the weights of the evaluation program. Weights that only evaluation mode reads do not train, since no
        gradient reaches them."""
        one, other = self.training, self.evaluation
        shown = [{*p.tied, *p.views} for p in (one, other)]
        if shown[0] & other.weights.keys() or shown[1] & one.weights.keys():
            raise Different("it reads other weights of those that share memory")
        read = {r for call in one.live for r in call.references}
        constants = {_content(w.array): n for n, w in one.weights.items() if w.role == CONSTANT}
        for name, weight in other.weights.items():
            own = one.weights.get(name)
            is_same = own is not None and np.array_equal(own.array, weight.array)
            new = name
            if weight.role == CONSTANT and not is_same:
                new = constants.get(_content(weight.array), name if own is None else f"{name}.evaluated")
            elif own is not None and not is_same:
                raise Different(f"its weight {quoted(name)} has other values")
            self.here[WeightRef(name)] = WeightRef(new)
            if weight.role == PARAMETER and WeightRef(name) not in read:
                self.weights[name] = replace(weight, trained=False)
            self.weights.setdefault(new, weight)

    def _both(self, ours: ProgramCall, theirs: ProgramCall) -> None:
        """Add one call for both modes if the two differ only in tensors of the same shapes, otherwise both calls."""
        args, options = self._mapped(theirs.args), self._mapped_options(theirs)
        named = [k for k in ours.options if k not in FLAGS]
        pairs = [(ours.args, args), *((ours.options[k], options[k]) for k in named)]
        if not all(self._are_alike(*pair) for pair in pairs):
            self.calls.append(ours)
            self._evaluated(theirs)
            return
        frames = ours.frames
        while frames and self.sizes[chains(frames)[-1]] == 1:  # the frames of a layer
            frames = frames[:-1]
        own = {k: self._choose(ours.options[k], options[k], frames) for k in named}
        made = replace(ours, args=self._choose(ours.args, args, frames), options={**ours.options, **own})
        self.calls.append(made)
        of_both = zip(names(theirs.results), names(ours.results), strict=True)
        self.here.update((ValueRef(e), ValueRef(t)) for e, t in of_both)

    def _evaluated(self, call: ProgramCall) -> None:
        """Add a call of evaluation mode only."""
        for name in names(call.results):
            new = next(n for k in count() if (n := f"{name}.evaluated{k or ''}") not in self.shapes)
            self.here[ValueRef(name)] = ValueRef(new)
            if name in self.evaluation.shapes:
                self.shapes[new] = self.evaluation.shapes[name]

        def renamed(results: Any) -> Any:
            if isinstance(results, str):
                return self.here[ValueRef(results)].name
            return tuple(map(renamed, results))

        args, options = self._mapped(call.args), self._mapped_options(call)
        self.calls.append(replace(call, args=args, options=options, results=renamed(call.results)))

    def _mapped(self, given: Any) -> Any:
        """An argument of the evaluation program with references of the merged program."""
        return _replaced(given, lambda ref: self.here.get(ref, ref))

    def _mapped_options(self, call: ProgramCall) -> dict[str, Any]:
        return {k: self._mapped(v) for k, v in call.options.items()}

    def _are_alike(self, ours: Any, theirs: Any) -> bool:
        """Whether `by_mode` can choose wherever two arguments have other references."""
        if isinstance(ours, ValueRef | WeightRef):
            if ours == theirs:
                return True
            shape = self._shape(ours)
            return (
                isinstance(theirs, ValueRef | WeightRef)
                and shape is not None
                and shape == self._shape(theirs)
            )
        if type(ours) in (tuple, list):
            same = type(ours) is type(theirs) and len(ours) == len(theirs)
            return same and all(map(self._are_alike, ours, theirs))
        return not isinstance(theirs, ValueRef | WeightRef | tuple)

    def _shape(self, ref: ValueRef | WeightRef) -> Shape | None:
        if isinstance(ref, WeightRef):
            return tuple(self.weights[ref.name].array.shape)
        return self.shapes.get(ref.name)

    def _choose(self, ours: Any, theirs: Any, frames: tuple[ModuleFrame, ...]) -> Any:
        """An argument for both modes: if the values of training and evaluation mode differ, `by_mode` chooses."""
        if type(ours) in (tuple, list):
            return type(ours)(
                self._choose(one, other, frames) for one, other in zip(ours, theirs, strict=True)
            )
        if not isinstance(ours, ValueRef | WeightRef) or ours == theirs:
            return ours
        pair = ours, theirs
        if pair not in self.chosen:
            name = next(n for k in count() if (n := f"{ours.name}.chosen{k or ''}") not in self.shapes)
            self.shapes[name] = self._shape(ours) or ()
            self.calls.append(ProgramCall("by_mode", pair, results=(name,), frames=frames))
            self.chosen[pair] = ValueRef(name)
        return self.chosen[pair]


def _parameters(call: ProgramCall) -> Mapping[str, inspect.Parameter]:
    """The parameters of the function by name; none for an expression or a layer."""
    if not call.function.isidentifier() or call.function in RECURRENT:
        return {}
    return {p.name: p for p in parameters_of(getattr(F, call.function))}


def _places(call: ProgramCall, wanted: tuple[str, ...]) -> list[int]:
    """The positions of arguments of these names."""
    return [k for k, name in enumerate(_parameters(call)) if name in wanted and k < len(call.args)]


def _is_of_batch(call: ProgramCall) -> bool:
    """Whether a flag of a call in evaluation mode says that it takes the statistics of the batch."""
    for k, (name, parameter) in enumerate(_parameters(call).items()):
        if name in FLAGS:
            given = call.args[k] if k < len(call.args) else call.options.get(name, parameter.default)
            return given is True
    return False


def _of_batches(program: ImportedProgram) -> ImportedProgram:
    """The program of evaluation mode, without the running statistics of calls that take the statistics of the
    batch."""
    of: dict[Any, Any] = {}
    calls = []
    for call in program.calls:
        args = _replaced(call.args, lambda ref: of.get(ref, ref))
        if call.function == "by_mode":  # made where the program computes running statistics itself
            of[ValueRef(call.results[0])] = args[0]
            continue
        if _is_of_batch(call):
            places = _places(call, STATISTICS)
            args = tuple(None if k in places else arg for k, arg in enumerate(args))
        options = {k: _replaced(v, lambda ref: of.get(ref, ref)) for k, v in call.options.items()}
        calls.append(replace(call, args=args, options=options))
    outputs = _replaced(program.outputs, lambda ref: of.get(ref, ref))
    made = replace(program, calls=calls, outputs=outputs)
    made.calls = made.live
    return made


def _replaced(given: Any, new: Callable[[Any], Any]) -> Any:
    """An argument with other references."""
    if isinstance(given, ValueRef | WeightRef):
        return new(given)
    return type(given)(_replaced(part, new) for part in given) if type(given) in (tuple, list) else given


def _key(call: ProgramCall) -> Any:
    """A key that two calls share if they may be merged."""

    def of(given: Any) -> Any:
        if isinstance(given, ValueRef | WeightRef):
            return "value"
        if isinstance(given, np.ndarray):
            return _content(given)
        if type(given) in (tuple, list):
            return tuple(map(of, given))
        return repr(given)

    flags = _places(call, FLAGS)
    args = tuple(of(arg) for k, arg in enumerate(call.args) if k not in flags)
    options = tuple((k, of(v)) for k, v in sorted(call.options.items()) if k not in FLAGS)
    paths = tuple(frame.path for frame in call.frames)
    return call.function, args, options, paths, len(names(call.results))


def _content(array: Any) -> Any:
    return array.dtype.str, array.shape, array.tobytes()
