"""Restore the module tree of a program: each call of a module becomes a node that contains the calls made in the
module, with its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .program import (
    CONSTANT,
    ImportedProgram,
    ProgramCall,
    ValueRef,
    WeightRef,
    chains,
    names,
    owner,
    references,
)


class Inline(Exception):
    """The calls of this module must be part of the module around it."""

    def __init__(self, path: str) -> None:
        self.path = path


@dataclass
class Invocation:
    """One call of a module. items: calls and invocations in order; inputs: values and weights from outside, in order of
    first use; outputs: names of results that are used outside."""

    path: str
    class_name: str
    items: list[ProgramCall | Invocation] = field(default_factory=list)
    inputs: list[ValueRef | WeightRef] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def calls(self) -> Iterator[ProgramCall]:
        for item in self.items:
            if isinstance(item, ProgramCall):
                yield item
            else:
                yield from item.calls

    @property
    def invocations(self) -> Iterator[Invocation]:
        """The invocations inside, outermost first."""
        for item in self.items:
            if isinstance(item, Invocation):
                yield item
                yield from item.invocations


def is_below(path: str, module: str) -> bool:
    """Whether a path is the path of the module, or of a module in it."""
    return not module or path == module or path.startswith(f"{module}.")


def invocation_tree(program: ImportedProgram, inline: set[str]) -> Invocation:
    """The call of the network, with the calls of modules inside. The calls of modules in `inline` become part of the
    module around. Raises Inline for a module whose calls are interrupted by other calls, and for a module that is
    called in one that does not contain it."""
    root = Invocation("", program.class_name)
    open_: list[tuple[str, Invocation]] = []
    closed: set[tuple[str, ...]] = set()
    for call in program.calls:
        frames = [frame for frame in call.frames if frame.path not in inline]
        depth = 0
        while depth < min(len(frames), len(open_)) and open_[depth][0] == frames[depth].instance:
            depth += 1
        open_names = tuple(instance for instance, _ in open_)
        closed.update(open_names[: k + 1] for k in range(depth, len(open_)))
        del open_[depth:]
        for frame, chain in zip(frames[depth:], chains(frames)[depth:], strict=True):
            if chain in closed:
                raise Inline(frame.path)
            node = Invocation(frame.path, frame.class_name)
            (open_[-1][1] if open_ else root).items.append(node)
            open_.append((frame.instance, node))
        (open_[-1][1] if open_ else root).items.append(call)
    _connect(root, program)
    return root


def _connect(root: Invocation, program: ImportedProgram) -> None:
    """Set the inputs and outputs of each invocation."""
    last: dict[str, int] = {}
    calls = list(root.calls)
    for k, call in enumerate(calls):
        last.update((ref.name, k) for ref in call.references if isinstance(ref, ValueRef))
    last.update((ref.name, len(calls)) for ref in references(program.outputs) if isinstance(ref, ValueRef))
    position = {id(call): k for k, call in enumerate(calls)}
    for node in root.invocations:
        strange = next(
            (i for i in node.items if isinstance(i, Invocation) and not is_below(i.path, node.path)), None
        )
        if strange is not None:  # a module that was passed as an argument
            raise Inline(strange.path)
        inside = list(node.calls)
        end = position[id(inside[-1])]
        made = [name for call in inside for name in names(call.results)]
        node.outputs = [name for name in made if last.get(name, -1) > end]
        node.inputs = external_reads(inside, node.path, program, set(made))
    root.inputs = [ValueRef(name) for name in program.inputs]
    root.outputs = [ref.name for ref in references(program.outputs)]


def external_reads(
    calls: Sequence[ProgramCall], path: str, program: ImportedProgram, made: set[str]
) -> list[ValueRef | WeightRef]:
    """The values and weights that the calls of a module read from outside: values that are not in `made`, and weights
    of modules that are not below `path`. Raises Inline for a call of a layer that is not below `path`."""
    found: dict[ValueRef | WeightRef, None] = {}
    for call in calls:
        for ref in call.references:
            if isinstance(ref, ValueRef):
                mine = ref.name in made
            else:
                constant = program.weights[ref.name].role == CONSTANT
                mine = constant or is_below(owner(ref.name), path)
            if not mine:
                found[ref] = None
        if call.layer is not None and not is_below(call.layer, path):
            raise Inline(path)
    return list(found)
