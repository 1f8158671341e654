"""Programs of importers: the layers and modules that are made of calls, their text, and errors."""

from dataclasses import replace

import numpy as np
import pytest

from autodiff_gen.errors import ModelError, ToolError
from autodiff_gen.frontends.imported import (
    ImportedProgram,
    ModuleFrame,
    Problems,
    ProgramCall,
    ValueRef,
    Weight,
    WeightRef,
    network,
    write_folder,
)
from autodiff_gen.frontends.imported.modes import evaluation_note
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.model.loader import load_file

V, W = ValueRef, WeightRef


def weight(*shape, **options):
    return Weight(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape), **options)


def frames(*entries):
    """ "f", "f.0 Block", "f.0@1 Block": paths, instances and class names."""
    split = [(*entry.split(), "Module")[:2] for entry in entries]
    return tuple(ModuleFrame(instance.partition("@")[0], instance, name) for instance, name in split)


def linear(x, y, path, *around, weights=None):
    weights = weights or path
    operands = (V(x), W(f"{weights}.weight"), W(f"{path}.bias"))
    return ProgramCall("linear", operands, {}, (y,), frames(*around, path) if around != (None,) else ())


def biased(*paths):
    return {f"{p}.{k}": weight(*s) for p in paths for k, s in (("weight", (3, 3)), ("bias", (3,)))}


def program(calls, weights, outputs=None, **options):
    """Of values [batch, 3]: the input "a"; the last result is the output."""
    names = ["a", *(r for call in calls for r in call.results)]
    outputs = V(names[-1]) if outputs is None else outputs
    return ImportedProgram({"a": "f32"}, outputs, calls, weights, dict.fromkeys(names, (None, 3)), **options)


def block(k, x, y):
    path = f"f.{k}"
    return [
        linear(x, f"{y}1", f"{path}.fc", "f", f"{path} Block"),
        ProgramCall("relu", (V(f"{y}1"),), {}, (f"{y}2",), frames("f", f"{path} Block")),
        ProgramCall("{} + {}", (V(x), V(f"{y}2")), {}, (y,), frames("f", f"{path} Block")),
    ]


BLOCKS = program([*block(0, "a", "b"), *block(1, "b", "c")], biased("f.0.fc", "f.1.fc"))
RELU = ProgramCall("relu", (V("b"),), {}, ("c",), frames("net.1"))
TIED = program(
    [linear("a", "b", "x"), linear("b", "c", "y", weights="x")],
    {k: v for k, v in biased("x", "y").items() if k != "y.weight"},
    tied={"y.weight": "x.weight"},
)
# A module whose two calls differ: its calls are part of the module around it.
DIFFERENT = program(
    [
        linear("a", "b", "m.fc", "m"),
        ProgramCall("relu", (V("b"),), {}, ("c",), frames("m")),
        linear("c", "d", "m.fc", "m@1"),
        ProgramCall("sigmoid", (V("d"),), {}, ("e",), frames("m@1")),
    ],
    biased("m.fc"),
)
TWICE = program([linear("a", "b", "m.fc", "m"), RELU, linear("c", "d", "m.fc", "m@1")], biased("m.fc"))
OWN = program(
    [
        ProgramCall("{} * {}", (V("a"), W("p")), {}, ("b",)),
        ProgramCall("{} + {}", (V("b"), W("k")), {}, ("c",)),
    ],
    {"p": weight(3), "k": weight(3, role="constant")},
)
OF_OTHER = program(  # a module that reads a parameter of another one
    [
        linear("a", "b", "x"),
        ProgramCall("matmul", (V("b"), W("x.weight")), {}, ("c",), frames("m Product")),
        ProgramCall("{} + {}", (V("b"), V("c")), {}, ("d",), frames("m Product")),
    ],
    biased("x"),
)
FROZEN = program(
    [linear("a", "b", "f.0", "f"), linear("b", "c", "f.1", "f"), linear("c", "d", "g")],
    {k: Weight(w.array, w.role, k.startswith("g.w")) for k, w in biased("f.0", "f.1", "g").items()},
)
# Weights of a module that is not called, and a result that is a pair.
PARTS = program(
    [
        ProgramCall("linear", (V("a"), W("m.part.w"), None), {}, ("b",), frames("m")),
        ProgramCall("chunk", (V("b"), 3, 1), {}, ("c", "d", "e"), frames("m")),
        ProgramCall("{} + {}", (V("c"), V("e")), {}, ("g",), frames("m")),
    ],
    {"m.part.w": weight(3, 3)},
    outputs=(V("g"), V("b")),
)
PARTS.shapes = PARTS.shapes | {"g": (None, 1)}

CASES = {
    "blocks": (BLOCKS, ["class Block(", "Block(fc=nn.Linear(3, 3))"]),
    "tied": (TIED, ["net.y.weight = net.x.weight", "x=nn.Linear(3, 3)"]),
    "different": (DIFFERENT, ["x = self.m.fc(x)", "F.sigmoid(x)"]),
    "twice": (TWICE, ["x = self.m(x)", "return self.m(x)"]),
    "own": (OWN, ["self.p = nn.Parameter(init.zeros((3,)))", 'x + constants["k"]']),
    "of_other": (OF_OTHER, ["self.m(x, self.x.weight)", "class Product("]),
    "frozen": (FROZEN, ["net.f.requires_grad_(False)", "net.g.bias.requires_grad_(False)"]),
    "parts": (PARTS, ["self.part.w", "y, _, z ="]),
}


@pytest.mark.parametrize("name", CASES)
def test_text_weights_and_names(name, tmp_path):
    case, texts = CASES[name]
    text, _ = network_source(case)
    for part in texts:
        assert part in text, text
    net = network(case, name)
    held = {n for n, w in case.weights.items() if w.role != "constant"}
    assert {n for n, _ in net.named_parameters()} == held
    trained = {n for n, p in net.named_parameters() if p.requires_grad}
    assert trained == {n for n in held if case.weights[n].trained}
    values = {n: p.node.attrs["state"].init.array() for n, p in net.named_parameters()}
    for n, array in values.items():
        np.testing.assert_array_equal(array, case.weights[n].array)
    write_folder(case, name, tmp_path)
    if name != "parts":
        assert load_file(str(tmp_path)).made.batch == 1


def test_an_edited_model_is_not_lost(tmp_path):
    """Written again where nothing was edited, also from a file of another name; otherwise every file stays as it is."""
    name = next(iter(CASES))
    for k in range(2):
        write_folder(CASES[name][0], f"{name}{k}", tmp_path)
    text = (tmp_path / "model.py").read_text()
    assert f"{name}1" in text
    with open(tmp_path / "model.py", "a") as file:
        file.write("# an edit\n")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(
        ToolError, match=rf"model.py:{text.count(chr(10)) + 1} differs from the import and would be lost"
    ):
        write_folder(CASES[name][0], name, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_weights_alone_are_renewed(tmp_path):
    with pytest.raises(ToolError, match=r"^--weights-only: .* has no weights.npz of an import$"):
        write_folder(TWICE, "net", tmp_path, weights_only=True)
    write_folder(TWICE, "net", tmp_path)
    (tmp_path / "model.py").write_text("# an edit\n")
    newer = {n: replace(w, array=w.array + 1) for n, w in TWICE.weights.items()}
    assert write_folder(replace(TWICE, weights=newer), "net", tmp_path, weights_only=True) == [
        tmp_path / "weights.npz"
    ]
    with np.load(tmp_path / "weights.npz") as file:
        np.testing.assert_array_equal(file["m.fc.bias"], newer["m.fc.bias"].array)
    assert (tmp_path / "model.py").read_text() == "# an edit\n"
    with pytest.raises(ToolError, match=r"^--weights-only: .*weights.npz has '\S+' otherwise"):
        write_folder(BLOCKS, "net", tmp_path, weights_only=True)


def test_weights_of_others_are_not_lost(tmp_path):
    def written():
        return {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    np.savez(tmp_path / "weights.npz", mine=np.zeros(3))
    before = written()
    for weights_only in (False, True):
        with pytest.raises(ToolError, match=r"weights\.npz"):
            write_folder(TWICE, "net", tmp_path, weights_only)
        assert written() == before
    write_folder(TWICE, "net", tmp_path, force=True)
    after = written()
    write_folder(TWICE, "net", tmp_path)
    assert written() == after and after["weights.npz"] != before["weights.npz"]


def test_layers_in_evaluation_mode_are_named():
    net = program([linear("a", "b", "x"), *(dropped(k) for k in range(5))], biased("x"))
    assert evaluation_note(net) == (
        "in evaluation mode also while the model trains: Dropout (d0, d1, d2 and 1 more); statistics stay as they are "
        "and no dropout is applied, unless model.py is changed: replace eval() by train()"
    )
    assert evaluation_note(BLOCKS) is None


def dropped(k):
    """The last of five is in training mode."""
    options = {} if k == 4 else {"training": False}
    return ProgramCall(
        "dropout", (V("b" if k == 0 else f"d{k - 1}"), 0.5), options, (f"d{k}",), frames(f"d{k}")
    )


def test_one_module_called_once_is_a_sequence_where_its_modules_are():
    text, _ = network_source(
        program(
            [linear("a", "b", "0", None), ProgramCall("relu", (V("b"),), {}, ("c",), frames("1"))],
            biased("0"),
        )
    )
    assert text == "net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n"


def test_all_problems_are_in_one_message():
    problems = Problems("net.pt2")
    problems.unknown("aten.log_sigmoidd.default", ["aten.log_sigmoid.default"], "net.py:3")
    problems.unknown("aten.fft.default", ["aten.add.Tensor"], "net.py:4")
    problems.unknown("aten.fft.default", ["aten.add.Tensor"], "net.py:5")
    with pytest.raises(ModelError) as error:
        problems.check()
    assert str(error.value) == (
        "net.pt2 cannot be imported: aten.log_sigmoidd.default has no counterpart; the nearest that has one is "
        "aten.log_sigmoid.default (net.py:3); aten.fft.default has no counterpart (net.py:4, net.py:5)"
    )


def test_a_call_that_a_function_rejects_is_shown():
    wrong = program([ProgramCall("reshape", (V("a"), (-1, 2)), {}, ("b",))], {})
    with pytest.raises(
        ModelError, match=r"^net cannot be imported: `return F.reshape\(x, \(-1, 2\)\)`: reshape"
    ):
        network(wrong, "net")


def test_a_recurrent_layer_with_weights_of_two_layers_is_an_error():
    weights = {"x.weight_ih_l0": weight(9, 3), "y.weight_hh_l0": weight(9, 3)}
    options = {"num_layers": 1, "bias": False, "batch_first": True, "dropout": 0.0, "bidirectional": False}
    call = ProgramCall(
        "gru", (V("a"), None, tuple(map(W, weights))), {**options, "training": True}, ("b", "c")
    )
    wrong = program([replace(call, op="aten.gru.input", source="net.py:3")], weights, outputs=V("b"))
    with pytest.raises(
        ModelError,
        match=r"aten.gru.input has weights that do not belong to one layer; give each layer its own \(net.py:3\)",
    ):
        network(wrong, "net")


def test_a_weight_that_is_not_finite_names_the_file():
    wrong = program(
        [linear("a", "b", "x")], {"x.weight": Weight(np.full((3, 3), np.nan)), "x.bias": weight(3)}
    )
    with pytest.raises(
        ModelError, match=r"^net.pt2 cannot be imported: parameter 'x.weight': .* \[0, 0\] is nan"
    ):
        network(wrong, "net.pt2")


def test_a_result_of_another_shape_than_the_originals_is_an_error():
    wrong = program([ProgramCall("sum", (V("a"), 1), {}, ("b",))], {})
    with pytest.raises(ModelError, match=r"the result 'b' has shape \[None, 3\], imported f32\[n\]"):
        network(wrong, "net")
