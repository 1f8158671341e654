"""The table of formats: valid files, how they are mutated, and who reads them.

A row is all that a new format needs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from checkout import ROOT

from autodiff_gen.errors import AutodiffError

from . import archives, binary, networks, onnx_files, texts
from .process import OUT

Files = dict[str, bytes]
Mutation = Callable[[bytes, random.Random], bytes]
# (path of the first file, number of the case): the reader, which raises for a rejected file.
Read = Callable[[Path, int], None]

MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Linear(4, 3)
model = ag.Model.supervised(net, input=(2, 4), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01))
"""


@dataclass(frozen=True)
class Format:
    """make: the valid files, by name; the first is given to the reader, and messages name one of them. mutate: by
    suffix of files. prepare: loads modules and returns the reader. weight: cases in comparison with other formats."""

    make: Callable[[], list[Files]]
    mutate: Mapping[str, Mutation]
    prepare: Callable[[Path], Read]
    weight: int = 1
    modules: tuple[str, ...] = ()
    needs_torch: bool = False  # to make the files
    folder: bool = False  # whether the reader reads or replaces all files of the folder, and may name any


def command(*words: object) -> None:
    """Run a command in this process. Raises AutodiffError with its message."""
    from autodiff_gen.cli.main import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main(list(map(str, words)))
    if code:
        lines = said.getvalue().splitlines()
        text = lines[0] if len(lines) == 1 else repr(said.getvalue())
        if not text.startswith("error: "):
            raise RuntimeError(f"{words[0]} prints {said.getvalue()!r}")
        raise AutodiffError(text.removeprefix("error: "))


def _compiled(scratch: Path) -> Any:
    from autodiff_gen.model.build import compile_file
    from autodiff_gen.model.loader import load_file

    scratch.mkdir(exist_ok=True)
    (scratch / "model.py").write_text(MODEL)
    file = load_file(str(scratch / "model.py"))
    return compile_file(file.made, "net", ("ref",))


def _network(scratch: Path) -> Read:
    """Every case is imported as a build imports it; every tenth is written as a folder, which is run; every hundredth
    is explained and built."""
    import autodiff_gen.cli.main
    import autodiff_gen.model.build  # noqa: F401 loaded before processes are forked
    from autodiff_gen.model.loader import load_file

    def read(path: Path, number: int) -> None:
        load_file(str(path))
        if number % 10 == 0:
            command("import", path, "--out", f"{OUT}/net")
            load_file(f"{OUT}/net")
        if number % 100 == 0:
            command("explain", path, "--board", "host")
            command("build", path, "--board", "host", "--out", f"{OUT}/c")

    return read


def _checked(scratch: Path) -> Read:
    """`check` loads the file by PyTorch."""
    import torch.export  # noqa: F401

    from autodiff_gen.check import reference_torch

    def read(path: Path, number: int) -> None:
        from autodiff_gen.frontends.files import program_of

        program_of(path)
        if number % 20:
            reference_torch.safe_copy(path)
        else:
            command("check", path)

    return read


def _weights(scratch: Path) -> Read:
    """What push and predict --weights do before they send weights."""
    from autodiff_gen.device.weights import matching_arrays, read_weights

    program = _compiled(scratch)

    def read(path: Path, number: int) -> None:
        state, _ = read_weights(path)
        for name, array in state.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise RuntimeError(f"accepts {name}, which is not finite")
        matching_arrays(program, path, state)

    return read


def _data(scratch: Path, folder: bool = False, shape: tuple[int, ...] = (2, 4)) -> Read:
    import autodiff_gen as ag
    from autodiff_gen import nn, optim
    from autodiff_gen.codegen.board_link_layout import link_layout
    from autodiff_gen.codegen.compiler import compile_model
    from autodiff_gen.device.dataset import load_dataset

    net = nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape[1:])), 3))
    model = ag.Model.supervised(net, input=shape, loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))
    layout = link_layout(compile_model(model, "net"))

    def read(path: Path, number: int) -> None:
        load_dataset(str(path.parent if folder else path), path, layout)

    return read


def _board(scratch: Path) -> Read:
    from autodiff_gen.kernels import registry
    from autodiff_gen.targets import board, build_commands

    _compiled(scratch)

    def read(path: Path, number: int) -> None:
        b = board.load(str(path))
        registry.for_board(b)
        build_commands.compile_flags(b)
        build_commands.link_flags(b)
        if number % 100 == 0:
            command("explain", scratch / "model.py", "--board", path)

    return read


def _kernels(scratch: Path) -> Read:
    from autodiff_gen.kernels import registry

    registry.load(["ref"])

    def read(path: Path, number: int) -> None:
        registry.load([str(path.parent), "ref"])

    return read


def _bench(scratch: Path) -> Read:
    _compiled(scratch)

    def read(path: Path, number: int) -> None:
        command(
            "report", scratch / "model.py", "--board", "host", "--out", f"{OUT}/page.html", "--bench", path
        )

    return read


def _checkpoint(scratch: Path) -> Read:
    trainer = _trainer(scratch)
    return lambda path, number: trainer.load(path)


def _trainer(scratch: Path) -> Any:
    from autodiff_gen.model.loader import load_model

    scratch.mkdir(exist_ok=True)
    (scratch / "model.py").write_text(MODEL)
    return load_model(str(scratch / "model.py"))[0].on_host()


def _manifest(scratch: Path) -> Read:
    from autodiff_gen.model.project.export import write_project

    def read(path: Path, number: int) -> None:
        write_project(path.parent, {"src/main.c": "int main(void) { return 0; }\n", "net.h": "/* net */\n"})

    return read


def _quantised(scratch: Path) -> Read:
    import autodiff_gen as ag
    from autodiff_gen import quant

    def read(path: Path, number: int) -> None:
        quant.load(path)(ag.Input("x", (1, 3, 8, 8)))

    return read


# Valid files


def _npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _weight_files() -> list[Files]:
    weight, bias = np.ones((3, 4), np.float32), np.zeros(3, np.float32)
    return [
        {"weights.npz": _npz(weight=weight, bias=bias)},
        {"weights.npz": _npz(weight=np.asfortranarray(weight), bias=bias, _steps=np.int64(7))},
    ]


def _data_files() -> list[Files]:
    x, label = np.ones((6, 4), np.float32), np.arange(6).astype(np.uint8) % 3
    return [
        {"data.npz": _npz(x=x, label=label)},
        {
            "data.npz": _npz(
                x=x.astype(np.uint8), label=label.astype(np.int64), test_x=x[:2], test_label=label[:2]
            )
        },
        {"data.npz": _npz(x=x, label=np.array(["a", "b", "c"] * 2))},
    ]


def _array_files() -> list[Files]:
    x, label = np.ones((6, 4), np.float32), np.arange(6).astype(np.uint8) % 3
    return [{"x.npy": archives.saved(x), "label.npy": archives.saved(label)}]


_TABLES = (
    "a,b,c,d,label\n1,2,3,4,0\n-1.5,2e3,3,4,2\n0,0,0,1,1\n",
    '"a","b","c","d","kind"\r\n1, 2, 3, 4, jump\r\n\r\n5,6,7,8,"sit, still"\r\n',
    "1,2,3,4,0\n5,6,7,8,1\n",
)
_RECORDINGS = (
    "ax,ay,az,label\n" + "".join(f"{k},{-k}.5,{k}e-1,{'jump' if k < 20 else 'run'}\n" for k in range(40)),
    "".join(f"{k % 7},1,2,{k // 10}\n" for k in range(30)),
)


def _samples_file() -> list[Files]:
    from autodiff_gen.datasets.samples import from_arrays

    images, labels = np.arange(24, dtype=np.uint8).reshape(6, 4), np.arange(6, dtype=np.uint8) % 3
    return [{"samples.bin": from_arrays(images, labels, train=4, epochs=2).to_bytes()}]


def _boards() -> list[Files]:
    own = 'schema = 1\ninherits = "./base.toml"\nname = "own board"\n[target]\nfeatures = []\n'
    host = (ROOT / "boards" / "host.toml").read_bytes()
    files: list[Files] = []
    for name in ("mps2_an386", "mps3_an547", "disco_f746ng", "host", "host_avx2"):
        files.append({"board.toml": (ROOT / "boards" / f"{name}.toml").read_bytes()})
    return [*files, {"board.toml": own.encode(), "base.toml": host}]


_TABLE = """schema = 1
[serves]
[[kernel]]
name = "gemv_f32"
symbol = "toy_gemv"
source = "toy.c"
when = ["n % 4 == 0", "m >= 8"]
"""


def _tables() -> list[Files]:
    toy = b"void toy_gemv(void);\n"
    return [{"kernels.toml": _TABLE.replace("[serves]\n", "").encode(), "toy.c": toy}]


def _record() -> list[Files]:
    steps = [
        {"entry": "train_step", "step": k, "text": f"y{k}", "instructions": 100 * k, "cycles": 10}
        for k in range(4)
    ]
    record = {"schema": 1, "model": "model", "board": "host", "batch": 2, "graph_steps": steps, "entries": {}}
    return [{"bench.json": json.dumps(record).encode()}]


def _checkpoints() -> list[Files]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(Path(folder) / "model")
        trainer.save(Path(folder) / "net.ckpt")
        return [{"net.ckpt": (Path(folder) / "net.ckpt").read_bytes()}]


def _manifests() -> list[Files]:
    from autodiff_gen.model.project.export import MANIFEST

    old = hashlib.sha256(b"int x;\n").hexdigest()[:16]
    digests = {"src/main.c": "0123456789abcdef", "net.h": "0123456789abcdef", "old/net.c": old}
    text = json.dumps({"generator": "autodiff_gen 0.1.0", "files": digests}).encode()
    return [
        {
            f"{OUT}/{MANIFEST}": text,
            f"{OUT}/old/net.c": b"int x;\n",
            f"{OUT}/src/main.c": b"int y;\n",
            "victim": b"keep\n",
        }
    ]


def _quantised_files() -> list[Files]:
    from int8_networks import random_network

    return [{"net.npz": _npz(**random_network(np.random.default_rng(1), 8))}]


NPZ = {".npz": archives.archive}
TABLE = {".csv": texts.words}
FORMATS: dict[str, Format] = {
    "pt2": Format(networks.torch_networks, {".pt2": archives.archive}, _network, 6, needs_torch=True),
    "pt2 in check": Format(
        networks.torch_networks, {".pt2": archives.archive}, _checked, 1, ("torch",), True
    ),
    "onnx": Format(
        networks.onnx_networks,
        {".onnx": onnx_files.model, ".bin": texts.damaged},
        _network,
        6,
        ("onnx", "google"),
    ),
    "board": Format(_boards, {".toml": texts.words}, _board, 2),
    "kernels.toml": Format(_tables, {".toml": texts.words}, _kernels),
    "csv table": Format(lambda: [{"data.csv": t.encode()} for t in _TABLES], TABLE, _data),
    "csv recording": Format(
        lambda: [{"data.csv": t.encode()} for t in _RECORDINGS], TABLE, partial(_data, shape=(2, 3, 10))
    ),
    "weights npz": Format(_weight_files, NPZ, _weights),
    "weights pt": Format(networks.state_dicts, {".pt": archives.archive}, _weights, 1, ("torch",), True),
    "data npz": Format(_data_files, NPZ, _data),
    "data npy": Format(_array_files, {".npy": archives.array}, partial(_data, folder=True), folder=True),
    "samples.bin": Format(_samples_file, {".bin": binary.checksummed}, _data),
    "checkpoint": Format(_checkpoints, {".ckpt": binary.checksummed}, _checkpoint),
    "export.json": Format(_manifests, {".json": texts.json_text}, _manifest, folder=True),
    "bench.json": Format(_record, {".json": texts.json_text}, _bench),
    "int8 network": Format(_quantised_files, NPZ, _quantised, 2),
}


def names(format: Format, files: Sequence[str]) -> list[str]:
    """The files that a message may name."""
    return [Path(f).name for f in files if Path(f).suffix in format.mutate]
