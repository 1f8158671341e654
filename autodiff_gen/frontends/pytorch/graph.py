"""The graph of an exported program: its JSON as calls of operators with arguments by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..imported.program import Shape, ValueRef, references

# ScalarType of the schema -> its name.
NAMES = {1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"}
NAMES |= {9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16"}


@dataclass(frozen=True)
class Node:
    """One call of an operator. target: "aten.relu.default"; arguments: by the names of PyTorch's schema, tensors and
    sizes as ValueRef; results: the names of tensors and sizes; modules: the entries of nn_module_stack, path, instance
    and class; source: the user's file and line; recorded: whether PyTorch records the operator for the gradient."""

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


def shape_of(sizes: Sequence[Mapping[str, Any]]) -> Shape:
    return tuple(size.get("as_int") for size in sizes)


def dtype_name(dtype: int) -> str:
    return NAMES.get(dtype, f"dtype {dtype}")


def argument_of(given: Mapping[str, Any]) -> Any:
    """An argument: numbers, strings, tuples, None, dtypes by name, and ValueRef."""
    ((kind, value),) = given.items()
    if kind == "as_none":
        return None
    if kind in ("as_tensor", "as_custom_obj"):
        return ValueRef(value["name"])
    if kind == "as_tensors":
        return tuple(ValueRef(t["name"]) for t in value)
    if kind in ("as_optional_tensors", "as_sym_ints", "as_sym_bools", "as_sym_floats"):
        return tuple(map(argument_of, value))
    if kind in ("as_sym_int", "as_sym_bool", "as_sym_float", "as_optional_tensor"):
        return argument_of(value)
    if kind == "as_name":
        return ValueRef(value)
    if kind == "as_scalar_type":
        return dtype_name(value)
    if kind == "as_float":
        return float(value)  # "Infinity" is a string
    if kind == "as_graph":
        return None  # of control flow, which no table has
    return tuple(value) if isinstance(value, list) else value


def node_of(node: Mapping[str, Any]) -> Node:
    """A node of the JSON."""
    results = []
    for output in node["outputs"]:
        found = argument_of(output)
        results += [ref.name for ref in (found if isinstance(found, tuple) else [found]) if ref]
    metadata = node["metadata"]
    target = node["target"].removeprefix("torch.ops.")
    arguments = {a["name"]: argument_of(a["arg"]) for a in node["inputs"]}
    return Node(
        target, arguments, tuple(results), _modules(metadata.get("nn_module_stack", "")), _source(metadata)
    )


def flat_nodes(given: Sequence[Mapping[str, Any]], tensors: dict[str, Any]) -> Iterator[Node]:
    """The nodes of the JSON, those inside torch.no_grad() among them; what these return is detached, but for tensors
    from outside that they change. Those inside torch.autocast() too, if it changes nothing on a CPU. tensors: what is
    known of tensors by name, to which those inside are added."""
    for entry in given:
        node = node_of(entry)
        region = _region([a["arg"] for a in entry["inputs"]], node.target)
        if region is None:
            yield node
            continue
        detached, inner, operands = region
        graph = inner["as_graph"]["graph"]
        own = {**graph["tensor_values"], **tensors}
        tensors.update(own)
        pairs = zip(graph["inputs"], operands, strict=True)
        names = {argument_of(a).name: argument_of(b).name for a, b in pairs}
        ends = [argument_of(output).name for output in graph["outputs"]]
        for end, result in zip(ends, node.results, strict=True):
            names.setdefault(end, f"{result}.inside" if detached else result)
            tensors[names[end]] = tensors[result]
        same = {argument_of(a).name for a in graph["inputs"]}  # and what is these, changed in place
        for n in flat_nodes(graph["nodes"], tensors):
            if n.in_place and same.intersection(r.name for r in references(next(iter(n.arguments.values())))):
                same.update(n.results)
            yield replace(_renamed(n, names), recorded=n.recorded and not detached)
        for end, result in zip(ends, node.results, strict=True):
            if names[end] != result:
                inside = {"self": ValueRef(names[end])}
                target = "aten.detach.default" if detached and end not in same else "aten.alias.default"
                yield Node(target, inside, (result,), node.modules, node.source)


def _region(arguments: Sequence[Any], target: str) -> tuple[bool, Any, Sequence[Any]] | None:
    """Of an operator that is a graph by itself: whether it is without gradient, the graph, and its operands."""
    if target.startswith("higher_order.wrap_with_set_grad_enabled"):
        enabled, inner, *operands = arguments
        return not enabled["as_bool"], inner, operands
    if target.startswith("higher_order.wrap_with_autocast"):
        device, _, enabled, _, inner, *operands = arguments
        return None if enabled["as_bool"] and device["as_string"] == "cpu" else (False, inner, operands)
    return None


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
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
    """That of the outermost module."""
    for node in nodes:
        path, _, class_name = node["metadata"].get("nn_module_stack", "").split(";")[0].rpartition(",")
        if path.endswith(",") and class_name.rpartition(".")[2].isidentifier():
            return str(class_name.rpartition(".")[2])
    return "Network"


def _source(metadata: Mapping[str, str]) -> str:
    """`net.py:12`: the innermost line that is not PyTorch's own."""
    place = ""
    for line in metadata.get("stack_trace", "").splitlines():
        words = line.split('"')
        if line.lstrip().startswith('File "') and len(words) > 2:
            file = words[1].replace("\\", "/")
            if "/torch/" not in file and not file.startswith("torch/"):
                number = words[2].partition("line ")[2].partition(",")[0]
                place = f"{file.rpartition('/')[2]}:{number}"
    return place
