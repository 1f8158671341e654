"""Networks in files that somebody changed on purpose: nothing in them is executed, nothing is read from elsewhere or
allocated, and each ends in one line that names the file."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from autodiff_gen.check.pt2_copy import safe_copy
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError
from autodiff_gen.frontends.files import program_of
from autodiff_gen.frontends.imported.network import network
from autodiff_gen.frontends.imported.program import Call
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.imported.text import Placeholders, literal
from autodiff_gen.frontends.imported.tree import checked

pytestmark = pytest.mark.torch

PAYLOAD = "__import__('pathlib').Path('executed').touch()"


@pytest.fixture(autouse=True)
def nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not Path("executed").exists()


# .pt2


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 6)

    def forward(self, x: Any) -> Any:
        y = torch.diff(torch.relu(self.fc(x)), n=2)
        return y[:, 1:3] + y.select(1, 2).unsqueeze(1)


@pytest.fixture(scope="module")
def saved() -> dict[str, bytes]:
    """The entries of a file."""
    made = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.zeros(3, 4),)), made)
    with zipfile.ZipFile(made) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(entries: dict[str, bytes], name: str = "net.pt2") -> Path:
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    return Path(name)


def changed(saved: dict[str, bytes], end: str, change: Callable[[Any], Any]) -> Path:
    """The file with a change of the JSON in one entry."""
    entries = dict(saved)
    (entry,) = (name for name in entries if name.endswith(end))
    values = json.loads(entries[entry])
    entries[entry] = json.dumps(change(values) or values).encode()
    return written(entries)


def imported(file: Path) -> None:
    network(program_of(file), file.name)


def argument(operator: str, name: str, value: Any) -> Callable[[Any], Any]:
    def change(model: Any) -> None:
        for node in model["graph_module"]["graph"]["nodes"]:
            for given in node["inputs"] if operator in node["target"] else ():
                if given["name"] == name:
                    given["arg"] = value

    return change


def renamed(old: str, new: str) -> Callable[[Any], Any]:
    return lambda model: json.loads(json.dumps(model).replace(json.dumps(old), json.dumps(new)))


def metadata(stack: str) -> Callable[[Any], Any]:
    def change(model: Any) -> None:
        for node in model["graph_module"]["graph"]["nodes"]:
            node["metadata"]["nn_module_stack"] = stack

    return change


def sizes(*extents: Any) -> Callable[[Any], Any]:
    def change(model: Any) -> None:
        for meta in model["graph_module"]["graph"]["tensor_values"].values():
            meta["sizes"] = [{"as_int": extent} for extent in extents]

    return change


def target(name: str) -> Callable[[Any], Any]:
    def change(model: Any) -> None:
        model["graph_module"]["graph"]["nodes"][0]["target"] = name

    return change


def without_last_node(model: Any) -> None:
    graph = model["graph_module"]["graph"]
    (name,) = [output["as_tensor"]["name"] for output in graph["outputs"]]
    graph["nodes"].pop()
    graph["tensor_values"].pop(name)


MODELS = {
    "an index that is a text": (
        argument("select", "index", {"as_string": PAYLOAD}),
        "cannot be imported: aten.select",
    ),
    "a limit that is a text": (
        argument("slice", "end", {"as_string": f"1] or {PAYLOAD} or x["}),
        "aten.slice",
    ),
    "a number of 2^70": (argument("diff", "n", {"as_int": 2**70}), "not an integer from"),
    "2^40 differences": (argument("diff", "n", {"as_int": 2**40}), "operations, the limit is"),
    "an input that is code": (renamed("x", PAYLOAD), "name is no identifier"),
    "a tensor below 0": (sizes(-3, 4), "a size is -3, not an integer from 0 to"),
    "a tensor of 16 GB": (sizes(2**30, 4), "bytes of memory, the limit is"),
    "a tensor of 100 axes": (sizes(*[1] * 100), "a tensor has 100 axes"),
    "a function of Python": (target("torch.os.system"), "torch.os has no counterpart"),
    "a target that is code": (target(PAYLOAD), "the target of a node is no operator"),
    "a result of nothing": (without_last_node, "returns 'add', which nothing computes"),
    "no nodes": (lambda model: model["graph_module"]["graph"].pop("nodes") and None, "nodes is missing"),
}


@pytest.mark.parametrize("case", MODELS)
def test_programs(case: str, saved: dict[str, bytes]) -> None:
    change, error = MODELS[case]
    with pytest.raises(ModelError) as raised:
        imported(changed(saved, "models/model.json", change))
    checked_error(str(raised.value), error)


def checked_error(message: str, error: str, name: str = "net.pt2") -> None:
    assert error in message and name in message
    assert len(message) < 400 and "\n" not in message


NAMES = {
    "inputs": (renamed("x", "net"), "net_"),
    "inputs of C": (renamed("x", "int"), "int_"),
    "classes": (metadata(f"L__self__,,a.Net;L__self___fc,fc,b.C({PAYLOAD})\nclass D"), "nn.Parameter"),
    "modules": (metadata(f"L__self__,,a.Net;q,forward.{PAYLOAD},b.super"), "nn.Linear(4, 6)"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_are_no_code(case: str, saved: dict[str, bytes]) -> None:
    change, text = NAMES[case]
    file = changed(saved, "models/model.json", change)
    assert main(["import", str(file), "--out", "net"]) == 0
    assert text in Path("net/model.py").read_text()
    assert main(["explain", "net/model.py", "--board", "host"]) == 0


@pytest.mark.parametrize("name", ("forward", "a.__class__"))
def test_weights_of_reserved_names(name: str, saved: dict[str, bytes]) -> None:
    file = changed(saved, "models/model.json", renamed("fc.weight", name))
    file = changed(entries_of(file), "weights_config.json", renamed("fc.weight", name))
    with pytest.raises(
        ModelError, match=rf"net\.pt2: the weight '{name}' has the name of a method of modules"
    ):
        imported(file)


def entries_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_name_of_the_file_is_no_code(saved: dict[str, bytes]) -> None:
    file = written(saved, f'x"""+{PAYLOAD.replace("/", "")}+"""\\.pt2')
    assert main(["import", str(file), "--out", "net"]) == 0
    assert main(["build", "net", "--board", "host", "--out", "out"]) == 0


def tensor(**fields: Any) -> Callable[[Any], Any]:
    def change(config: Any) -> None:
        for entry in config["config"].values():
            for name, value in fields.items():
                (entry if name == "path_name" else entry["tensor_meta"])[name] = value

    return change


def extents(*values: int) -> list[dict[str, int]]:
    return [{"as_int": value} for value in values]


WEIGHTS = {
    "strides below 0": (tensor(strides=extents(-1000, 1)), "strides is -1000"),
    "an offset below 0": (tensor(storage_offset={"as_int": -50}), "storage_offset is -50"),
    "strides of 0": (
        tensor(strides=extents(0, 0), sizes=extents(100_000, 100_000)),
        "bytes of memory, the limit is",
    ),
    "a file elsewhere": (tensor(path_name="../../../../etc/passwd"), "is missing in the archive"),
    "an end after the storage": (tensor(storage_offset={"as_int": 1000}), "is truncated in the archive"),
    "an unknown dtype": (tensor(dtype=99), "is dtype 99"),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(case: str, saved: dict[str, bytes]) -> None:
    change, error = WEIGHTS[case]
    with pytest.raises(ModelError) as raised:
        imported(changed(saved, "weights_config.json", change))
    checked_error(str(raised.value), error)


class Executed:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("executed"),)


def test_check_unpickles_nothing_and_evaluates_no_text(
    saved: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = {k: pickle.dumps(Executed()) if "sample_inputs" in k else v for k, v in saved.items()}
    assert main(["check", str(written(inputs))]) == 0
    assert "everything agrees" in capsys.readouterr().out
    changes = {
        "guards": (lambda model: model.update(guards_code=[PAYLOAD]), ""),
        "sizes": (
            lambda model: model["graph_module"]["graph"]["sym_int_values"].update(
                s={"as_expr": {"expr_str": PAYLOAD}}
            ),
            "has an expression of sizes",
        ),
        "operators": (target("torch.os.system"), "has the operator 'torch.os.system'"),
    }
    for change, error in changes.values():
        file = changed(saved, "models/model.json", change)
        if not error:
            safe_copy(file)
            continue
        with pytest.raises(ModelError, match=error):
            safe_copy(file)
    pickled = {k: pickle.dumps(Executed()) if k.endswith("/weight_0") else v for k, v in saved.items()}
    config = changed(
        pickled,
        "weights_config.json",
        lambda c: [e.update(use_pickle=True) for e in c["config"].values()] and None,
    )
    with pytest.raises(ModelError, match="has a weight that is no tensor"):
        safe_copy(config)


def test_what_check_cannot_load_is_one_line(
    saved: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    def without_names(model: Any) -> None:
        model["graph_module"]["module_call_graph"][0]["fqn"] = "other"

    assert main(["check", str(changed(saved, "models/model.json", without_names))]) == 1
    out, err = capsys.readouterr()
    assert "Error" not in out + err
    checked_error(err.removesuffix("\n"), "cannot be loaded by PyTorch")


def test_damaged_weights_beside_the_model_of_an_import(
    saved: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(written(saved)), "--out", "net"]) == 0
    large = (
        b"\x93NUMPY\x01\x00\x76\x00"
        + f"{{'descr': '<f4', 'fortran_order': False, 'shape': {(1 << 40, 4)}}}".ljust(118).encode()
    )
    damaged = {
        "is no complete file of np.savez": b"weights",
        "has elements of dtype object": archive({"fc.bias.npy": npy(np.array([Executed()], object))}),
        "the limit is": archive({"fc.bias.npy": large}),
    }
    for error, data in damaged.items():
        Path("net/weights.npz").write_bytes(data)
        assert main(["explain", "net/model.py"]) == 1
        checked_error(capsys.readouterr().err.strip(), error, "net/weights.npz")


def archive(entries: dict[str, bytes]) -> bytes:
    return written(entries, "archive.zip").read_bytes()


def npy(array: Any) -> bytes:
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()


# ONNX


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


# The text of an imported network


def test_a_text_with_another_tree_is_checked_error() -> None:
    def printer(head: str) -> Callable[[], tuple[str, None]]:
        return lambda: (f"net = {head}({literal(3)})\n", None)

    assert checked("net.pt2", printer("nn.Linear"))[0] == "net = nn.Linear(3)\n"
    for head in ("eval", "nn.Linear.__init__.__globals__", "open", "(lambda x: x)", "nn.Linear(1); print"):
        with pytest.raises(ModelError, match=r"net\.pt2 cannot be imported: it has names or values"):
            checked("net.pt2", printer(head))


def test_literals_are_values_of_known_types() -> None:
    for value in (
        3,
        -3,
        0.5,
        -1e-9,
        float("inf"),
        True,
        None,
        'a"b\n\\',
        "é\u2028\U0001f600",
        (1, (2.0, "x")),
        (),
    ):
        text, _, _ = checked("net.pt2", lambda v=value: (f"net = nn.f({literal(v)})\n", None))  # type: ignore[misc]
        assert eval(text.partition("nn.f")[2]) == value
    with pytest.raises(TypeError, match="list is no literal"):
        literal([1])
    marks = Placeholders()
    assert len({marks.of(str(k), k) for k in range(30_000)}) == 30_000


def test_forms_of_calls_hold_no_text_of_a_file() -> None:
    for form in ("{}[:, 3]", "{} + {}", "{}.shape[0]", "{} + 1e-09", "F.with_updates({}, {{{}: {}}})"):
        Call(form, ())
    for form in ("{}[a]", "{0.__class__}", "{!r}", "{}.__class__", "{} + open({})", f"{{}}[{PAYLOAD}]"):
        with pytest.raises(ValueError, match="another argument"):
            Call(form, ())


def test_the_printer_of_a_network_writes_the_same_lines_with_placeholders(saved: dict[str, bytes]) -> None:
    program = program_of(written(saved))
    text, _, _ = checked("net.pt2", lambda: network_source(program))
    assert text == network_source(program)[0]
