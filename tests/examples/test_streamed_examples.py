"""The examples that stream samples.bin: what their READMEs show, also on a board, bad files, PyTorch beside them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from configparser import ConfigParser
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from example_output import MEMORY, check_sizes, printed, shown
from firmware_build import call, copy_of_the_project, once, run, scons
from torch_weights import with_weights_of

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.datasets import samples
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.model.loader import load_file, load_model

EXAMPLES = ROOT / "examples"
# example -> the board of its README, and words for few samples
STREAMED = {
    "autoencoder": ("mps2_an386", ("--train", "128", "--test", "64", "--epochs", "1")),
    "gesture": ("stm32", ("--train", "42", "--test", "30", "--epochs", "2")),
    "import_onnx": ("stm32", ("--train", "20", "--test", "10", "--epochs", "1")),
    "import_torch": ("mps2_an386", ("--train", "6", "--test", "4", "--epochs", "1")),
    "keywords": ("stm32", ("--train", "10", "--test", "12", "--epochs", "1")),
    "keywords_int8": ("stm32", ("--train", "10", "--test", "12", "--epochs", "1")),
    "visual_int8": ("mps2_an386", ("--train", "6", "--test", "4", "--epochs", "1")),
}


@dataclass(frozen=True)
class Example:
    name: str
    tree: Path
    full: str  # what `./scons board=host run` prints after the board's name
    few: Path  # a samples.bin of few samples

    def program(self, board: str) -> Path:
        return self.tree / "build" / board / f"{self.name}+kernels=ref" / "firmware.elf"


def python(example: str, script: str, *words: str) -> str:
    """The output of an example's script."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return call([sys.executable, str(EXAMPLES / example / script), *words], ROOT, 100, env)


def data(example: str, out: Path, *words: str) -> samples.SampleSet:
    python(example, "data.py", "--out", str(out), *words)
    return samples.read(out)


@pytest.fixture(scope="module", params=STREAMED)
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Example:
    """An example, built for its board and for the host, where it ran."""
    name, tree = request.param, once(tmp_path_factory, "tree", copy_of_the_project)

    def make(folder: Path) -> None:
        said = scons(tree, "board=host", f"model={name}", "kernels=ref", "run")
        (folder / "full").write_text(printed(said, name, "host").rstrip())
        data(name, folder / "few", *STREAMED[name][1])

    made = once(tmp_path_factory, f"{name} on the host", make)
    return Example(name, tree, (made / "full").read_text(), made / "few")


@pytest.mark.parametrize("name", STREAMED)
def test_boards_on_a_port_get_samples(name: str, tmp_path: Path) -> None:
    ini = ConfigParser()
    ini.read(EXAMPLES / name / "platformio.ini")
    if not ini.has_section("hardware"):
        assert name == "import_torch"  # no board on a port has the memory
        return
    script, *words = ini["hardware"]["custom_autodiff_samples"].split()
    assert script == "data.py"
    assert data(name, tmp_path / "samples.bin", *words).train > 0


@pytest.mark.slow
@pytest.mark.cc
def test_the_readme_shows_what_is_printed(example: Example) -> None:
    assert example.full == shown(example.name)


@pytest.mark.slow
@pytest.mark.qemu
@pytest.mark.cc
def test_a_board_learns_the_same_as_the_host_in_the_memory_of_the_readme(
    example: Example, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    board, _ = STREAMED[example.name]
    shutil.copy(example.few, tmp_path / "samples.bin")
    scons(example.tree, f"board={board}", f"model={example.name}", "kernels=ref")
    there = run(board, example.program(board), tmp_path).split(f"on {board}")[1]
    here = run("host", example.program("host"), tmp_path).split("on host")[1]
    assert MEMORY.sub("", there).rstrip() == here.rstrip()
    check_sizes(example.name, there, pytestconfig)


SHAPES = {
    "autoencoder": "records must be 640 bands and a label, in whole batches",
    "gesture": "records must be 32 times 3 axes and a label",
    "import_onnx": "records must be 16 x 16 pixels and a label",
    "import_torch": "records must be 96 x 96 pixels of 3 bytes and a label",
    "keywords": "records must be 49 frames of 10 bands and a label",
    "keywords_int8": "records must be 49 frames of 10 bands and a label",
    "visual_int8": "records must be 96 x 96 pixels of 3 bytes and a label",
}


def of_another_example(good: samples.SampleSet) -> bytes:
    return samples.from_arrays(
        np.zeros((4, 7), np.uint8), np.zeros(4, np.uint8), train=2, epochs=1
    ).to_bytes()


def truncated(good: samples.SampleSet) -> bytes:
    return good.to_bytes()[:-9]


def damaged(good: samples.SampleSet) -> bytes:
    whole = bytearray(good.to_bytes())
    whole[len(whole) - good.records.nbytes + 3] ^= 1
    return bytes(whole)


def of_a_class_that_is_none(good: samples.SampleSet) -> bytes:
    records = good.records.copy()
    records[1, -1] = 10
    return replace(good, records=records).to_bytes()


BAD: list[tuple[Callable[[samples.SampleSet], bytes], str]] = [
    (of_another_example, "samples: {shape} (status -3)"),
    (truncated, "samples: samples end early: make samples.bin again with data.py (status -2)"),
    (
        damaged,
        "samples: the records do not have the header's checksum: make samples.bin again with data.py (status -5)",
    ),
    (of_a_class_that_is_none, "train_step: a label or index is out of range (status -3)"),
]


@pytest.mark.slow
@pytest.mark.cc
def test_bad_samples_are_named(example: Example, tmp_path: Path) -> None:
    file = tmp_path / "samples.bin"
    good = samples.read(example.few)
    for spoil, message in BAD[: 2 if example.name == "autoencoder" else 4]:
        file.write_bytes(spoil(good))
        done = subprocess.run(
            [example.program("host")], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        wanted = f"error: {message.format(shape=SHAPES[example.name])}"
        assert done.returncode == 1 and wanted in (done.stdout + done.stderr).splitlines(), done


@pytest.mark.parametrize("name", ["gesture", "keywords"])
def test_wrong_words_of_data_py_are_named(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / name / "data.py"), "--out", str(tmp_path / "x"), "--train", "0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "error: --train 0: must be at least 1\n")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", STREAMED)
def test_samples_are_the_same_each_time_and_fewer_for_slow_cores(name: str, tmp_path: Path) -> None:
    words = STREAMED[name][1]
    first, again = (data(name, tmp_path / f"{i}.bin", *words) for i in range(2))
    assert first.to_bytes() == again.to_bytes()
    few = data(name, tmp_path / "few.bin", "--few")
    assert 0 < few.train <= 300 and 0 < few.test <= 100


# ---- numbers in the READMEs, which test_the_readme_shows_what_is_printed compares with the output


def test_the_autoencoder_adapts() -> None:
    before, after = (float(line.split()[-1]) for line in shown("autoencoder").splitlines()[-2:])
    assert before < 0.9 < after


def test_gestures_are_recognised() -> None:
    rows = re.findall(r"^ +\d+ +([\d.]+) +([\d.]+) % +[\d,]+$", shown("gesture"), re.MULTILINE)
    assert len(rows) == 8
    assert float(rows[0][1]) < 30 and float(rows[-1][1]) >= 95
    counts = re.findall(r"^\w.* (\d+) of +(\d+)$", shown("gesture"), re.MULTILINE)
    right, all_ = (sum(int(c[k]) for c in counts) for k in (0, 1))
    assert len(counts) == 5 and f"{100 * right / all_:.2f}" == rows[-1][1]


def test_the_new_speaker_is_understood() -> None:
    rows = re.findall(r"^ +[\d-]+ +[\d.-]+ +([\d.]+) % +([\d.]+) %$", shown("keywords"), re.MULTILINE)
    assert len(rows) == 5
    assert float(rows[0][0]) < 60 and float(rows[-1][0]) >= 95
    assert float(rows[0][1]) >= 99 and float(rows[-1][1]) >= 80


def test_the_new_words_are_learned() -> None:
    rows = re.findall(r"^ +[\d-]+ +[\d.-]+ +([\d.]+) % +([\d.]+) %$", shown("keywords_int8"), re.MULTILINE)
    assert len(rows) == 5
    assert float(rows[0][0]) < 90 and float(rows[-1][0]) >= 98 and float(rows[-1][1]) >= 95


def test_the_new_photographs_are_recognised() -> None:
    rows = re.findall(r"^ +[\d-]+ +[\d.-]+ +([\d.]+) % +([\d.]+) %$", shown("visual_int8"), re.MULTILINE)
    assert len(rows) == 3 and float(rows[0][0]) == 0
    assert float(rows[-1][0]) >= 85 and float(rows[-1][1]) > float(rows[0][1]) + 5


# ---- gesture


@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.torch
def test_gestures_are_learned_as_in_pytorch(tmp_path: Path) -> None:
    """From the same weights on the same motions: the losses of the first epoch, the accuracy at the end."""
    import torch

    class Twin(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = torch.nn.GRU(3, 20, batch_first=True), torch.nn.Linear(20, 5)

        def forward(self, x: Any) -> Any:
            return self.head(self.gru(x)[1][0])

    made = data("gesture", tmp_path / "samples.bin")
    x = ((made.records[:, :-1].astype(np.float32) - 128) / 32).reshape(-1, 32, 3)
    label, batches = made.records[:, -1], range(4, made.train, 4)
    trainer = host_trainer(load_model("gesture")[0], opt="-O1")
    twin = with_weights_of(Twin(), trainer.state_dict())
    adam = torch.optim.Adam(twin.parameters(), lr=5e-3)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=1600)
    losses = []
    for _ in range(made.epochs):
        for part in np.split(np.arange(made.train), batches):
            wanted = torch.nn.functional.cross_entropy(
                twin(torch.tensor(x[part])), torch.tensor(label[part], dtype=torch.int64)
            )
            adam.zero_grad()
            wanted.backward()
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
            adam.step()
            cosine.step()
            losses.append((trainer.train_step(x[part], label[part]), wanted.item()))
    ours, theirs = np.array(losses[: len(batches) + 1]).T
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    test = np.arange(made.train, len(x))
    with torch.no_grad():
        by_torch = twin(torch.tensor(x[test])).argmax(1).numpy()
    by_us = np.concatenate([trainer.predict(x[p]).argmax(1) for p in np.split(test, range(4, len(test), 4))])
    accuracies = [100 * float(np.mean(answers == label[test])) for answers in (by_us, by_torch)]
    assert min(accuracies) >= 95 and abs(accuracies[0] - accuracies[1]) <= 3, accuracies


# ---- keywords


def of_words(made: samples.SampleSet) -> tuple[Any, Any]:
    x = ((made.records[:, :-1].astype(np.float32) - 128) / 64).reshape(-1, 1, 49, 10)
    return x, made.records[:, -1]


def spotter() -> Any:
    """PyTorch's network with the names of examples/keywords/net.py."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
            self.pointwise = nn.Conv2d(32, 32, 1)

        def forward(self, x: Any) -> Any:
            return torch.relu(self.pointwise(torch.relu(self.depthwise(x))))

    class Spotter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 32, (10, 4), stride=2, padding=(5, 1))
            self.block1, self.block2, self.block3, self.block4 = Block(), Block(), Block(), Block()
            self.classifier = nn.Linear(32, 10)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.conv(x))
            for block in (self.block1, self.block2, self.block3, self.block4):
                x = block(x)
            return self.classifier(x.mean((2, 3)))

    return Spotter()


def learns(name: str) -> bool:
    return name.startswith(("block4.", "classifier."))


@pytest.mark.cc
@pytest.mark.torch
def test_the_spotter_learns_as_in_pytorch_and_what_is_frozen_stays(tmp_path: Path) -> None:
    import torch

    x, label = of_words(data("keywords", tmp_path / "samples.bin", "--train", "30", "--test", "2"))
    trainer = host_trainer(load_model("keywords")[0], opt="-O1")
    before = trainer.state_dict()
    twin = with_weights_of(spotter(), before)
    update = torch.optim.SGD((p for k, p in twin.named_parameters() if learns(k)), lr=1e-3, momentum=0.9)
    for i in range(30):
        wanted = torch.nn.functional.cross_entropy(
            twin(torch.tensor(x[i : i + 1])), torch.tensor(label[i : i + 1], dtype=torch.int64)
        )
        update.zero_grad()
        wanted.backward()
        update.step()
        assert trainer.train_step(x[i : i + 1], label[i : i + 1]) == pytest.approx(
            wanted.item(), rel=1e-4, abs=1e-6
        )
    after = trainer.state_dict()
    names = [name for name, _ in twin.named_parameters()]
    assert {n for n in names if not np.array_equal(before[n], after[n])} == {n for n in names if learns(n)}


def header(folder: Path) -> str:
    model = load_model(str(folder / "model.py"))[0]
    return emit(compile_model(model, "keywords", ("ref",)))["keywords.h"]


def test_what_is_frozen_costs_neither_a_backward_pass_nor_momentum(tmp_path: Path) -> None:
    """... and the README says its cost."""
    text = header(EXAMPLES / "keywords")
    assert re.findall(r"train_step step \d+: ag_(\w+_d[wx])_f32", text) == [
        "conv2d_dw",
        "conv2d_dx",
        "depthwise2d_dw",
    ]
    moments = re.findall(r"optimizer (\S+)\.momentum_buffer", text)
    assert len(moments) == 6 and all(learns(name) for name in moments)

    for name in ("net.py", "weights.npz"):
        shutil.copy(EXAMPLES / "keywords" / name, tmp_path)
    source = (EXAMPLES / "keywords" / "model.py").read_text()
    thawed = source.replace("frozen.requires_grad_(False)", "frozen.requires_grad_(True)")
    assert thawed != source
    (tmp_path / "model.py").write_text(thawed)
    readme = (EXAMPLES / "keywords" / "README.md").read_text()
    rows = dict(re.findall(r"^\| ([\w ]+) (\| [\d,]+ \| [\d,]+) \|$", readme, re.MULTILINE))
    columns = []
    for shown_there in (text, header(tmp_path)):
        found = re.search(r"State (\d+) bytes, arena (\d+), together (\d+);", shown_there)
        assert found is not None
        state, arena, together = map(int, found.groups())
        columns.append((state // 2, state // 2, arena, together))
    assert rows == {
        name: f"| {part:,} | {whole:,}"
        for name, part, whole in zip(
            ("trained weights", "momentum", "arena", "together"), *columns, strict=True
        )
    }
    assert columns[0][-1] < 122880 < columns[1][-1]  # of RAM on the stm32, less the stack's reserve


@pytest.mark.slow
@pytest.mark.cc
def test_pretraining_gives_weights_that_the_model_takes(tmp_path: Path) -> None:
    words = ("--train", "32", "--test", "16", "--epochs", "2", "--out", str(tmp_path / "weights.npz"))
    said = python("keywords", "pretrain.py", *words)
    assert re.findall(r"^epoch (\d): mean loss [\d.]+, other speakers [\d.]+ %$", said, re.MULTILINE) == [
        "1",
        "2",
    ]
    for name in ("net.py", "model.py"):
        shutil.copy(EXAMPLES / "keywords" / name, tmp_path)
    file = load_file(str(tmp_path / "model.py"))
    assert str(tmp_path / "weights.npz") in file.files
    with np.load(tmp_path / "weights.npz") as new, np.load(EXAMPLES / "keywords" / "weights.npz") as stored:
        assert {k: v.shape for k, v in new.items()} == {k: v.shape for k, v in stored.items()}
        assert sum(v.size for v in stored.values()) == 7146
        assert zlib.crc32(new["conv.weight"].tobytes()) != zlib.crc32(stored["conv.weight"].tobytes())
