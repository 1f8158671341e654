"""Replace calls by layers of nn: a call that reads all the weights of a module, and no others; and a call that is the
only one in a module without weights.

    linear(x, fc.weight, fc.bias)    ->    fc = nn.Linear(4, 3); fc(x)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ... import functional as F
from ... import nn
from ...errors import ModelError
from .layer_rules import RECURRENT, WEIGHTED, LayerCall, arguments_of, parameters_of
from .program import (
    ImportedProgram,
    ProgramCall,
    Shape,
    ValueRef,
    WeightRef,
    around,
    chains,
    owner,
    weights_of_modules,
)

Held: TypeAlias = Mapping[str, set[str]]  # path of a module -> names of the weights in it and below it
TRACKED = "num_batches_tracked"  # a buffer of normalisation layers that no function reads


# Layers that only call the function of the same name with their options.
PLAIN = {
    name.lower(): name
    for name in (
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "AvgPool1d",
        "AvgPool2d",
        "CELU",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "ELU",
        "Flatten",
        "GELU",
        "GLU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "LeakyReLU",
        "LogSigmoid",
        "LogSoftmax",
        "MaxPool1d",
        "MaxPool2d",
        "Mish",
        "PixelShuffle",
        "PixelUnshuffle",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softshrink",
        "Softsign",
        "Tanh",
        "Threshold",
        "Unflatten",
    )
} | {"interpolate": "Upsample"}


def _plain(call: ProgramCall) -> LayerCall | None:
    """The layer of a call without weights."""
    class_name = PLAIN.get(call.function.replace("_", ""))
    if class_name is None or any(isinstance(r, WeightRef) for r in call.references):
        return None
    (input, *_), (_, *rest) = arguments_of(call).values(), arguments_of(call).items()
    given = dict(rest)
    training = given.pop("training", True)
    known = {p.name: p for p in parameters_of(getattr(nn, class_name))}
    function = {p.name: p.default for p in parameters_of(getattr(F, call.function))}
    if any(value != function[name] for name, value in given.items() if name not in known):
        return None
    return LayerCall(class_name, given, (input,), {}, not training)


def with_layers(program: ImportedProgram) -> ImportedProgram:
    """The program with layers in place of calls; unused calls and weights are left out. Raises ModelError for a
    function that only layers have, if its weights do not make one layer."""
    calls = program.live
    sizes = Counter(chain for call in calls for chain in chains(call.frames))
    held = weights_of_modules(program.weights), weights_of_modules([*program.weights, *program.tied])
    found = [_found(call, program, sizes, *held) for call in calls]
    texts: dict[str, set[tuple[str, bool]]] = {}
    for one in found:
        if one is not None:
            texts.setdefault(one[0], set()).add((one[1].constructor, one[1].evaluated))
    good = {path: next(iter(made)) for path, made in texts.items() if len(made) == 1}
    inside = {frame.path for call in calls for frame in call.frames}
    other = {  # modules that also compute something else, such as a product with a detached weight
        frame.path
        for call, one in zip(calls, found, strict=True)
        for frame in call.frames
        if one is None or one[0] != frame.path
    }
    other |= {path for p in inside | good.keys() for path in around(p)}
    good = {path: made for path, made in good.items() if path not in other}
    changed = [
        call if one is None or one[0] not in good else _called(call, *one)
        for call, one in zip(calls, found, strict=True)
    ]
    for call in changed:
        if call.layer is None and call.function in RECURRENT:
            if _adds_a_batch(call, calls):
                raise ModelError(
                    f"{program.class_name} cannot be imported: {call.op} has an input without a batch; give it one, as "
                    f"by x.unsqueeze(0) before a layer with batch_first=True ({call.source})"
                )
            raise ModelError(
                f"{program.class_name} cannot be imported: {call.op} has weights that do not belong to one layer; give "
                f"each layer its own ({call.source})"
            )
    used = {r.name for call in calls for r in call.references if isinstance(r, WeightRef)}
    used |= {f"{path}.{TRACKED}" for path in good}
    return replace(
        program,
        calls=changed,
        weights={name: w for name, w in program.weights.items() if name in used},
        tied={name: other for name, other in program.tied.items() if owner(name) in good},
        layers={path: text for path, (text, _) in good.items()},
        evaluated={path for path, (_, evaluated) in good.items() if evaluated},
    )


def _adds_a_batch(call: ProgramCall, calls: Sequence[ProgramCall]) -> bool:
    """Whether the module of a call adds an axis to its own input."""
    input, *_ = call.args
    return any(
        other.function == "unsqueeze" and other.frames == call.frames and ValueRef(other.results[0]) == input
        for other in calls
    )


def _found(
    call: ProgramCall,
    program: ImportedProgram,
    sizes: Counter[tuple[str, ...]],
    weights: Held,
    with_tied: Held,
) -> tuple[str, LayerCall] | None:
    """The path and the layer of a call; None if it is not a layer's call. weights: the names of each module's weights;
    with_tied: these names and the names of weights that are tied to another weight."""
    inner = call.frames[-1] if call.frames and sizes[chains(call.frames)[-1]] == 1 else None
    if call.function not in WEIGHTED:
        layer = _plain(call) if inner is not None else None
        return None if layer is None or inner is None or inner.path in weights else (inner.path, layer)

    def shape(ref: Any) -> Shape:
        if isinstance(ref, WeightRef):
            return tuple(program.weights[ref.name].array.shape)
        return program.shapes[ref.name]

    try:
        layer = WEIGHTED[call.function](arguments_of(call), shape)
    except KeyError:  # a weight or shape that is computed
        layer = None
    if layer is None:
        return None
    refs = {key: ref for key, ref in layer.weights.items() if ref is not None}
    if not all(isinstance(ref, WeightRef) for ref in refs.values()):
        return None
    paths = [*([inner.path] if inner else []), *(owner(ref.name) for ref in refs.values())]
    active = zip(call.frames, chains(call.frames), strict=True)
    shared = {frame.path for frame, chain in active if sizes[chain] > 1}  # modules that call more than this
    return next(
        ((p, layer) for p in paths if p and p not in shared and _matches(p, refs, program, with_tied)), None
    )


def _matches(path: str, refs: Mapping[str, WeightRef], program: ImportedProgram, weights: Held) -> bool:
    """Whether `refs` are all the weights of the module, and no call updates them."""
    held = weights.get(path, set()) - {f"{path}.{TRACKED}"}
    same = all(program.tied.get(f"{path}.{key}", f"{path}.{key}") == ref.name for key, ref in refs.items())
    same = same and not any(ref.name in program.updates for ref in refs.values())
    return same and held == {f"{path}.{key}" for key in refs}


def _called(call: ProgramCall, path: str, layer: LayerCall) -> ProgramCall:
    """The call of the layer in place of `call`."""
    frames = tuple(frame for frame in call.frames if frame.path != path)
    return replace(call, function="", layer=path, args=layer.inputs, options={}, frames=frames)
