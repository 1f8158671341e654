"""The estimate of instructions that `plan` prints, against those that are counted in QEMU, of networks that its table
was not made for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from firmware_build import support_objects
from objects_once import objects

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.bench.probes import probes
from autodiff_gen.bench.program import bench_texts
from autodiff_gen.bench.qemu_counter import count, plugin
from autodiff_gen.codegen.budget_notes import UNLIMITED
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.instruction_estimate import instructions
from autodiff_gen.model.loader import LoadedFile
from autodiff_gen.targets import board, build_commands

BOARD = "mps2_an386"
CLASSES = nn.CrossEntropyLoss()


def perceptron() -> ag.Model:
    net = nn.Sequential(nn.Linear(96, 24), nn.Tanh(), nn.Linear(24, 5))
    return ag.Model.supervised(net, (3, 96), CLASSES, optim.Adam(lr=0.01))


def lenet() -> ag.Model:
    net = nn.Sequential(
        *(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(4, 12, 3), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(108, 30), nn.ReLU(), nn.Linear(30, 10)),
    )
    return ag.Model.supervised(net, (2, 1, 20, 20), CLASSES, optim.SGD(lr=0.01))


class Last(nn.Module):
    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(features, units, batch_first=True), nn.Linear(units, 3)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


def recurrent() -> ag.Model:
    return ag.Model.supervised(Last(4, 16), (4, 20, 4), CLASSES, optim.SGD(lr=0.01))


def narrow() -> ag.Model:
    """Products that fill few tiles, and functions of few elements."""
    return ag.Model.supervised(Last(3, 14), (2, 12, 3), CLASSES, optim.Adam(lr=0.01))


def depthwise() -> ag.Model:
    def block(channels: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(channels, channels, 3, stride, 1, groups=channels), nn.BatchNorm2d(channels), nn.ReLU()
        )

    net = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), block(16, 1), nn.Conv2d(16, 24, 1), nn.ReLU(), block(24, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 4)),
    )
    return ag.Model.supervised(net, (1, 3, 24, 24), CLASSES, optim.SGD(lr=0.01, momentum=0.9))


def clipped() -> ag.Model:
    """As `plan` proposes it for 24K."""
    net = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)),
    )
    net.requires_grad_(False)
    for layer in (net[4], net[7], net[11]):
        layer.requires_grad_(True)
    nn.update_channels(net[6], 0.25)
    rule = optim.SGD(lr=0.01, momentum=0.9)
    return ag.Model.supervised(net, (4, 3, 8, 8), CLASSES, rule, clip_grad_norm=1.0)


def counted(made: ag.Model, ram: int, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Instructions of each entry: by the estimate, and in QEMU."""
    place = board.load(BOARD)
    program = compile_model(made, "m", None, place, ram)
    texts = bench_texts(program, LoadedFile(made, "m", [], {}), 1)
    for name, text in {**texts, **emit(program)}.items():
        (folder / name).write_text(text)
    tables = program.backends
    compiler = [
        *(
            build_commands.tool(place, "gcc"),
            *build_commands.compile_flags(place),
            "-g0",
            "-DAG_PROBE_HINTS=1",
        ),
        *(f"-I{d}" for d in (*tables.include_dirs(), *build_commands.include_dirs(place))),
    ]
    own = [*compiler, f"-I{folder}"]
    subprocess.run([*own, *build_commands.model_flags(place), "-c", "m.c"], cwd=folder, check=True)
    kernels = [x for s in tables.sources(program.kernels) for x in objects([*compiler, *s.cflags], [s.path])]
    linked = ["m_bench.c", "m_params.c", "m.o", *kernels, *support_objects(place)]
    command = [*own, *linked, "-o", "m.elf", *build_commands.link_flags(place)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    found = count(place, folder / "m.elf", plugin(folder)).instructions
    return instructions(program), {p.entry: found[p.id] for p in probes(program) if not p.step}


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [perceptron, lenet, recurrent, narrow, depthwise, clipped], ids=lambda f: f.__name__
)
def test_the_estimate_is_within_ten_percent_of_what_is_counted(
    model: Callable[[], ag.Model], tmp_path: Path
) -> None:
    estimate, found = counted(model(), UNLIMITED, tmp_path)
    assert estimate["train_step"] == pytest.approx(found["train_step"], rel=0.1)


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.slow
def test_what_a_budget_adds_is_within_ten_percent(tmp_path: Path) -> None:
    added = []
    for ram in (24 << 10, UNLIMITED):
        folder = tmp_path / str(ram)
        folder.mkdir()
        added.append([x["train_step"] for x in counted(clipped(), ram, folder)])
    (estimate, found), (before, counted_before) = added
    assert found - counted_before > 50_000
    assert estimate - before == pytest.approx(found - counted_before, rel=0.1)
