"""Files of ONNX that somebody changed on purpose: nothing in them is executed, nothing is read from elsewhere or
allocated, and each ends in one line that names the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_networks import checked_error, imported
from onnx import TensorProto, helper, numpy_helper

from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("nothing_is_executed")]


def onnx_file(nodes: Any, initializers: Any = (), functions: Any = (), input: Any = None) -> Path:
    x = input or helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], list(initializers))
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    model = helper.make_model(graph, opset_imports=sets, functions=list(functions))
    Path("net.onnx").write_bytes(model.SerializeToString())
    return Path("net.onnx")


def constant(name: str, value: Any) -> Any:
    return numpy_helper.from_array(np.asarray(value), name)


def external(location: str) -> Any:
    made = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    made.external_data.add(key="location", value=location)
    return made


def below_0() -> Any:
    made = constant("w", np.ones(4, np.float32))
    made.dims[0] = -4
    return made


def not_unicode(file: Path) -> Path:
    file.write_bytes(file.read_bytes().replace(b"Relu", b"\xffelu"))
    return file


def body(depth: int) -> Any:
    """A loop in a loop."""
    kinds = (TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT)
    names = [f"{n}{depth}" for n in ("i", "c", "h")]
    inputs = [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True)]
    inner = helper.make_node("Relu", [names[2]], [f"r{depth}"])
    if depth:
        inner = helper.make_node("Loop", ["n", "t", names[2]], [f"r{depth}"], body=body(depth - 1))
    go = helper.make_node("Identity", [names[1]], [f"g{depth}"])
    outputs = [helper.make_tensor_value_info(f"g{depth}", kinds[1], None)]
    outputs.append(helper.make_tensor_value_info(f"r{depth}", kinds[2], None))
    return helper.make_graph([go, inner], "b", inputs, outputs)


def function(name: str, *called: str) -> Any:
    values = ["a", *(f"t{k}" for k in range(1, len(called))), "b"]
    nodes = [helper.make_node(c, [values[k]], [values[k + 1]], domain="f") for k, c in enumerate(called)]
    nodes = nodes or [helper.make_node("Relu", ["a"], ["b"])]
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, ["a"], ["b"], nodes, sets)


def node(op: str, *inputs: str, **attributes: Any) -> Any:
    return helper.make_node(op, inputs, ["y"], **attributes)


ADD = node("Add", "x", "w")


ONES = constant("w", np.ones(4, np.float32))


LIMIT = ", the limit is"


FILES: dict[str, tuple[Callable[[], Path], str]] = {
    "a constant of 6 GB": (
        lambda: onnx_file(
            [helper.make_node("ConstantOfShape", ["s"], ["w"]), ADD],
            [constant("s", np.array([40_000, 40_000]))],
        ),
        "bytes of memory",
    ),
    "doubled 40 times": (
        lambda: onnx_file(
            [
                *(helper.make_node("Concat", [f"c{k}"] * 2, [f"c{k + 1}"], axis=0) for k in range(40)),
                node("Add", "x", "c40"),
            ],
            [constant("c0", np.ones(4, np.float32))],
        ),
        "bytes of memory",
    ),
    "loops in loops": (
        lambda: onnx_file(
            [node("Loop", "n", "t", "x", body=body(3))],
            [constant("n", np.array(5000)), constant("t", np.array(True))],
        ),
        f"operations{LIMIT}",
    ),
    "functions that double": (
        lambda: onnx_file(
            [helper.make_node("g0", ["x"], ["y"], domain="f")],
            functions=[function(f"g{k}", *[f"g{k + 1}"] * 2) for k in range(30)] + [function("g30")],
        ),
        f"operations{LIMIT}",
    ),
    "a function that calls itself": (
        lambda: onnx_file([helper.make_node("g", ["x"], ["y"], domain="f")], functions=[function("g", "g")]),
        "the function 'g' calls itself",
    ),
    "data of a constant in the working folder": (
        lambda: onnx_file([helper.make_node("Constant", [], ["w"], value=external("../secret")), ADD]),
        "which is not in the folder of the network",
    ),
    "data elsewhere": (lambda: onnx_file([ADD], [external("/etc/passwd")]), "which is not in the folder"),
    "data in a file of a long name": (
        lambda: onnx_file([ADD], [external(f"{'a' * 300}/../w")]),
        "which is not in the folder",
    ),
    "a node without results": (
        lambda: onnx_file(
            [helper.make_node("GRU", ["x", "x", "x"], ["", ""], hidden_size=2), node("Relu", "z")]
        ),
        "Relu reads 'z', which no earlier node computes",
    ),
    "a name that is no text": (lambda: not_unicode(onnx_file([node("Relu", "x")])), "names are no UTF-8"),
    "data in a folder": (lambda: onnx_file([ADD], [external(".")]), "which is missing or short"),
    "two weights of a name": (lambda: onnx_file([ADD], [ONES, ONES]), "two values of the name 'w'"),
    "two results of a name": (
        lambda: onnx_file([ADD, node("Relu", "x")], [ONES]),
        "two values of the name 'y'",
    ),
    "a weight below 0": (lambda: onnx_file([ADD], [below_0()]), "the weight 'w' has the shape [-4]"),
    "an input below 0": (
        lambda: onnx_file(
            [ADD], [ONES], input=helper.make_tensor_value_info("x", TensorProto.FLOAT, [-5, 4])
        ),
        "the input 'x' has an axis below 0",
    ),
    "an expression of a text": (
        lambda: onnx_file(
            [helper.make_node("RegexFullMatch", ["s"], ["w"], pattern="(a+)+$"), ADD],
            [constant("s", np.array(["a" * 40 + "b"], object))],
        ),
        "cannot be imported",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_onnx(case: str) -> None:
    make, error = FILES[case]
    Path("secret").write_bytes(bytes(16))
    Path("folder").mkdir()
    os.chdir("folder")
    with pytest.raises(ModelError) as raised:
        imported(make())
    checked_error(str(raised.value), error, "net.onnx")


@pytest.mark.parametrize("name", ("def", "net", "F", "in:0", "class", "loss"))
def test_inputs_of_reserved_names(name: str) -> None:
    x = helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 4])
    assert main(["import", str(onnx_file([node("Mul", name, "w")], [ONES], input=x)), "--out", "net"]) == 0
    assert main(["explain", "net/model.py", "--board", "host"]) == 0


@pytest.mark.parametrize("path", ("forward", "a.__class__", "train.eval", "0.007"))
def test_layers_of_reserved_names(path: str) -> None:
    weight = constant(f"{path}.weight", np.ones((4, 4), np.float32))
    file = onnx_file([node("Gemm", "x", weight.name, name=path)], [weight])
    assert main(["import", str(file), "--out", "net"]) == 0
    assert main(["explain", "net/model.py", "--board", "host"]) == 0
