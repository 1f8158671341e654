"""The graph of an exported program: its JSON as calls of operators with arguments by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...reading.fields import Malformed, each, field, integer, objects, only, text
from ..imported.program import Shape, ValueRef, references

# ScalarType of the schema -> its name.
NAMES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"}
NAMES |= {9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16"}


@dataclass(frozen=True)
class OperatorCall:
    """One call of an operator. target: such as "aten.relu.default"; arguments: by the names of PyTorch's schema,
    tensors and sizes as ValueRef; results: the names of tensors and sizes; modules: (path, instance, class) for each
    entry of nn_module_stack; source: the user's file and line; recorded: whether autograd records the operator."""

    target: str
    arguments: Mapping[str, Any]
    results: tuple[str, ...]
    modules: tuple[tuple[str, str, str], ...]
    source: str
    recorded: bool = True

    @property
    def key(self) -> str:
        """The operator without its overload: "aten.relu"."""
        return ".".join(self.target.split(".")[:2])

    @property
    def in_place(self) -> bool:
        """Whether it changes its first operand."""
        return self.key.endswith("_") and not self.key.endswith("__")


LONGEST_NAME = 1000  # characters
DEPTH = 16  # of graphs in graphs
RANK = 16  # axes of a tensor at most
EXTENT = 1 << 31  # of an axis at most


def shape_of(sizes: Any) -> Shape:
    """Extents; an extent that the batch determines is None. Raises Malformed."""
    shape = each(sizes, "sizes", _extent)
    if len(shape) > RANK:
        raise Malformed(f"a tensor has {len(shape)} axes, more than {RANK}")
    return shape


def _extent(size: Any) -> int | None:
    kind, value = only(size, "a size")
    if kind != "as_int":
        field(size, kind, dict)
        return None
    return integer(value, "a size", 0, EXTENT)


def dtype_name(dtype: Any) -> str:
    return NAMES.get(integer(dtype, "a dtype"), f"dtype {dtype}")


def name_of(entry: Any, what: str = "name") -> str:
    """The name of a tensor or a size: an identifier."""
    name = field(entry, what, str)
    if not name.isidentifier() or len(name) > LONGEST_NAME:
        raise Malformed(f"{what} is no identifier")
    return name


def _number(value: Any) -> float:
    if type(value) is str and value in ("Infinity", "-Infinity", "NaN"):
        return float(value)
    if type(value) not in (int, float):
        raise Malformed("a value is no number")
    return float(value)


def _integer(value: Any) -> int:
    return integer(value, "a number")


def _truth(value: Any) -> bool:
    if type(value) is not bool:
        raise Malformed("a value is no truth value")
    return value


def _word(value: Any) -> str:
    return text(value, "an argument")


def _reference(value: Any) -> ValueRef:
    return ValueRef(name_of(value))


def _arguments(value: Any) -> tuple[Any, ...]:
    return each(value, "arguments", argument_of)


def _list_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: each(value, "an argument", read)


def _complex(value: Any) -> dict[str, float]:
    return {part: _number(field(value, part, float)) for part in ("real", "imag")}


# Kinds of arguments -> how they are read. A graph of control flow is None, since no operator of the table takes one.
_ARGUMENTS: dict[str, Callable[[Any], Any]] = {
    "as_none": lambda value: None,
    "as_graph": lambda value: None,
    "as_tensor": _reference,
    "as_custom_obj": _reference,
    "as_name": lambda value: ValueRef(name_of({"name": value})),
    "as_tensors": _list_of(_reference),
    **dict.fromkeys(("as_optional_tensors", "as_sym_ints", "as_sym_bools", "as_sym_floats"), _arguments),
    **dict.fromkeys(
        ("as_sym_int", "as_sym_bool", "as_sym_float", "as_optional_tensor"), lambda v: argument_of(v)
    ),
    "as_int": _integer,
    "as_ints": _list_of(_integer),
    "as_float": _number,
    "as_floats": _list_of(_number),
    "as_bool": _truth,
    "as_bools": _list_of(_truth),
    "as_string": _word,
    "as_operator": _word,
    "as_strings": _list_of(_word),
    "as_scalar_type": dtype_name,
    "as_memory_format": _integer,
    "as_layout": _integer,
    "as_device": lambda value: text(field(value, "type", str), "a device"),
    "as_complex": _complex,
    "as_int_lists": _list_of(_list_of(_integer)),
    "as_float_lists": _list_of(_list_of(_number)),
}


def argument_of(given: Any) -> Any:
    """An argument: numbers, texts, tuples, None, dtypes by name, and ValueRef. Raises Malformed."""
    kind, value = only(given, "an argument")
    if kind not in _ARGUMENTS:
        raise Malformed("an argument is of an unknown kind")
    return _ARGUMENTS[kind](value)


def node_of(node: Mapping[str, Any]) -> OperatorCall:
    """A node of the JSON. Raises Malformed."""
    results = [ref.name for output in field(node, "outputs", list) for ref in references(argument_of(output))]
    metadata = field(node, "metadata", dict)
    target = field(node, "target", str).removeprefix("torch.ops.")
    if not _TARGET.fullmatch(target):
        raise Malformed("the target of a node is no operator")
    arguments = {_word(a.get("name")): argument_of(a.get("arg")) for a in objects(node, "inputs")}
    return OperatorCall(
        target, arguments, tuple(results), _modules(_of(metadata, "nn_module_stack")), _source(metadata)
    )


_TARGET = re.compile(r"\w{1,100}(\.\w{1,100}){0,4}", re.ASCII)


def _of(metadata: Mapping[str, Any], name: str) -> str:
    found = metadata.get(name, "")
    return found if type(found) is str else ""


def flat_nodes(given: Any, tensors: dict[str, Any], depth: int = 0) -> Iterator[OperatorCall]:
    """The nodes of the JSON, including nodes inside torch.no_grad(), whose results are detached except for tensors from
    outside that they change. Nodes inside torch.autocast() are included too, if it changes nothing on a CPU. tensors:
    descriptions of tensors by name; the tensors inside are added."""
    for entry in objects({"nodes": given}, "nodes"):
        node = node_of(entry)
        region = _region(entry, node.target)
        if region is None:
            yield node
            continue
        detached, inner, operands = region
        if depth == DEPTH:
            raise Malformed(f"graphs are in graphs more than {DEPTH} times")
        graph = field(field(inner, "as_graph", dict), "graph", dict)
        tensors.update({**field(graph, "tensor_values", dict), **tensors})
        pairs = zip(field(graph, "inputs", list), operands, strict=True)
        names = {argument_of(a).name: argument_of(b).name for a, b in pairs}
        ends = [argument_of(output).name for output in field(graph, "outputs", list)]
        for end, result in zip(ends, node.results, strict=True):
            names.setdefault(end, f"{result}.inside" if detached else result)
            tensors[names[end]] = tensors[result]
        same = {argument_of(a).name for a in graph["inputs"]}  # and results that are these, changed in place
        for n in flat_nodes(graph.get("nodes"), tensors, depth + 1):
            if n.in_place and same.intersection(r.name for r in references(next(iter(n.arguments.values())))):
                same.update(n.results)
            yield replace(_renamed(n, names), recorded=n.recorded and not detached)
        for end, result in zip(ends, node.results, strict=True):
            if names[end] != result:
                inside = {"self": ValueRef(names[end])}
                target = "aten.detach.default" if detached and end not in same else "aten.alias.default"
                yield OperatorCall(target, inside, (result,), node.modules, node.source)


def _region(entry: Mapping[str, Any], target: str) -> tuple[bool, Any, Sequence[Any]] | None:
    """For an operator whose graph is inlined: whether it is without gradient, the graph, and its operands. None for
    other operators."""
    if not target.startswith("higher_order.wrap_with_"):
        return None
    arguments = [field(a, "arg", dict) for a in objects(entry, "inputs")]
    if target.startswith("higher_order.wrap_with_set_grad_enabled"):
        enabled, inner, *operands = arguments
        return not field(enabled, "as_bool", bool), inner, operands
    if target.startswith("higher_order.wrap_with_autocast"):
        device, _, enabled, _, inner, *operands = arguments
        return None if enabled["as_bool"] and device["as_string"] == "cpu" else (False, inner, operands)
    return None


def _renamed(node: OperatorCall, names: Mapping[str, str]) -> OperatorCall:
    def new(given: Any) -> Any:
        if isinstance(given, ValueRef):
            return ValueRef(names.get(given.name, given.name))
        return tuple(map(new, given)) if isinstance(given, tuple) else given

    arguments = {name: new(given) for name, given in node.arguments.items()}
    results = tuple(names.get(r, r) for r in node.results)
    return replace(node, arguments=arguments, results=results)


def _modules(stack: str) -> tuple[tuple[str, str, str], ...]:
    """`key,path,class;...` -> path, key, class, without the network itself."""
    found = []
    for entry in stack.split(";"):
        key, _, rest = entry.partition(",")
        path, _, class_name = rest.rpartition(",")
        if path and "_empty_nn_module_stack" not in entry:
            found.append((path, key, class_name.rpartition(".")[2]))
    return tuple(found)


def class_name_of(nodes: Sequence[Mapping[str, Any]]) -> str:
    """The class of the outermost module."""
    for node in nodes:
        path, _, class_name = _of(node["metadata"], "nn_module_stack").split(";")[0].rpartition(",")
        if path.endswith(",") and class_name.rpartition(".")[2].isidentifier():
            return str(class_name.rpartition(".")[2])
    return "Network"


def _source(metadata: Mapping[str, str]) -> str:
    """`net.py:12`: the innermost line that is not PyTorch's own."""
    place = ""
    for line in _of(metadata, "stack_trace").splitlines():
        words = line.split('"')
        if line.lstrip().startswith('File "') and len(words) > 2:
            file = words[1].replace("\\", "/")
            if "-packages/torch/" not in file and not file.startswith("torch/"):
                number = words[2].partition("line ")[2].partition(",")[0]
                place = f"{file.rpartition('/')[2]}:{number}"
    return place


def calls_numbered(nodes: Iterable[OperatorCall]) -> Iterator[OperatorCall]:
    """The nodes, with a number for each call of a module: PyTorch 2.5 and earlier give all calls of a module one name.
    Another call begins where nodes of a module follow nodes outside of it."""
    begun: dict[str, int] = {}
    before: tuple[tuple[str, str, str], ...] = ()
    for node in nodes:
        for module in node.modules:
            if module not in before:
                begun[module[0]] = begun.get(module[0], -1) + 1
        before = node.modules
        yield replace(
            node,
            modules=tuple(
                (path, f"{key}@{begun[path]}" if begun[path] else key, name)
                for path, key, name in node.modules
            ),
        )
