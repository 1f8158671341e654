"""Print a program as Python: one class for each kind of module, and the network as one nested constructor.

class Block(nn.Module):
    def __init__(self, conv):
        self.conv = conv

    def forward(self, x):
        y = self.conv(x)
        return x + y

net = nn.Sequential(
    Block(conv=nn.Conv2d(8, 8, 3, padding=1)),
    ...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ... import nn
from .body import ForwardScope
from .layers import with_layers
from .module_tree import Inline, Invocation, invocation_tree
from .program import BUFFER, CONSTANT, ImportedProgram, ValueRef, around, owner
from .text import (
    Nested,
    Text,
    assignment,
    is_attribute,
    lines,
    literal,
    member,
    pascal_case,
    prefixed,
    unused,
)

SEQUENTIAL, LIST, DICT, CLASS, LAYER = "Sequential", "ModuleList", "ModuleDict", "class", "layer"
OF_DICTIONARIES = {*dir(nn.ModuleDict)}
# Names that a model file uses, so that no class may have them.
RESERVED = {
    "FOLDER",
    "F",
    "Path",
    "ag",
    "constants",
    "file",
    "init",
    "model",
    "module",
    "net",
    "nn",
    "np",
    "optim",
}
_NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
RESERVED |= {"float", "getattr", "self", "setattr", "super"}


@dataclass
class WrittenModule:
    """How a module is written. text: the constructor call of a layer, or the name of a class."""

    kind: str
    text: str = ""
    children: dict[str, str] = field(default_factory=dict)  # name -> path


def network_source(program: ImportedProgram) -> tuple[str, ImportedProgram]:
    """Python text that defines `net`, and the program with layers, whose weights are the weights of net. The text reads
    the program's constants from the mapping `constants`."""
    program = with_layers(program)
    inline: set[str] = set()
    while True:
        try:
            return _Source(program, inline).text(), program
        except Inline as interrupted:
            inline.add(interrupted.path)


def _parameters(children: Iterable[str]) -> dict[str, str]:
    """Name of a child -> the constructor's parameter for it."""
    found: dict[str, str] = {}
    for name in children:
        found[name] = unused(name, {*RESERVED, *found.values()} | {n for n in children if n != name})
    return found


def _are_numbered(children: Mapping[str, object]) -> bool:
    """Whether modules are the modules of a list. Numbers among other names, and a few large numbers, are keys of a
    dictionary."""
    if not children or not all(_NUMBER.fullmatch(name) for name in children):
        return False
    return max(map(int, children)) < 100 + 4 * len(children)


class _Source:
    def __init__(self, program: ImportedProgram, inline: set[str]) -> None:
        self.program, self.inline = program, inline
        self.root = invocation_tree(program, inline)
        self.invocations: dict[str, list[Invocation]] = {"": [self.root]}
        for node in self.root.invocations:
            self.invocations.setdefault(node.path, []).append(node)
        self.children = self._children()
        self.classes: dict[str, str] = {}  # text -> name
        self.forms: dict[str, WrittenModule] = {}
        for path in sorted(self.children, key=lambda p: -len(p.split(".")) if p else 1):
            self.forms[path] = self._form(path)

    def _children(self) -> dict[str, dict[str, str]]:
        """The children of each path, by name, in the order of the original."""
        held = [name for name, w in self.program.weights.items() if w.role != CONSTANT]
        used = {*map(owner, held), *self.program.layers, *self.invocations}
        used |= {path for u in used for path in around(u)}
        order = [p for p in self.program.modules if p in used]
        found: dict[str, dict[str, str]] = {"": {}}
        for path in (*order, *map(owner, held), *self.program.layers, *self.invocations):
            parts = path.split(".") if path else []
            for k in range(len(parts)):
                child = ".".join(parts[: k + 1])
                found.setdefault(child, {})
                found[".".join(parts[:k])][parts[k]] = child
        return found

    # Forms, innermost first

    def _form(self, path: str) -> WrittenModule:
        if path in self.program.layers:
            return WrittenModule(LAYER, self.program.layers[path])
        children, own = self.children[path], self._own(path)
        if _are_numbered(children):
            last = max(map(int, children))
            children = {str(k): children.get(str(k), "") for k in range(last + 1)}
        nodes = self.invocations.get(path, [])
        if nodes and not own and all(self._is_chain(node, children) for node in nodes):
            return WrittenModule(SEQUENTIAL, children=children)
        if not nodes and not own and _are_numbered(children):
            return WrittenModule(LIST, children=children)
        plain = all(map(is_attribute, children))
        if not nodes and not own and not (plain and OF_DICTIONARIES.intersection(children)):
            return WrittenModule(DICT, children=children)
        each: list[Invocation | None] = [*nodes] or [None]
        texts = {self._class(path, node, children, own) for node in each}
        if len(texts) > 1:
            raise Inline(path)
        text = texts.pop()
        wanted = nodes[0].class_name if nodes else path.rpartition(".")[2]
        wanted = wanted if is_attribute(wanted) and nodes else pascal_case(wanted)
        if text not in self.classes:
            taken = RESERVED.union(self.classes.values())
            names = (wanted, *(f"{wanted}{k}" for k in range(2, len(taken) + 3)))
            self.classes[text] = next(name for name in names if name not in taken)
        return WrittenModule(CLASS, self.classes[text], children)

    def _own(self, path: str) -> dict[str, str]:
        """The weights of a module itself, by attribute."""
        held = (name for name, w in self.program.weights.items() if w.role != CONSTANT)
        return {name.rpartition(".")[2]: name for name in held if owner(name) == path}

    def _is_chain(self, node: Invocation, children: Mapping[str, str]) -> bool:
        """Whether a module calls its children, numbered from 0, in order."""
        if (
            not children
            or "0" not in children
            or (node is self.root and not isinstance(self.program.outputs, ValueRef))
        ):
            return False
        value, seen = node.inputs, []
        for item in node.items:
            path = item.path if isinstance(item, Invocation) else item.layer
            inputs = item.inputs if isinstance(item, Invocation) else list(item.args)
            outputs = item.outputs if isinstance(item, Invocation) else list(item.results)
            if path is None or len(inputs) != 1 or inputs != value or len(outputs) != 1:
                return False
            if not isinstance(outputs[0], str):
                return False
            value = [ValueRef(outputs[0])]
            seen.append(path)
        wanted = [path for path in children.values() if path]
        return seen == wanted and value == [ValueRef(name) for name in node.outputs]

    def _class(
        self, path: str, node: Invocation | None, children: Mapping[str, str], own: Mapping[str, str]
    ) -> str:
        """The text of a module's class, without `class` and its name."""
        numbered = _are_numbered(children)
        plain = all(map(is_attribute, children))
        base = "Module" if plain else SEQUENTIAL if numbered else DICT
        found = [f"(nn.{base}):"]
        if own or (children and plain):
            given = _parameters(children) if plain else {}
            parameters = ["self", *given.values()] if plain else ["self", "*modules"]
            found += lines(Nested("def __init__(", parameters, "):"), 4)
            found.append(f"        super().__init__({'' if plain else '*modules'})")
            found += [f"        self.{name} = {parameter}" for name, parameter in given.items()]
            for name, weight in own.items():
                found.append(f"        {assignment('self', name, self._stored(weight))}")
            found.append("")
        if node is not None:
            scope = ForwardScope(path, self.program, self._access, lambda p: p not in self.inline)
            outputs: Any = tuple(map(ValueRef, node.outputs))
            outputs = outputs[0] if len(outputs) == 1 else outputs
            found += scope.forward(node, self.program.outputs if node is self.root else outputs)
        elif found[-1] == "":
            found.pop()
        return "\n".join(found)

    def _stored(self, name: str) -> str:
        weight = self.program.weights[name]
        start = f"init.zeros({literal(tuple(weight.array.shape))})"
        if weight.role == BUFFER:
            kind = {"f": "f32", "b": "bool"}.get(weight.array.dtype.kind, "s32")
            return f"nn.Buffer({start})" if kind == "f32" else f'nn.Buffer({start}, "{kind}")'
        return f"nn.Parameter({start})"

    def _access(self, start: str, path: str) -> str:
        """Python text of the module at `path`, in the forward method of the module at `start`."""
        return self.access("self", path[len(start) :].strip(".") if start else path, start)

    def access(self, root: str, path: str, start: str = "") -> str:
        """Python text of the module at `path` in the one at `start`, which is called `root`."""
        text, at = root, start
        for name in path.split(".") if path else []:
            beside = self.children[at]
            if _are_numbered(beside):
                text += f"[{literal(int(name))}]"
            else:
                text += f".{name}" if all(map(is_attribute, beside)) else f"[{literal(name)}]"
            at = f"{at}.{name}" if at else name
        return text

    # The text

    def _tree(self, path: str) -> Text:
        """The constructor of a module and of the modules in it."""
        if not path:
            return "nn.Identity()"  # a number that no module of the original has, or one that does nothing
        return self._constructed(path)

    def _constructed(self, path: str) -> Text:
        form = self.forms[path]
        if form.kind == LAYER:
            return form.text
        items = {name: self._tree(child) for name, child in form.children.items()}
        if form.kind == SEQUENTIAL:
            return Nested("nn.Sequential(", list(items.values()), ")")
        if form.kind == LIST:
            return Nested("nn.ModuleList([", list(items.values()), "])")
        if form.kind == DICT:
            return Nested("nn.ModuleDict({", [prefixed(f"{literal(k)}: ", t) for k, t in items.items()], "})")
        if items and not all(map(is_attribute, items)):
            if _are_numbered(items):
                return Nested(f"{form.text}(", list(items.values()), ")")
            return Nested(f"{form.text}({{", [prefixed(f"{literal(k)}: ", t) for k, t in items.items()], "})")
        given = _parameters(items)
        return Nested(f"{form.text}(", [prefixed(f"{given[k]}=", t) for k, t in items.items()], ")")

    def text(self) -> str:
        """Classes, the network, tied weights, evaluation mode, and frozen parameters."""
        tree = self._constructed("")
        parts = [f"class {name}{text}\n" for text, name in self.classes.items()]
        end = lines(tree, before="net = ")
        for name, other in self.program.tied.items():
            end.append(
                assignment(self.access("net", owner(name)), name.rpartition(".")[2], self._weight(other))
            )
        end += self._each(self._outermost(self.program.evaluated), "eval()")
        frozen = {
            n for n, w in self.program.weights.items() if w.role not in (BUFFER, CONSTANT) and not w.trained
        }
        if frozen:
            end += self._frozen(frozen)
        return "\n\n".join([*parts, "\n".join(end) + "\n"])

    def _weight(self, name: str) -> str:
        """Python text of a weight of the network."""
        return member(self.access("net", owner(name)), name.rpartition(".")[2])

    def _outermost(self, layers: set[str]) -> list[str]:
        """The outermost modules in which all layers that depend on the mode are in `layers`."""
        all_ = {
            path
            for path, text in self.program.layers.items()
            if text.startswith(
                ("nn.BatchNorm", "nn.Dropout", "nn.InstanceNorm", "nn.GRU", "nn.LSTM", "nn.RNN")
            )
        }
        return self._covering(layers, all_)

    def _covering(self, chosen: set[str], every: set[str]) -> list[str]:
        """The outermost paths below which each path of `every` is in `chosen`."""
        below: dict[str, set[str]] = {}
        for p in every:
            for path in ("", *around(p), p):
                below.setdefault(path, set()).add(p)
        found: dict[str, None] = {}
        for path in self.children:  # outer ones first
            inner = not found.keys().isdisjoint(("", *around(path), path))
            if path in below and below[path] <= chosen and not inner:
                found[path] = None
        return list(found)

    def _frozen(self, frozen: set[str]) -> list[str]:
        parameters = {n for n, w in self.program.weights.items() if w.role not in (BUFFER, CONSTANT)}
        modules = self._covering(frozen, parameters)
        rest = [n for n in frozen if {"", *around(n)}.isdisjoint(modules)]
        single = [self._weight(n) for n in sorted(rest)]
        each = self._each(modules, "requires_grad_(False)")
        return [*each, *(f"{name}.requires_grad_(False)" for name in single)]

    def _each(self, paths: list[str], call: str) -> list[str]:
        """Statements that call a method of each module; one loop for consecutive modules of a numbered container."""
        found: list[str] = []
        left = list(paths)
        while left:
            owner_, _, name = left[0].rpartition(".")
            siblings = list(self.forms[owner_].children.values()) if name.isdigit() else [left[0]]
            at = siblings.index(left[0])
            count = 1
            while siblings[at + count : at + count + 1] == left[count : count + 1] != []:
                count += 1
            if count > 2:
                found.append(f"for module in {self.access('net', owner_)}[{at or ''}:{at + count}]:")
                found.append(f"    module.{call}")
            else:
                found += [f"{self.access('net', path)}.{call}" for path in left[:count]]
            left = left[count:]
        return found
