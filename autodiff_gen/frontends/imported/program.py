"""An imported network as a list of calls of our functions: every importer converts its file to it, and model.py is
printed from it.

    ImportedProgram(
        inputs={"x": "f32"},
        outputs=(ValueRef("y"),),
        calls=[
            ProgramCall("linear", (ValueRef("x"), WeightRef("fc.weight"), WeightRef("fc.bias")), results=("h",)),
            ProgramCall("relu", (ValueRef("h"),), results=("y",)),
        ],
        weights={"fc.weight": Weight(array), "fc.bias": Weight(array)},
        shapes={"x": (None, 4), "h": (None, 3), "y": (None, 3)},
    )

`layers.py` replaces calls by layers of `nn`, `module_tree.py` restores the module tree, `source.py` prints it, and
`network.py` executes the printed text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

Shape: TypeAlias = tuple[int | None, ...]  # None: an extent that the batch determines
Names: TypeAlias = tuple[Any, ...]  # of results: strings, and tuples of them if a function returns tuples

CUSTOM = "custom_gradient"  # a function whose gradients go to its third argument only
BUFFER, CONSTANT, PARAMETER = "buffer", "constant", "parameter"


@dataclass(frozen=True)
class ValueRef:
    """The value of that name: an input, or a result of an earlier call."""

    name: str


@dataclass(frozen=True)
class WeightRef:
    """The parameter, buffer or constant of that name in `ImportedProgram.weights`."""

    name: str


class ModuleFrame(NamedTuple):
    """A module that was active at a call. path: its name in the outermost module, "features.0"; instance: distinguishes
    the calls of one module, such as "features.0@1"; class_name: the class of the original, without its package."""

    path: str
    instance: str
    class_name: str


@dataclass(frozen=True)
class Weight:
    """role: a parameter, a buffer (state beside the parameters), or a constant, which no state_dict has; trained: the
    requires_grad of a parameter."""

    array: NDArray[Any]
    role: str = PARAMETER
    trained: bool = True


class WeightView(NamedTuple):
    """A weight that shows elements of another weight, `base`. elements: the position of each element in `base`;
    trained: whether the gradient of the view is part of the gradient of `base`."""

    base: str
    elements: NDArray[Any]
    trained: bool


_PLAIN_FIELDS = re.compile(r"([^{}]|\{\}|\{\{|\}\})*")
# The words that the form of a call may have in addition to arguments, so that it has no text of the imported file.
_WORDS = r"v|None|shape|ndim|and|or|not|if|else|in|F\.[a-z_]+|ag\.grad|\d+(\.\d+)?(e-?\d+)?"
_FORM = re.compile(rf"({_WORDS}|[][(){{}}:,.+*/%@<>=&|^~ -])*")


@cache
def _is_form(function: str) -> bool:
    return bool(_PLAIN_FIELDS.fullmatch(function) and _FORM.fullmatch(function.replace("{}", "v")))


@dataclass(frozen=True)
class ProgramCall:
    """results = function(*args, **options).

    function: a name of `functional`, or an expression with braces for the arguments, such as "{} + {}" or
    "{}.shape[0]"; empty for the call of a layer. layer: the path of the layer's module. args, options: ValueRef,
    WeightRef, numbers, strings, arrays, and tuples of them. frames: the modules that were active, outermost first,
    without the network itself. source, op: the user's file and line, and the original name, for messages.
    """

    function: str
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    results: Names = ()
    frames: tuple[ModuleFrame, ...] = ()
    source: str = ""
    op: str = ""
    layer: str | None = None

    def __post_init__(self) -> None:
        if not (self.function.isidentifier() or _is_form(self.function) or self.layer is not None):
            raise ValueError("it has another argument than a number")

    @cached_property
    def references(self) -> tuple[ValueRef | WeightRef, ...]:
        """The references in all arguments, in order."""
        return (*references(self.args), *references(tuple(self.options.values())))


@dataclass
class ImportedProgram:
    """inputs: dtypes by name; outputs: values, in nested tuples if the network returns such; weights: by name in the
    state_dict, in its order; shapes: the known shapes of values, by name; tied: name of a weight -> name of the other
    weight that it is; views: name of a weight -> the view of another weight that it is, such as a transpose; updates:
    the new values of buffers that a call changes; keeps_gradients: whether a form without in-place operators would lose
    gradients of changed tensors; class_name: the network's class; evaluated: paths of layers that are in evaluation
    mode also while the model trains; integers: names of results that are known to be no floats."""

    inputs: dict[str, str]
    outputs: Any
    calls: list[ProgramCall]
    weights: dict[str, Weight]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    tied: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, WeightView] = field(default_factory=dict)
    updates: Mapping[str, Any] = field(default_factory=dict)
    keeps_gradients: bool = False
    class_name: str = "Network"
    modules: tuple[str, ...] = ()  # paths of modules in the order of the original, as far as known
    layers: dict[str, str] = field(default_factory=dict)  # path -> the constructor call, by layers.py
    evaluated: set[str] = field(default_factory=set)
    integers: frozenset[str] = frozenset()

    @property
    def live(self) -> list[ProgramCall]:
        """The calls that outputs depend on."""
        needed = {ref.name for ref in references(self.outputs) if isinstance(ref, ValueRef)}
        found = []
        for call in reversed(self.calls):
            if needed.intersection(names(call.results)):
                found.append(call)
                needed.update(r.name for r in call.references if isinstance(r, ValueRef))
        return found[::-1]


def frozen_after_detach(program: ImportedProgram) -> ImportedProgram:
    """The program, with parameters frozen that outputs depend on only through detached values: no gradient reaches
    them, so PyTorch's optimizers leave them as they are."""
    needed = set(references(program.outputs))  # by gradients
    for call in reversed(program.calls):
        if call.function != "detach" and any(ValueRef(name) in needed for name in names(call.results)):
            needed.update(references(call.args[2]) if call.function == CUSTOM else call.references)
    used = {r.name for call in program.live for r in call.references if isinstance(r, WeightRef)}
    frozen = {n for n in used if program.weights[n].role == PARAMETER and WeightRef(n) not in needed}
    weights = {n: replace(w, trained=False) if n in frozen else w for n, w in program.weights.items()}
    return replace(program, weights=weights)


def names(results: Names | str) -> list[str]:
    """All names of nested results."""
    if isinstance(results, str):
        return [results]
    return [name for part in results for name in names(part)]


def references(argument: Any) -> Iterator[ValueRef | WeightRef]:
    """The references in an argument, in order."""
    if isinstance(argument, ValueRef | WeightRef):
        yield argument
    elif isinstance(argument, tuple | list):
        for part in argument:
            yield from references(part)


def around(path: str) -> list[str]:
    """The paths of the modules around a module or a weight, outermost first, without the network itself."""
    return [path[:k] for k, letter in enumerate(path) if letter == "."]


def weights_of_modules(weights: Iterable[str]) -> dict[str, set[str]]:
    """The names of each module's weights, and of the weights of the modules below it, by the path of the module."""
    found: dict[str, set[str]] = {}
    for name in weights:
        for path in around(name):
            found.setdefault(path, set()).add(name)
    return found


def chains(frames: Sequence[ModuleFrame]) -> list[tuple[str, ...]]:
    """For each frame the instances of the frames around it, and its own: they identify one call of a module."""
    return [tuple(frame.instance for frame in frames[: k + 1]) for k in range(len(frames))]


def owner(weight: str) -> str:
    """The path of the module that has a weight."""
    return weight.rpartition(".")[0]
