"""Model files: files that they open, modules that they see, and messages about broken ones."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen.errors import ModelError
from autodiff_gen.model.loader import load_model

GOOD = """
    import autodiff_gen as ag
    from autodiff_gen import nn, optim
    {imports}
    model = ag.Model.supervised(nn.Linear(2, 2), (1, 2), nn.CrossEntropyLoss(), optim.SGD())
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_a_model_file_with_its_modules_and_data(tmp_path: Path) -> None:
    """Everything that was opened is a dependency, modules that come from a cache too; libraries and ourselves
    are not."""
    folder = tmp_path / "my net"
    folder.mkdir()
    write(folder, "layers.py", "SIZE = 2\n")
    write(folder, "sizes.txt", "2")
    imports = "import json, layers; import numpy; open(__file__.replace('model.py', 'sizes.txt')).close()"
    path = write(folder, "model.py", GOOD.format(imports=imports))
    for _ in range(2):
        model, name, files = load_model(path)
        assert isinstance(model, ag.Model) and name == "my net"
        assert files == [str(folder / f) for f in ("layers.py", "model.py", "sizes.txt")]
    subprocess.run([sys.executable, "-c", "import layers"], cwd=folder, check=True)  # leaves a .pyc
    assert load_model(path)[2] == files
    assert "layers" not in sys.modules and str(folder) not in sys.path


def test_what_a_model_writes_is_no_dependency(tmp_path: Path) -> None:
    path = write(tmp_path, "net.py", GOOD.format(imports=f"open({str(tmp_path / 'log')!r}, 'a').close()"))
    _, name, files = load_model(path)
    assert (name, files) == ("net", [path])


def test_two_models_with_modules_of_one_name(tmp_path: Path) -> None:
    for folder, size in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "common.py", f"SIZE = {size}\n")
        text = (
            GOOD.format(imports="from common import SIZE")
            .replace("(2, 2)", "(SIZE, 2)")
            .replace("(1, 2)", "(1, SIZE)")
        )
        path = write(tmp_path / folder, "model.py", text)
        assert load_model(path)[0].inputs[0].shape == (1, size)


def test_a_module_imported_elsewhere_does_not_replace_the_models(tmp_path: Path, monkeypatch: Any) -> None:
    other = types.ModuleType("common")
    other.__file__ = str(tmp_path / "elsewhere" / "common.py")
    monkeypatch.setitem(sys.modules, "common", other)
    write(tmp_path, "common.py", "SIZE = 3\n")
    text = (
        GOOD.format(imports="from common import SIZE")
        .replace("(2, 2)", "(SIZE, 2)")
        .replace("(1, 2)", "(1, SIZE)")
    )
    assert load_model(write(tmp_path, "model.py", text))[0].inputs[0].shape == (1, 3)
    assert sys.modules["common"] is other


def test_an_example_is_found_by_its_name() -> None:
    model, name, files = load_model("mnist")
    assert name == "mnist" and model.inputs[0].shape == (1, 784)
    assert [Path(f).name for f in files] == ["model.py"]


FUNCTIONS = """import autodiff_gen as ag
x, y = ag.Input("x", (4, 2), batch_axis=0), ag.Input("y", (3, 2), batch_axis=0)
f, g = ag.function([x], [x * 2], "f"), ag.function([y], [y * 2], "g")
"""
SUPERVISED = """import autodiff_gen as ag
from autodiff_gen import nn, optim
class Net(nn.Module):
    def __init__(self): self.fc = nn.Linear(2, 1)
    def forward(self, x{}): return {}
def loss(scores{}): return scores.sum()
ag.Model.supervised(Net(), input=(1, 2), loss=loss, optimizer=optim.SGD(lr=0.1))
"""
X = "import autodiff_gen as ag\nfrom autodiff_gen import functional as F, nn\nx = ag.Input('x', (2, 3))\n"
BAD_FILES = [
    ("x = 1\n", r"model.py defines no `model`; assign an ag.Model to that name, or a list of ag.function to "
     r"`functions`$"),
    ("model = 3\n", r"model.py: `model` is int, not an ag.Model; make one by ag.Model.supervised$"),
    ("functions = 3\n", r"model.py: `functions` is int, not a list of ag.function$"),
    ("functions = []\n", r"model.py: functions: the list is empty$"),
    ("functions = [3]\n", r"model.py: functions: expected results of ag.function, got int$"),
    ("model = functions = 3\n", r"model.py defines `model` and `functions`; split it into two files$"),
    (FUNCTIONS + "functions = [f, f]\n", r"functions: two are called 'f'; give another name to ag.function$"),
    (FUNCTIONS + "functions = [f, g]\n", r"functions: the batch sizes differ: 'f' has 4 and 'g' has 3$"),
    (FUNCTIONS + "functions = f\nsamples = 3\n", r"model.py: `samples` is int, not a dict of arrays by input$"),
    ("\nimport nosuchmodule\n", r"model.py:2: the file raises ModuleNotFoundError: No module named 'nosuchmodule'$"),
    (
        "from autodiff_gen import nn\nnn.Conv2d(1, 2, 3, pading=1)\n",
        r"model.py:2: the file raises TypeError: .* argument 'pading'[,.] [dD]id you mean 'padding'\?$",
    ),
    (
        "import autodiff_gen as ag\nag.Model.supervised(\n    None, input=2, loss=0, optimizer=0, clip_norm=1.0)\n",
        r"model.py:2: .* unexpected keyword argument 'clip_norm', did you mean 'clip_grad_norm'\?$",
    ),
    ("def f(a): pass\nf(b=1)\n", r"model.py:2: .* f\(\) got an unexpected keyword argument 'b'$"),
    (
        "import numpy as np\nimport autodiff_gen as ag\nnp.tanh(ag.Input('x', (2,)))\n",
        r"model.py:3: .* TypeError.*; a function of NumPy takes no graph values; use a function of F, such as F.tanh$",
    ),
    (
        "import autodiff_gen as ag\nx = ag.Input('x', (2, 3), batch_axis=0)\nfor i in range(x.shape[0]): pass\n",
        r"model.py:3: .* 'Dim' .*; Dim is the number of samples, known when the model runs; compute with the whole",
    ),
    (
        "import autodiff_gen as ag\nx = ag.Input('x', (2, 3))\nx[:, 0] = 1.0\n",
        r"model.py:3: elements of a graph value cannot be set; use F.where with a mask",
    ),
    (SUPERVISED.format(", h", "self.fc(x)", ", target"),
     r"model.py:7: .* 'h'; Model.supervised gives the network its `input`, which may be a list of several ag.Input$"),
    (SUPERVISED.format("", "self.fc(x)", ""),
     r"model.py:7: .* 2 were given; Model.supervised gives the loss the scores and the target$"),
    (SUPERVISED.format("", "self.fc(x, x)", ", target"),
     r"model.py:5: .* Linear.forward\(\) takes 2 positional arguments but 3 were given$"),
    (X + "nn.Linear(3, 2)(x, x)\n", r"model.py:4: .* takes 2 positional arguments but 3 were given$"),
    (X + "F.softmax(x, axis=1)\n", r"model.py:4: .* argument 'axis'; it is called dim, as in PyTorch$"),
    (X + "F.relu(x, axis=1)\n", r"model.py:4: .* argument 'axis'$"),
    (X + "def f(dim): ...\nf()\n", r"model.py:5: .* argument: 'dim'$"),
    (X + "def f(dim): ...\nf(axis=1)\n", r"model.py:5: .* argument 'axis'$"),
    ("def g():\n    def f(first): ...\n    f(frist=1)\ng()\n",
     r"model.py:3: .* argument 'frist', did you mean 'first'\?$"),
    ("def f(): ...\nf.__signature__ = 1\nf(x=1)\n", r"model.py:3: .* argument 'x'$"),  # as of functions in C
    ("class Once:\n    count = 0\n    @property\n    def f(self):\n        self.count += 1\n"
     "        return [lambda: 1][self.count - 1]\nonce = Once()\nonce.f(x=1)\n", r"model.py:8: .* argument 'x'$"),
    ("{}['Dim']\n", r"model.py:1: the file raises KeyError: 'Dim'$"),
    ("class Dim: ...\nint(Dim())\n", r"model.py:2: .* not 'Dim'$"),
    ("import autodiff_gen as ag\nag.Input('x', (2, 3)).sum(axis=1)\n",
     r"model.py:2: .* argument 'axis'; it is called dim, as in PyTorch$"),
    ("import autodiff_gen as ag\nag.Input('x', (2, 3)).sum(1, keepdims=True)\n",
     r"model.py:2: .* argument 'keepdims'; it is called keepdim, as in PyTorch$"),
    ("import autodiff_gen as ag\nimport numpy as np\nnp.mean(ag.Input('x', (2,)))\n",
     r"model.py:3: numpy.mean takes no graph values; use a function of F$"),
    ("import autodiff_gen as ag\nimport numpy as np\nnp.array(ag.Input('x', (2,)))\n",
     r"model.py:3: a graph value cannot become a NumPy array; it has numbers when the model runs$"),
    ("\n\nraise ValueError('one\\ntwo')\n", r"model.py:3: the file raises ValueError: one two$"),
    ("def f(:\n", r"model.py:1: not valid Python: invalid syntax$"),
    ("import sys\nsys.exit(3)\n", r"model.py:2: the file raises SystemExit: 3$"),
    ("from autodiff_gen import nn\nnn.Linear(0, 1)\n", r"model.py:2: Linear: in_features=0 must be"),
    ("from autodiff_gen import functional as F\nF.softmax([1.0])\n",
     r"model.py:2: .* TypeError: .* argument: 'dim'; dim is the axis along which it is computed, such as dim=-1$"),
    ("from autodiff_gen import functional as F\nimport numpy as np\nF.matmul(np.ones((2, 3)), np.ones((2, 3)))\n",
     r"model.py:3: matmul\(f32\[2,3\], f32\[2,3\]\): the inner extents differ"),
]  # fmt: skip


@pytest.mark.parametrize("text, message", BAD_FILES)
def test_a_broken_model_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, "model.py", text)
    with pytest.raises(ModelError, match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    "model, message",
    [
        ("nosuch/model.py", "^model file nosuch/model.py does not exist$"),
        ("mnits", "^unknown model 'mnits', did you mean 'mnist'\\?; examples: .*mnist"),
    ],
)
def test_a_model_that_is_not_there(model: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(model)


def test_a_module_that_can_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.py").write_text("import torch\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=r"model.py:1: .*; run: .* -m pip install 'torch>=") as e:
        load_model(str(tmp_path / "model.py"))
    assert "\n" not in str(e.value)
