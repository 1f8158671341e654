"""`plan`: a model with the proposed lines has a program as large as `plan` says, and within the
budget."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from int8_networks import random_network

from autodiff_gen.cli.main import main
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board

HEAD = """
import autodiff_gen as ag
from autodiff_gen import functional as F, nn, optim, quant
import json
import numpy as np
"""
FLOATS = """
net = nn.Sequential(
    *(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16).eval(), nn.ReLU()),
    *(nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)),
)
{lines}
model = ag.Model.supervised(net, input=(2, 3, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.{optimizer}(lr=0.01))
"""
EIGHT_BITS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        with np.load("{file}") as file:
            self.backbone = quant.load({{name: file[name] for name in file.files}})
        self.head = nn.Linear(10, 4)

    def forward(self, x):
        return self.head(F.flatten(self.backbone(x), 1))


def model_of(own):
    return ag.Model.supervised(
        own, input=(1, 3, 16, 16), loss=nn.CrossEntropyLoss(), optimizer=optim.{optimizer}(lr=0.01)
    )


own = Net()
{lines}
model = model_of(own)
batch = lambda step: [np.full((1, 3, 16, 16), 0.1 * step, np.float32), np.array([step % 4])]
"""


def written(folder: Path, text: str, lines: str, optimizer: str) -> Path:
    file = folder / "network.npz"
    if not file.exists():
        np.savez(file, **random_network(np.random.default_rng(5), 16))
    path = folder / ("after.py" if lines else "before.py")
    path.write_text(HEAD + text.format(lines=lines, optimizer=optimizer, file=file))
    return path


def planned(model: Path, ram: int, *more: str) -> int:
    return main(["plan", str(model), "--board", "stm32", "--kernels", "ref", "--ram", str(ram), *more])


@pytest.mark.parametrize(
    ("text", "optimizer", "ram"), [(FLOATS, "Adam", 40_000), (EIGHT_BITS, "SGD", 20_000)], ids=["f32", "s8"]
)
def test_the_lines_give_the_program_that_is_printed(
    text: str, optimizer: str, ram: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, out = written(tmp_path, text, "", optimizer), tmp_path / "lines.py"
    assert planned(before, ram, "--out", str(out)) == 0
    shown = capsys.readouterr().out
    (total,) = [line for line in shown.splitlines() if line.startswith("total:")]
    costs = [line for line in shown.splitlines() if line.startswith("the RAM budget changes")]
    assert text is not EIGHT_BITS or (costs and costs[0].endswith(" ms at 168 MHz"))
    after = load_file(str(written(tmp_path, text, out.read_text(), optimizer)))
    program = compile_model(after.made, "after", ["ref"], board.load("stm32"), ram)  # type: ignore[arg-type]
    assert total.startswith(f"total: {program.struct_bytes} bytes as planned: {program.state_bytes} of state")
    assert program.struct_bytes <= ram
    trained = [s.name for s in program.slots if s.role == "parameter"]
    rows = [line.split() for line in shown.splitlines()[2:]]
    rows = rows[: rows.index([])]
    assert sorted(row[0] for row in rows if row[3] != "-") == sorted(trained)
    assert any(row[3] != "all" for row in rows), "the budget is too small for all"


CLIPPED = """
net = nn.Sequential(
    *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16)),
    *(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)),
)
{lines}
model = ag.Model.supervised(
    net, input=(4, 3, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.{optimizer}(lr=0.01), {clipping}
)
"""


@pytest.mark.parametrize("clipping", ["clip_grad_norm=1.0", "clip_grad_norm=1.0, accumulate='mean'"])
def test_clipping_changes_neither_the_gradients_nor_what_their_way_takes(
    clipping: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = written(tmp_path, CLIPPED.replace("{clipping}", clipping), "", "SGD")
    assert planned(model, 19_000) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()[2:12]]
    share = {name: float(part.rstrip("%")) for name, _, part, *_ in rows}
    trained = {row[0] for row in rows if row[3] != "-"}
    assert sum(share[name] for name in trained) > 30 and {"8.weight", "8.bias"} <= trained
    assert trained.isdisjoint({"0.bias", "3.bias"}), (
        "a BatchNorm subtracts the mean: its gradient is rounding errors"
    )
    assert "before for STM32F405RG (stm32), kernels ref, batch 4" in shown
    assert re.search(
        r"^train_step: [\d,]+ multiply-accumulates and about [\d,]+ instructions, some ", shown, re.M
    )


SMALL = """
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
w = ag.Param("w", np.ones(3, np.float32))
x, target = ag.Input("x", (4, 6)), ag.Input("target", (4, 3))
y = net(x) * w
{lines}
model = ag.Model([x], [target], {{"y": y}}, F.mean((y - target) ** 2), optim.{optimizer}(lr=0.1))
"""


def small(folder: Path) -> Path:
    return written(folder, SMALL, "", "SGD")


@pytest.mark.parametrize(("zero", "expected"), [("x", "0.weight 48 0.00% -"), ("none", "0.weight 48 ")])
def test_the_data_decide(
    zero: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "data.npz"
    x = rng.standard_normal((8, 6)).astype(np.float32)
    arrays = {"x": np.zeros_like(x) if zero == "x" else x, "target": x[:, :3]}
    np.savez(file, **arrays)
    assert planned(small(tmp_path), 4000, "--data", str(file)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert expected in shown and f"gradients: of {file}" in shown


RECORDED = """
net = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 2))
{lines}
model = ag.Model.supervised(net, (2, 3, 4), nn.CrossEntropyLoss(), optim.{optimizer}(lr=0.1))
"""


@pytest.mark.parametrize(
    "options, note",
    [
        ([], "windows: 6 of 4 rows, one every 4 rows; mixed, as they are sorted by class"),
        (["--window", "4", "--stride", "2"], "windows: 10 of 4 rows, one every 2 rows; mixed, "),
        (["--columns", "x=c,b,a", "--classes", "sit,run"], "windows: 6 of 4 rows, one every 4 rows; mixed, "),
    ],
)
def test_recordings_are_cut_as_for_train(
    options: list[str], note: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, folder = np.random.default_rng(0), tmp_path / "recordings"
    for name in ("run", "sit"):
        (folder / name).mkdir(parents=True)
        rows = "".join(f"{a},{b},{c}\n" for a, b, c in rng.standard_normal((12, 3)))
        (folder / name / "1.csv").write_text("a,b,c\n" + rows)
    model = written(tmp_path, RECORDED, "", "SGD")
    assert planned(model, 4000, "--data", str(folder), *options) == 0
    assert f"gradients: of {folder}; {note}" in capsys.readouterr().out


ERRORS: dict[str, tuple[list[str], str]] = {
    "a budget that no choice meets": (
        ["--ram", "50"],
        r"no parameter can train within 50 bytes: \w+ takes \d+",
    ),
    "no budget": (["--board", "host"], "board host has no limit of RAM; give a budget"),
    "no data": (["--ram", "4K", "--data", "missing.npz"], "missing.npz: no such file"),
    "windows of nothing": (
        ["--ram", "4K", "--stride", "4"],
        "--stride describes data: name the data with --data",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_bad_input(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args, expected = ERRORS[name]
    assert (
        main(["plan", str(small(tmp_path)), *(["--board", "stm32"] if "--board" not in args else []), *args])
        == 1
    )
    error = capsys.readouterr().err
    assert re.search(expected, error) and error.startswith("error: ") and error.count("\n") == 1
