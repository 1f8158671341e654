"""Files of torch.export.save that somebody changed on purpose: nothing in them is executed, nothing is read from
elsewhere or allocated, and each ends in one line that names the file."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_networks import PAYLOAD, checked_error, imported
from pt2_files import entries_of, saved_entries, written

from autodiff_gen.check.pt2_copy import safe_copy
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("nothing_is_executed")]


@pytest.fixture(scope="module")
def saved() -> dict[str, bytes]:
    return saved_entries()


def changed(saved: dict[str, bytes], end: str, change: Callable[[Any], Any]) -> Path:
    """The file with a change of the JSON in one entry."""
    entries = dict(saved)
    (entry,) = (name for name in entries if name.endswith(end))
    values = json.loads(entries[entry])
    entries[entry] = json.dumps(change(values) or values).encode()
    return written(entries)


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
