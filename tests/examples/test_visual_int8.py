"""The quantised MobileNetV2 beside the float network, adapted in PyTorch; its size on an STM32F746; its crops."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from example_output import LINKED, check_sizes, sizes
from firmware_build import copy_of_the_project, once, scons

from autodiff_gen.datasets import samples
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

FOLDER = ROOT / "examples" / "visual_int8"
TRAIN, TEST, LR = 120, 400, 0.03
MEAN, SCALE = 128, 64


@pytest.fixture
def crops(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's crops.py."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "crops", raising=False)
    found = importlib.import_module("crops")
    monkeypatch.delitem(sys.modules, "crops")
    return found


def stored() -> dict[str, Any]:
    with np.load(FOLDER / "weights.npz") as file:
        return {name: file[name].astype(np.float32) for name in file.files}


def records(out: Path, *words: str) -> tuple[Any, Any]:
    """Crops and labels that data.py writes, the training crops first."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(
        [sys.executable, FOLDER / "data.py", "--out", out, *words],
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    made = samples.read(out)
    return made.records[:, :-1].reshape(-1, 1, 96, 96, 3), made.records[:, -1]


def float_network(trainer: Any) -> Any:
    """PyTorch's MobileNetV2 as in bench/workloads, with the stored weights, BatchNorm folded into the convolutions,
    which trains the same parameters as the trainer."""
    import torch
    from torch_workloads import workload

    weights = {k: torch.tensor(v) for k, v in stored().items() if k.startswith("0.")}
    net = workload("mobilenetv2").network(torch.nn)[:-1].eval()
    of_buffer = re.compile(r"(running_mean|running_var|num_batches_tracked)$")
    ours, theirs = (
        sorted(names, key=lambda name: of_buffer.search(name) is not None)
        for names in (weights, net.state_dict())
    )
    net.load_state_dict({t: weights[o] for o, t in zip(ours, theirs, strict=True)})
    kinds = (torch.nn.Conv2d, torch.nn.BatchNorm2d)
    convolutions, norms = ([m for m in net.modules() if isinstance(m, kind)] for kind in kinds)
    for convolution, norm in zip(convolutions, norms, strict=True):
        folded = torch.nn.utils.fusion.fuse_conv_bn_eval(convolution, norm)
        convolution.weight, convolution.bias = folded.weight, folded.bias
        norm.load_state_dict(torch.nn.BatchNorm2d(norm.num_features, eps=0.0).state_dict())
        norm.eps = 0.0
    net.requires_grad_(False)
    names = [k.removesuffix(".weight") for k in weights if k.endswith(".0.weight")]
    assert len(names) == len(convolutions)
    for slot in trainer.program.slots:
        layer, _, kind = slot.name.removeprefix("backbone.").rpartition(".")
        if f"0.{layer}" not in names:
            continue
        parameter = getattr(convolutions[names.index(f"0.{layer}")], kind).requires_grad_(True)
        if kind == "weight":
            trained = torch.zeros(parameter.shape)
            trained[:, slot.state.storage.index] = 1
            parameter.register_hook(trained.mul)
    classifier = torch.nn.Linear(1280, 10)
    state = trainer.state_dict()
    classifier.load_state_dict({k: torch.tensor(state[f"classifier.{k}"]) for k in ("weight", "bias")})
    return torch.nn.Sequential(net, classifier)


def accuracy(scores: Any, label: Any) -> float:
    """In percent, of the crops to recognise."""
    return 100 * float(np.mean(scores.argmax(1) == label[TRAIN:]))


@pytest.mark.slow
@pytest.mark.cc
@pytest.mark.torch
def test_it_learns_as_the_float_network_in_pytorch(tmp_path: Path) -> None:
    """One epoch: the accuracy on other quarters of the photographs, and above that before training."""
    import torch

    x, label = records(tmp_path / "s.bin", "--train", str(TRAIN), "--test", str(TEST), "--epochs", "1")
    trainer = load_model("visual_int8")[0].on_host("host,ref")
    twin = float_network(trainer)
    update = torch.optim.SGD([p for p in twin.parameters() if p.requires_grad], lr=LR)
    images = ((torch.tensor(x).float() - MEAN) / SCALE).permute(0, 1, 4, 2, 3)

    def by_torch() -> float:
        with torch.no_grad():
            return accuracy(torch.cat([twin(part[:, 0]) for part in images[TRAIN:].split(16)]).numpy(), label)

    before = by_torch()
    for i in range(TRAIN):
        lr = LR * (1 - i / TRAIN)
        trainer.train_step(x[i], label[i : i + 1], lr=lr)
        update.param_groups[0]["lr"] = lr
        loss = torch.nn.functional.cross_entropy(twin(images[i]), torch.tensor(label[i : i + 1]).long())
        update.zero_grad()
        loss.backward()
        update.step()
    after = accuracy(np.concatenate([trainer.predict(crop) for crop in x[TRAIN:]]), label)
    wanted = by_torch()
    print(f"before {before:.2f} %, 8 bits {after:.2f} %, float {wanted:.2f} %")
    assert after > before + 20 and abs(after - wanted) <= 1.0


def test_state_is_what_trains() -> None:
    """All other weights are constants; of the crop, bytes, no floats are stored, which would take 110,592 bytes."""
    from autodiff_gen.codegen.compiler import compile_model
    from autodiff_gen.codegen.files import emit

    program = compile_model(
        load_model("visual_int8")[0], "visual_int8", ("armv7em", "ref"), board.load("mps2_an386")
    )
    biases = 2 * 336 + 56 + 2 * 336 + 112 + 1280
    integers = 336 // 4 * (56 + 112)
    counter = 4  # of random numbers
    assert program.state_bytes == 4 * (10 * 1280 + 10) + 4 * biases + integers + counter
    assert 4 * program.arena_words <= 165_000
    source = emit(program)["visual_int8.c"]
    assert "static const int8_t" in source and "depthwise" in source


# The memory of the STM32F746, the code of its core; start-up as on MPS2.
F746 = """\
schema = 1
name = "STM32F746NG"
inherits = "disco_f746ng"

[target]
support = "mps2"
ldflags = ["-Wl,--defsym=__cmsdk_uart=0x40004000,--defsym=__cmsdk_uart_irq=0"]
"""


@pytest.mark.slow
@pytest.mark.cc
def test_it_fits_the_memory_of_an_stm32f746(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> None:
    """With the stack's reserve, and room for Arduino's start-up."""
    tree = once(tmp_path_factory, "tree", copy_of_the_project)
    board = tmp_path / "f746.toml"
    board.write_text(F746)
    said = scons(tree, f"board={board}", "model=visual_int8", "size")
    taken = sizes(said, LINKED)
    assert taken["flash"][0] < 650_000 and taken["sram"][0] < 280_000
    check_sizes("visual_int8", said, pytestconfig, LINKED)


def test_crops_of_the_two_pairs_of_quarters_share_no_pixel(crops: Any) -> None:
    photo = np.zeros((224, 300, 3))
    photo[:112, :150] = photo[112:, 150:] = 200.0
    rng = np.random.default_rng(1)
    for quarters, value in ((crops.LEARNED, 200.0), (crops.OTHERS, 0.0)):
        found = [crops.crop(photo, quarters, rng) for _ in range(50)]
        assert all(f.shape == (96, 96, 3) for f in found)
        np.testing.assert_allclose(found, value, rtol=1e-12)


def test_the_files_are_small_and_name_what_the_readme_lists(crops: Any) -> None:
    names, photos = crops.photographs()
    readme = (FOLDER / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in names)
    assert len(names) == 10 and all(photo.shape[0] == 224 for photo in photos)
    assert stored()["1.weight"].shape == (len(names) - crops.NEW, 1280)
    for file in ("weights.npz", "photos.npz"):
        assert (FOLDER / file).stat().st_size < 1_000_000
