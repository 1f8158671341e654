"""Names of weights: names from PyTorch's exporter stay; other names follow from the names of nodes."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

NAME = r"[A-Za-z_]\w*(\.\w+)+"  # the name of a module's parameter


class WeightNames:
    """`features.0.weight` keeps its name. `sequential/conv2d/Conv2D` is the layer conv2d, as all nodes with weights are
    in `sequential`. A node without a name is called by its op and a number."""

    def __init__(self, graph: Any) -> None:
        constants = {t.name for t in graph.initializer if t.dims and t.data_type == 1}  # float tensors
        weighted = [n for n in graph.node if constants.intersection(n.input)]
        paths = [self._of_name(n.name)[:-1] for n in weighted if "/" in n.name]
        self.common = _common(paths) if len(paths) > 1 else 0
        self.of_node: dict[str, str] = {}  # the first result of a node -> the path of its layer
        self.order: list[str] = []

    def weight(self, node: Any, original: str, role: str, taken: Container[str]) -> str:
        """The name of a weight of a node. original: its name in the file; role: such as "weight" or "bias"."""
        key = node.output[0]
        if re.fullmatch(NAME, original, re.ASCII) and original not in taken:
            if key not in self.of_node:
                self.of_node[key] = original.rpartition(".")[0]
                self.order.append(self.of_node[key])
            if original.endswith(f".{role}"):
                return original
        name = f"{self.of(node)}.{role}"
        while name in taken:
            name += "_"
        return name

    def of(self, node: Any) -> str:
        """The path of a node's layer."""
        key = node.output[0]
        if key not in self.of_node:
            self.of_node[key] = self._path(node)
            self.order.append(self.of_node[key])
        return self.of_node[key]

    def _path(self, node: Any) -> str:
        parts = self._of_name(node.name)
        parts = parts[self.common : -1] or parts[-1:] if "/" in node.name else parts
        if not parts or re.fullmatch(rf"{node.op_type}_?\d*", ".".join(parts)):
            parts = [node.op_type.lower()]
        path, number = ".".join(parts), 2
        used = set(self.of_node.values())
        while path in used:
            path, number = f"{'.'.join(parts)}_{number}", number + 1
        return path

    def _of_name(self, name: str) -> list[str]:
        """/layer1/layer1.0/conv1/Conv -> layer1.0, conv1, Conv: PyTorch's exporter repeats the names of containers."""
        parts: list[str] = []
        for part in name.strip("/").split("/"):
            if parts and part.startswith(f"{parts[-1]}."):
                parts.pop()
            if part:
                parts.append(part)
        return [
            p
            for part in parts
            for p in re.sub(r"[^\w.]", "_", part, flags=re.ASCII).strip(".").split(".")
            if p
        ]


def _common(paths: list[list[str]]) -> int:
    """The number of first parts that all paths have in common."""
    shortest = min(map(len, paths))
    return next((k for k in range(shortest) if len({p[k] for p in paths}) > 1), max(0, shortest - 1))
