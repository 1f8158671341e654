"""Files of torch.export.save: read, built and written as a folder without PyTorch; damaged files; `check`."""

import io
import json
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_archives import LAYOUTS, older
from torch_networks import NETWORKS

import autodiff_gen as ag
from autodiff_gen.check import compare_torch
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError
from autodiff_gen.frontends.files import program_of
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import saved
from autodiff_gen.frontends.pytorch.pt2 import read
from autodiff_gen.model.loader import load_file

pytestmark = pytest.mark.torch

SAVED = {}


def archive(name):
    """The bytes of a network's file."""
    if name not in SAVED:
        torch.manual_seed(7)
        make, example = NETWORKS[name]
        SAVED[name] = saved(make(), example).getvalue()
    return SAVED[name]


def test_a_network_that_returns_a_number_returns_its_loss(tmp_path, capsys):
    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2)

        def forward(self, x, target):
            return torch.nn.functional.mse_loss(self.linear(x), target)

    file = tmp_path / "net.pt2"
    file.write_bytes(saved(Loss(), (torch.zeros(2, 3), torch.zeros(2, 2))).getvalue())
    made = load_file(str(file)).made
    assert ([v.name for v in made.inputs], made.targets, list(made.outputs)) == (
        ["x", "target"],
        (),
        ["loss"],
    )
    assert made.loss is made.outputs["loss"]
    assert main(["check", str(file)]) == 0 and "everything agrees" in capsys.readouterr().out


@pytest.mark.parametrize("name", ("mobilenet_v2", "gru", "language_model"))
def test_a_file_and_its_folder_are_the_same_model_without_pytorch(name, tmp_path, monkeypatch, capsys):
    file = tmp_path / "net.pt2"
    file.write_bytes(archive(name))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["import", str(file), "--out", str(tmp_path / "net")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [str(tmp_path / "net" / f) for f in ("model.py", "weights.npz")]
    direct, written = load_file(str(file)), load_file(str(tmp_path / "net"))
    assert (direct.name, written.name) == ("net", "net")
    assert direct.made.state_names == written.made.state_names
    for a, b in zip(direct.made.states, written.made.states, strict=True):
        np.testing.assert_array_equal(a.init.array(), b.init.array(), err_msg=a.name)
    assert written.files == [str(p) for p in sorted((tmp_path / "net").glob("[!.]*"))]
    outputs = [tmp_path / "a", tmp_path / "b"]
    for model, out in zip((file, tmp_path / "net"), outputs, strict=True):
        assert main(["build", str(model), "--board", "host", "--out", str(out)]) == 0
    assert (outputs[0] / "net.c").read_text() == (outputs[1] / "net.c").read_text()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ("cells", "language_model", "mobilenet_v1"))
def test_archives_of_older_versions(name, layout):
    """They are read as the one of today's version, tied weights among them."""
    new, old = (read(io.BytesIO(data), name) for data in (archive(name), older(archive(name), layout)))
    assert [(n.target, n.arguments, n.modules) for n in old.nodes] == [
        (n.target, n.arguments, n.modules) for n in new.nodes
    ]
    assert (old.inputs, old.outputs, old.weights, old.shapes) == (
        new.inputs,
        new.outputs,
        new.weights,
        new.shapes,
    )
    assert old.stored.keys() == new.stored.keys()
    for key, weight in new.stored.items():
        np.testing.assert_array_equal(old.stored[key].array, weight.array)
        assert (old.stored[key].dtype, old.stored[key].requires_grad) == (weight.dtype, weight.requires_grad)
    assert convert(old, name).tied == convert(new, name).tied


@pytest.mark.parametrize("layout", ("2.8", "2.7"))
def test_check_of_archives_of_older_versions(layout, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = older(archive("gru"), layout)
    examples = "sample_inputs/model.pt" if layout == "2.8" else "serialized_example_inputs.pt"
    attack = pickle.dumps(Attack())
    (tmp_path / "net.pt2").write_bytes(changed(data, lambda n, c: attack if n.endswith(examples) else c))
    assert main(["check", "net.pt2"]) == 0 and "everything agrees" in capsys.readouterr().out
    assert not (tmp_path / "executed").exists()


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")
@pytest.mark.parametrize(
    ("name", "table"), (("gru", [{}]), ("squeezenet", [{}]), ("attention", [{}]), ("rnn", []))
)
def test_a_program_with_functional_operators(name, table):
    """After run_decompositions({}) there are no in-place operators; after run_decompositions() only core ATen, and
    recurrent layers are unrolled."""
    make, example = NETWORKS[name]
    given = torch.zeros(2, *example[1:])
    exported = torch.export.export(make(), (given,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    file = io.BytesIO()
    torch.export.save(exported.run_decompositions(*table), file)
    assert all(row.good for row in compare_torch.comparisons(convert(read(file, name), name), file, name))


@pytest.mark.parametrize("changes", ("running_mean", "x"))
def test_functional_programs_that_change_a_buffer_or_an_input(changes):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("running_mean", torch.zeros(4))
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            (x if changes == "x" else self.running_mean).add_(1)
            return self.scale * x * self.running_mean

    file = io.BytesIO()
    exported = torch.export.export(Counter(), (torch.zeros(2, 4),)).run_decompositions({})
    torch.export.save(exported, file)
    if changes == "x":
        with pytest.raises(
            ModelError, match=r"changes its input 'x' in place; change a clone\(\) of it instead"
        ):
            convert(read(file, "Counter"), "Counter")
        return
    program = convert(read(file, "Counter"), "Counter")
    assert all(row.good for row in compare_torch.comparisons(program, file, "Counter"))
    assert program.updates.keys() == {"running_mean"}


def changed(data, change):
    """An archive with the files that change(name, content) returns; None leaves one out."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


def edited(edit):
    """Of the graph's JSON."""

    def change(name, content):
        if not name.endswith("models/model.json"):
            return content
        model = json.loads(content)
        edit(model)
        return json.dumps(model)

    return lambda data: changed(data, change)


class Attack:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def hostile(layout, bad):
    """An archive of an older version with another pickle of its weights; as it is with a good one."""

    def damage(data):
        saved = io.BytesIO()
        with zipfile.ZipFile(saved, "w") as file:
            file.writestr("archive/data.pkl", bad)
        weights = "data/weights/model.pt" if layout == "2.8" else "serialized_state_dict.pt"
        return changed(older(data, layout), lambda n, c: saved.getvalue() if n.endswith(weights) else c)

    return damage


def dynamic_time(model):
    sizes = model["graph_module"]["graph"]["tensor_values"]["x"]["sizes"]
    sizes[1] = {"as_expr": {"expr_str": "Symbol('s1')", "hint": None}}


DAMAGED = {
    "truncated": (lambda data: data[: len(data) // 2], "is no complete archive of torch.export.save"),
    "foreign": (lambda data: b"PK\3\4" + bytes(50), "is no complete archive of torch.export.save"),
    "other zip": (
        lambda data: changed(data, lambda n, c: None if "models/" in n else c),
        "holds no exported program",
    ),
    "no weight": (
        lambda data: changed(data, lambda n, c: None if n.endswith("weight_3") else c),
        "data/weights/weight_3 is missing in the archive",
    ),
    "short weight": (
        lambda data: changed(data, lambda n, c: c[:-4] if n.endswith("weight_3") else c),
        "the weight 'rnn.bias_hh_l0' is truncated in the archive",
    ),
    "no weights": (
        lambda data: changed(data, lambda n, c: None if n.endswith("weights_config.json") else c),
        "the weight 'rnn.weight_ih_l0' is missing in the file",
    ),
    "version": (
        edited(lambda m: m["schema_version"].update(major=9)),
        "has version 9 of the format, known are 5 to 8",
    ),
    **{
        f"code in weights of {layout}": (
            hostile(layout, pickle.dumps({"rnn.bias_hh_l0": Attack()}, protocol=2)),
            r"\.pt: is no file of tensors by name, it has objects of '(pathlib\.\w+|__builtin__\.getattr)': save the",
        )
        for layout in LAYOUTS
    },
    "no tensors of 2.7": (
        hostile("2.7", pickle.dumps(7, protocol=2)),
        "is no state_dict of PyTorch: save the net",
    ),
    "no pickle of 2.8": (hostile("2.8", b"PK"), "its list of tensors is damaged"),
    "too large for 2.7": (
        hostile("2.7", b"\x80\x02}X\xff\xff\xff\x7f"),
        "its list of tensors is damaged",
    ),
    "an operator without operands": (
        edited(lambda m: m["graph_module"]["graph"]["nodes"][0]["inputs"].clear()),
        r"cannot be imported: aten\.\w+\.\w+ has arguments that its definition does not allow; export it anew",
    ),
    "no graph": (
        edited(lambda m: m.pop("graph_module")),
        "cannot be read: graph_module is missing, not an object",
    ),
    "dynamic": (
        edited(dynamic_time),
        "only the first axis, the batch, may have a dynamic size; x has one on axis 1",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_one_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    damage, message = DAMAGED[name]
    file = tmp_path / "net.pt2"
    file.write_bytes(damage(archive("gru")))
    with pytest.raises(ModelError, match=message) as error:
        program_of(file)
    assert "\n" not in str(error.value) and "net.pt2" in str(error.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("file", "message"),
    (
        ("net.onnx2", "networks are imported from .onnx, .pt2 files"),
        ("net.pth", r"from .onnx, .pt2 files; write the program by torch.export.save"),
        ("none.pt2", "none.pt2 does not exist"),
    ),
)
def test_files_that_are_no_networks(file, message, tmp_path, capsys):
    assert main(["import", str(tmp_path / file), "--out", str(tmp_path / "net")]) == 1
    assert message in capsys.readouterr().err


def test_check_compares_with_the_original_and_names_the_first_difference(tmp_path, capsys, monkeypatch):
    file = tmp_path / "net.pt2"
    file.write_bytes(archive("gru"))
    assert main(["check", str(file)]) == 0
    assert "everything agrees" in capsys.readouterr().out

    read_weights = compare_torch.deterministic

    def with_another_weight(program):
        program.weights["rnn.bias_hh_l0"].array[0] += 0.5
        return read_weights(program)

    monkeypatch.setattr(compare_torch, "deterministic", with_another_weight)
    assert main(["check", str(file)]) == 1
    assert "FAILED: the first that differs is outputs: output 0" in capsys.readouterr().out


FROM_TORCH = """
import torch
import autodiff_gen as ag
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
made = ag.from_torch(net, input=(1, 3))
made[2].bias.requires_grad = False
model = ag.Model.supervised(made, input=(2, 3), loss=torch.nn.CrossEntropyLoss(), optimizer=ag.optim.SGD(lr=0.1))
"""


def test_check_of_a_model_file_compares_what_it_imports(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(FROM_TORCH)
    assert main(["check", str(tmp_path / "mine.py"), "--samples", "2"]) == 0
    out = capsys.readouterr().out
    assert "all gradients agree" in out and out.count("everything agrees") == 1
    assert "Sequential: the imported network compared with PyTorch in float64" in out


def test_check_needs_pytorch(tmp_path, capsys, monkeypatch):
    file = tmp_path / "net.pt2"
    file.write_bytes(archive("gru"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["check", str(file)]) == 1
    assert "-m pip install 'torch>=2.4'  # the extra [torch]" in capsys.readouterr().err


def test_from_torch_needs_pytorch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ag.AutodiffError,
        match=r"from_torch needs PyTorch, .* -m pip install 'torch>=2.4'  # the extra \[torch\]$",
    ):
        ag.from_torch(None, (1, 4))


@pytest.mark.torch
def test_from_torch_says_that_pytorch_is_too_old(monkeypatch):
    import torch

    monkeypatch.setattr(torch, "__version__", "2.3.1+cpu")
    with pytest.raises(
        ag.AutodiffError, match=r"^from_torch needs PyTorch 2.4 or later, not 2.3.1\+cpu; run: "
    ):
        ag.from_torch(torch.nn.Linear(4, 2), (1, 4))
