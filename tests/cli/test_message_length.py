"""Messages about files with long names and values: one line of at most 400 characters with the file's name, what is
wrong and the fix."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from autodiff_gen.cli.main import main
from autodiff_gen.errors import LONGEST, ModelError, listed, quoted

LONG = "n" * 10_000
FOLDER = f"/{'f' * 200}/{'g' * 200}"
MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
model = ag.Model.supervised(nn.Linear(2, 2), (1, 2), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
"""

# a message, what must be left of it
MESSAGES = [
    (f"net.onnx: the weight '{LONG}' is damaged; export it anew", ["net.onnx: the weight 'nnn", "; export it anew"]),
    (f"net.onnx: node '{'a b ' * 5000}' has no input; remove it", ["net.onnx: node 'a b", "; remove it"]),
    (f"net.onnx: {' '.join(map(str, range(5000)))}; export it anew", ["net.onnx: 0 1", "4999; export it anew"]),
    (f"{FOLDER}/net.onnx: {LONG} is no name; rename it", ["/net.onnx: nnn", "; rename it"]),
    (f"/tmp/{'x' * 200}.onnx: {LONG} is no name; rename it", [f"{'x' * 200}.onnx: ", "; rename it"]),
    ("net.onnx: " + "\n\0\u202e" * 1000, ["net.onnx: "]),
    ("'" * 5000, ["'"]),
    (f"/media/a b/{'c d ' * 200}/net.onnx: {LONG} is no name; rename it", ["/net.onnx: nnn", "; rename it"]),
]  # fmt: skip


def test_what_is_long_loses_its_middle() -> None:
    for text, left in MESSAGES:
        shown = str(ModelError(text))
        assert len(shown) <= LONGEST and shown.isprintable() and all(part in shown for part in left), shown
    begin = time.process_time()
    for hostile in ("(" * 40_000 + "/", "'\\" * 20_000, '"' * 40_000):
        assert len(str(ModelError(f"b.toml: unknown key {hostile}"))) <= LONGEST
    assert time.process_time() - begin < 5.0
    one = "; ".join(f"what is wrong with operator {k}" for k in range(6))
    assert listed([one], 200) == one
    short = "net.onnx: " + "a" * (LONGEST - 10)
    assert str(ModelError(short)) == short
    assert quoted("a") == "'a'" and len(quoted(LONG)) == len(quoted(["a"] * 5000)) == 60
    assert listed(["a", "b"]) == "a, b" and listed(map(str, range(5000))).endswith(" and 4,972 more")


def onnx(path: Path, name: str, ops: list[str]) -> None:
    """A network of these operators; all its names end in `name`."""
    names = [f"{k}{name}" for k in range(len(ops) + 1)]
    nodes = [
        helper.make_node(op, [a], [b], name=b, domain="own" if op == "No" else "")
        for op, a, b in zip(ops, names, names[1:], strict=False)
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in (names[0], names[-1])]
    graph = helper.make_graph(nodes, name, ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())


def files(folder: Path) -> dict[str, str]:
    """Commands by the file that is wrong."""
    (folder / "m.py").write_text(MODEL)
    onnx(folder / "name.onnx", LONG, ["No"])
    onnx(folder / "ops.onnx", "", [*(f"Unknown{k}" for k in range(200)), LONG])
    np.savez(folder / "weights.npz", **{f"{LONG}{k}": np.ones(2, np.float32) for k in range(50)})
    np.savez(folder / "nan.npz", **{LONG: np.full(2, np.nan, np.float32)})
    np.savez(folder / "good.npz", x=np.ones((3, 2), np.float32))
    np.savez(folder / "data.npz", **{LONG: np.ones((3, 2), np.float32)})
    np.savez(
        folder / "words.npz", x=np.ones((400, 2), np.float32), target=np.array([f"w{k}" for k in range(400)])
    )
    (folder / "head.csv").write_text(
        ",".join(f"{LONG}{k}" for k in range(200)) + "\n" + ",".join("1" * 200) + "\n"
    )
    (folder / "cell.csv").write_text(f"a,b,label\n1,2,0\n1,{LONG},0\n")
    (folder / "key.toml").write_text(f"schema = 1\n{LONG} = 1\n")
    (folder / "value.toml").write_text(f'schema = 1\nname = "own"\ninherits = "{LONG}"\n')
    train, predict = "train m.py --board host --data ", "predict m.py --board host --data good.npz --weights "
    commands = {
        "explain ": ["name.onnx", "ops.onnx"],
        predict: ["weights.npz", "nan.npz"],
        train: ["data.npz", "words.npz", "head.csv", "cell.csv"],
        "explain m.py --board ./": ["key.toml", "value.toml"],
    }
    return {name: begin + name for begin, names in commands.items() for name in names}


def test_long_names_in_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    subtests: pytest.Subtests,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, command in files(tmp_path).items():
        with subtests.test(name):
            assert main(command.split()) in (1, 2)
            *_, line = capsys.readouterr().err.splitlines()
            assert len(line) <= 400 and name in line, line
            assert line.count("nnnn") < 4 * 60, line


@pytest.mark.parametrize(
    "word", ["--" + LONG, "explain " + LONG, LONG, f"explain {LONG}.onnx", f"train mnist --data {LONG}"]
)
def test_long_words_of_a_command(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(word.split()) in (1, 2)
    *_, line = capsys.readouterr().err.splitlines()
    assert len(line) <= 400
