"""Bad input: one clear line on stderr, an exit code that is not 0, nothing written. A table; add a row."""

import os
import subprocess
import sys
import textwrap

import pytest

from autodiff_gen.cli.main import main

HEAD = """
import numpy as np
import autodiff_gen as ag
from autodiff_gen import functional as F, init, nn, optim
x, t = ag.Input("x", (1, 4)), ag.Input("t", (1, 3))
w = ag.Param("w", init.uniform((3, 4), bound=0.5, seed=1))
z = F.matmul(x, w.T)
sgd = optim.SGD(lr=0.1)
"""
MODEL = "model = ag.Model([x], [t], {'z': z}, F.mse_loss(z, t), sgd)"

# the fault: the model's text after HEAD, fragments of the message
MODELS = {
    "raises": ("1 / 0", ["model.py:", "ZeroDivisionError"]),
    "syntax": ("model = (", ["model.py:", "never closed"]),
    "exits": ("raise SystemExit(3)", ["model.py:", "SystemExit"]),
    "raises an object other than an Exception": (
        "class Stop(BaseException):\n    pass\nraise Stop('here')",
        ["Stop: here"],
    ),
    "missing module": ("import no_such_module", ["no_such_module"]),
    "no model": ("net = 3", ["defines no `model`"]),
    "not a model": ("model = 3", ["int", "ag.Model"]),
    "two parameters alike": (
        "u = ag.Param('w', np.ones((3, 3)))\nz = F.matmul(z, u)\n" + MODEL,
        ["'w'", "rename"],
    ),
    "parameter named like an input": (
        "u = ag.Param('x', np.ones((3, 3)))\nz = F.matmul(z, u)\n" + MODEL,
        ["'x'", "rename"],
    ),
    "C keyword as parameter": ("u = ag.Param('float', np.ones((3, 3)))", ["'float'", "keyword"]),
    "C++ keyword as parameter": ("u = ag.Param('class', np.ones((3, 3)))", ["'class'", "keyword"]),
    "C keyword as input": ("v = ag.Input('int', (1, 3))", ["'int'", "keyword"]),
    "C macro as parameter": ("u = ag.Param('errno', np.ones((3, 3)))", ["'errno'", "macro"]),
    "C keyword as output": (
        "model = ag.Model([x], [t], {'while': z}, F.mse_loss(z, t), sgd)",
        ["'while'", "keyword"],
    ),
    "name with a space": ("u = ag.Param('my w', np.ones((3, 3)))", ["'my w'"]),
    "shapes of matmul": ("F.matmul(x, w)", ["matmul", "[1,4]", "[3,4]"]),
    "shapes of add": ("x + t", ["add", "[1,4]", "[1,3]"]),
    "shapes of mse_loss": ("F.mse_loss(x, t)", ["mse_loss", "[1,4]", "[1,3]"]),
    "shapes of linear": ("nn.Linear(5, 2)(x)", ["[1,4]", "[2,5]"]),
    "loss is no scalar": ("model = ag.Model([x], [t], {'z': z}, z - t, sgd)", ["loss", "[1,3]", "scalar"]),
    "loss is a class": (
        "model = ag.Model.supervised(nn.Linear(4, 3), input=(1, 4), loss=nn.MSELoss, optimizer=sgd)",
        ["loss", "class MSELoss", "MSELoss()"],
    ),
    "network is no function": (
        "model = ag.Model.supervised(None, input=(1, 4), loss=nn.MSELoss(), optimizer=sgd)",
        ["network", "NoneType", "layer"],
    ),
    "input in double": ("ag.Input('d', (1, 4), dtype='f64')", ["'d'", "double", "'f32'"]),
    "complex weights": ("ag.Param('u', np.ones(3) * 1j)", ["'u'", "complex128", "numbers"]),
    "loss is a number": ("model = ag.Model([x], [t], {'z': z}, 1.0, sgd)", ["loss", "float"]),
    "parameter that the loss does not reach": (
        "u = ag.Param('u', np.ones((3, 3)))\n"
        "model = ag.Model([x], [t], {'z': F.matmul(z, u)}, F.mse_loss(z, t), sgd)",
        ["does not reach", "'u'"],
    ),
    "layer that forward does not use": (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.used, self.idle = nn.Linear(4, 3), nn.Linear(3, 3)\n"
        "    def forward(self, x):\n"
        "        return self.used(x)\n"
        "model = ag.Model.supervised(Net(), input=(1, 4), loss=nn.MSELoss(), optimizer=sgd)",
        ["does not reach", "idle.weight"],
    ),
    "no parameter": (
        "model = ag.Model([x], [], {'y': x}, F.sum(x), sgd)",
        ["no trainable parameter"],
    ),
    "NaN in the weights": ("ag.Param('u', [1.0, float('nan')])", ["'u'", "[1]", "nan"]),
    "infinite weights": ("ag.Param('u', np.full((2, 2), np.inf))", ["'u'", "inf"]),
    "too large for float32": ("ag.Param('u', [1e300])", ["'u'", "float32"]),
    "bound that is not finite": ("init.uniform((2,), bound=float('inf'))", ["uniform", "finite"]),
    "negative learning rate": ("optim.SGD(lr=-1)", ["lr", "-1"]),
    "target that is not given": (
        "model = ag.Model([x], [], {'z': z}, F.mse_loss(z, t), sgd)",
        ["'t'", "neither"],
    ),
    "does not fit the board": (
        "u = ag.Param('u', init.zeros((200, 200)))\n"
        "a = F.matmul(F.matmul(F.matmul(z, np.ones((3, 200))), u), np.ones((200, 3)))\n"
        "model = ag.Model([x], [t], {'a': a}, F.mse_loss(a, t), sgd)",
        ["stm32", "160048 bytes for parameters and optimizer state", "bytes are missing", "u 160000"],
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_a_wrong_model_is_one_line_and_nothing_is_written(case, tmp_path, capsys):
    text, fragments = MODELS[case]
    (tmp_path / "model.py").write_text(HEAD + text + "\n")
    out = tmp_path / "out"
    assert (
        main(["build", str(tmp_path / "model.py"), "--name", "net", "--board", "stm32", "--out", str(out)])
        == 1
    )
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr.startswith("error: ") and stderr.count("\n") == 1, stderr
    for fragment in fragments:
        assert fragment in stderr, stderr
    assert not out.exists()


def test_the_model_of_the_table_is_right_without_a_fault(tmp_path, capsys):
    """So that the rows above fail for the fault in their names."""
    (tmp_path / "model.py").write_text(HEAD + MODEL + "\n")
    out = tmp_path / "out"
    assert (
        main(["build", str(tmp_path / "model.py"), "--name", "net", "--board", "stm32", "--out", str(out)])
        == 0
    )
    assert capsys.readouterr().err == ""


# command line, exit code, fragments of the message
COMMANDS = [
    ("", 2, ["no command given", "build"]),
    ("biuld mnist", 2, ["'biuld'", "did you mean 'build'", "more)"]),
    ("build mnist", 2, ["--out"]),
    ("build --out {out}", 2, ["MODEL"]),
    ("build mnist --out {out} --bord stm32", 2, ["'--bord'", "did you mean '--board'"]),
    ("build mnist --out {out} --kernals=ref", 2, ["'--kernals'", "did you mean '--kernels'"]),
    ("build mnist mnist --out {out}", 2, ["unexpected argument 'mnist'"]),
    ("build mnsit --out {out}", 1, ["'mnsit'", "did you mean 'mnist'"]),
    ("build {out}/none.py --out {out}", 1, ["none.py", "does not exist"]),
    ("build mnist --board stm23 --out {out}", 1, ["'stm23'", "did you mean 'stm32'", "host"]),
    ("build mnist --board {out}/b.toml --out {out}", 1, ["b.toml", "no such file"]),
    ("build mnist --board host --kernels rfe --out {out}", 1, ["'rfe'", "did you mean 'ref'"]),
    ("build mnist --board host --kernels ref, --out {out}", 1, ["empty name"]),
    ("build mnist --board host --name 2nd --out {out}", 1, ["'2nd'", "--name"]),
    ("build mnist --board host --name my-net --out {out}", 1, ["'my-net'", "my_net"]),
    ("build mnist --board host --name= --out {out}", 1, ["''", "--name"]),
    ("build mnist --board host --name string --out {out}", 1, ["'string'", "<string.h>", "--name"]),
    ("build mnist --board ./{long} --out {out}", 1, ["cannot read or write", "too long"]),
    (
        "build mnist --board ~no-such-user/b.toml --out {out}",
        1,
        ["board file ~no-such-user/b.toml: no such file"],
    ),
    (
        "build mnist --board host --kernels ~no-such-user/k --out {out}",
        1,
        ["~no-such-user/k: no kernels.toml in it"],
    ),
    ("predict mnist --board host --data ~no-such-user/d.npz", 1, ["data ~no-such-user/d.npz: no such file"]),
    ("report mnist --bench {line} --out {out}", 1, ["a\\nb: cannot be read: No such file"]),
    ("build ./{long}.py --out {out}", 1, ["cannot read or write", "too long"]),
    ("build mnist --board host --kernels ./{long} --out {out}", 1, ["cannot read or write", "too long"]),
    ("build mnist --board host --dump {file} --out {out}", 1, ["cannot write to", "file: File exists"]),
    ("new-board mine --out {file}", 1, ["cannot write to", "file: File exists"]),
    ("build mnist --board host --ram 1K --out {out}", 1, ["bytes are missing", "1024"]),
    ("build mnist --board host --ram lots --out {out}", 2, ["--ram", "'lots'"]),
    ("build mnist --board host --ram 0 --out {out}", 2, ["--ram", "96K", "'0'"]),
    ("explain mnist --board stm23", 1, ["did you mean 'stm32'"]),
    ("check mnsit", 1, ["did you mean 'mnist'"]),
    ("check mnist --samples -3", 2, ["--samples"]),
    ("report {file} --out {file}", 2, ["--out", "file is a file that the command reads (model)"]),
    ("train mnist --data {file} --lr -1", 2, ["--lr", "at least 0"]),
    ("deps mnsit", 1, ["did you mean 'mnist'"]),
    ("boards stm32", 2, ["unexpected argument 'stm32'"]),
]


@pytest.mark.parametrize(("line", "code", "fragments"), COMMANDS, ids=[c[0] or "nothing" for c in COMMANDS])
def test_a_wrong_command_line(line, code, fragments, tmp_path, capsys):
    out, file = tmp_path / "out", tmp_path / "file"
    file.touch()
    words = line.format(out=out, file=file, long="n" * 300, line="a/b").split()
    assert main([word.replace("a/b", "a\nb") for word in words]) == code
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr.startswith("error: ") and stderr.count("\n") == 1, stderr
    for fragment in fragments:
        assert fragment in stderr, stderr
    assert not out.exists()


def test_no_traceback_from_the_real_program(tmp_path, root):
    model = tmp_path / "model.py"
    model.write_text(textwrap.dedent(HEAD) + "1 / 0\n")
    command = [sys.executable, "-m", "autodiff_gen", "build", str(model), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {model}:") and done.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.py"]


def test_a_path_that_the_terminal_cannot_show(tmp_path, root):
    command = [
        sys.executable,
        "-m",
        "autodiff_gen",
        "build",
        "xor",
        "--board",
        "host",
        "--out",
        str(tmp_path / "ö"),
    ]
    ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=root, env=ascii, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "\\xf6/xor.c" in done.stdout


def test_a_broken_model_leaves_the_last_good_files(tmp_path, capsys):
    model, out = tmp_path / "model.py", tmp_path / "out"
    model.write_text(HEAD + MODEL)
    command = ["build", str(model), "--name", "net", "--board", "host", "--out", str(out)]
    assert main(command) == 0
    before = {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.iterdir()}
    model.write_text(HEAD + "1 / 0")
    assert main(command) == 1
    assert {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in out.iterdir()} == before


def test_an_output_folder_that_cannot_be_written_to(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["build", "mnist", "--board", "host", "--out", str(tmp_path / "file")]) == 1
    assert "cannot write to" in capsys.readouterr().err


def test_a_file_that_cannot_be_replaced_leaves_all_as_it_was(tmp_path, capsys):
    (tmp_path / "out" / "mnist_params.c").mkdir(parents=True)
    assert main(["build", "mnist", "--board", "host", "--out", str(tmp_path / "out")]) == 1
    assert "mnist_params.c" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mnist_params.c"]
