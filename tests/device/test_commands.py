"""`autodiff-gen train`, `pull`, `push`, `hil` against the link's firmware as a program of the host."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from checkout import ROOT
from firmware_build import once
from link_build import link_program

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.cli.main import main
from autodiff_gen.codegen.link_layout import link_layout
from autodiff_gen.device import hil
from autodiff_gen.device.dataset import load_dataset
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.firmware import build_link
from autodiff_gen.device.log import CsvLog, Progress, TensorBoard, clock, curve
from autodiff_gen.device.session import Session
from autodiff_gen.device.training import Plan, Record, learning_rate, run_training
from autodiff_gen.errors import DataError, ToolError
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.cc

STEPS = 150  # of W1 in QEMU
MODEL = """\
import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 4))
model = ag.Model.supervised(
    net, input=(5, 20), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01), guard="gradients", restore_after=3
)
"""
DATA = """\
import numpy as np
def dataset():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 203).astype(np.uint8)
    x = rng.integers(0, 60, (203, 20)).astype(np.uint8)
    for k in range(203):
        x[k, 5 * y[k] : 5 * y[k] + 5] += 120
    return {"x": x[:163], "label": y[:163], "test_x": x[163:], "test_label": y[163:]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with model.py, data.py and the link's firmware."""

    def make(folder):
        (folder / "net").mkdir()
        (folder / "net" / "model.py").write_text(MODEL)
        (folder / "net" / "data.py").write_text(DATA)
        session = Session(str(folder / "net" / "model.py"), "host", kernels="ref")
        build_link(session.program, session.profile, folder / "link.elf")

    return once(tmp_path_factory, "train-command", make)


@pytest.fixture
def words(made, tmp_path):
    """(command, *words) -> the whole command line; the board's flash is in tmp_path."""
    elf = tmp_path / "link.elf"
    elf.symlink_to(made / "link.elf")
    board = tmp_path / "board"
    board.write_text(f"#!/bin/sh\ncd '{tmp_path}' && exec '{made / 'link.elf'}'\n")
    board.chmod(0o755)
    model = str(made / "net" / "model.py")

    def line(command, *more):
        return [command, model, "--port", f"exec:{board}", "--board", "host", *map(str, more)]

    return line


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_it_learns_and_logs(words, made, tmp_path, capsys):
    assert main(words("train", "--epochs", 4, "--log", tmp_path / "log.csv")) == 0
    out, err = capsys.readouterr()
    assert f"163 samples from {made / 'net' / 'data.py'}, 5 a step, 33 steps an epoch" in out
    assert "132 steps" in out and "checkpoint 1" in out and "█" in out
    lines = err.splitlines()
    assert len(lines) == 4 and re.fullmatch(
        r"epoch 4/4 \[#{20}\] 33/33  [\d,]+ samples/s  loss \d\.\d{4}  accuracy \d+\.\d\d %  0:00 left",
        lines[3],
    ), err
    log = rows(tmp_path / "log.csv")
    assert [int(r["step"]) for r in log] == list(range(1, 133))
    assert [r["epoch"] for r in log if r["accuracy"]] == ["1", "2", "3", "4"]
    assert float(log[-1]["accuracy"]) > 0.8 and {r["lr"] for r in log} == {"0.01"}
    assert float(log[-1]["loss"]) < float(log[0]["loss"])


def test_rounded_inputs_take_a_byte_each(words, made, tmp_path, capsys):
    """And the board trains on what the host has rounded, bit for bit."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 20)).astype(np.float32), rng.integers(0, 4, 20).astype(np.uint8)
    np.savez(tmp_path / "d.npz", x=x, label=y)
    log = tmp_path / "log.csv"
    assert main(words("train", "--data", tmp_path / "d.npz", "--send", "s8", "--log", log)) == 0
    scale = np.float32(np.abs(x).max() / 127)
    out = capsys.readouterr().out
    assert f"x: rounded to integers (s8) times {scale:.6g}\n" in out
    (size,) = re.findall(r"(\d+) bytes a sample on the link\n", out)
    assert int(size) < 20 + 16  # a byte for each float, and the frames
    trainer = load_model(str(made / "net" / "model.py"))[0].on_host()
    rounded = np.rint(x / scale).astype(np.int8).astype(np.float32) * scale
    wanted = [trainer.train_step(rounded[i : i + 5], y[i : i + 5]) for i in range(0, 20, 5)]
    assert [np.float32(r["loss"]) for r in rows(log)] == [np.float32(w) for w in wanted]


def test_samples_that_are_sorted_by_class_are_mixed(words, tmp_path, capsys):
    y = np.arange(20, dtype=np.uint8) // 5
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(2).random((20, 20), np.float32), label=y)
    losses = []
    for order in ((), ("--shuffle", 0), ("--no-shuffle",)):
        log = tmp_path / f"{len(losses)}.csv"
        assert main(words("train", "--data", tmp_path / "d.npz", "--fresh", "--log", log, *order)) == 0
        losses.append([r["loss"] for r in rows(log)])
        assert ("the samples are sorted by class: --shuffle 0" in capsys.readouterr().out) == (order == ())
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.torch
def test_losses_and_weights_are_pytorchs(words, made, tmp_path, capsys):
    """Every loss within 1e-5, the weights pulled back, and a state_dict that predicts the same."""
    import torch

    assert main(words("train", "--epochs", 2, "--shuffle", 7, "--log", tmp_path / "log.csv")) == 0
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    assert main(words("pull", "--out", tmp_path / "w.pt")) == 0
    assert "w.pt: 4 arrays after 66 steps" in capsys.readouterr().out
    model = load_model(str(made / "net" / "model.py"))[0]
    net = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    first = {s.name: torch.tensor(s.init.array()) for s in model.states if s.role == "parameter"}
    net.load_state_dict(first)
    update = torch.optim.Adam(net.parameters(), lr=0.01)
    namespace = {}
    exec(DATA, namespace)
    data = namespace["dataset"]()
    x, y = torch.tensor(data["x"], dtype=torch.float32) / 255, torch.tensor(data["label"], dtype=torch.int64)
    plan = Plan(163, 5, 2, 7)
    ours = [float(r["loss"]) for r in rows(tmp_path / "log.csv")]
    for step, _, index in plan.batches(0):
        update.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x[index]), y[index])
        loss.backward()
        update.step()
        assert abs(ours[step] - loss.item()) <= 1e-5 * max(1.0, loss.item()), step
    pulled = np.load(tmp_path / "w.npz")
    for name, array in net.state_dict().items():
        assert np.abs(pulled[name] - array.numpy()).max() < 1e-4, name
    assert int(pulled["_steps"]) == 66
    trainer = model.on_host()
    trainer.load_state_dict({n: pulled[n] for n in pulled.files if n != "_steps"})
    net.load_state_dict(torch.load(tmp_path / "w.pt", weights_only=True))
    with torch.no_grad():
        theirs = net(x[:5]).numpy()
    assert np.abs(trainer.predict(x[:5].numpy()) - theirs).max() < 1e-5


@pytest.mark.qemu
@pytest.mark.torch
def test_w1_in_qemu_learns_as_pytorch_does(root, tmp_path, record_property):
    """784-32-10 through the link: losses within 1e-5 of PyTorch's, and its weights after the last step."""
    import torch

    from autodiff_gen import datasets

    model = str(root / "bench" / "workloads" / "w1.py")
    loaded = load_model(model)[0]
    port = f"qemu:{link_program('mps2_an386', loaded, tmp_path)}"
    digits = datasets.load_digits()
    x, y = digits.images[:STEPS].reshape(-1, 784), digits.labels[:STEPS]
    np.savez(tmp_path / "digits.npz", x=x, label=y)
    common = [model, "--board", "mps2_an386", "--kernels", "ref", "--timeout", "60", "--port", port]
    log = tmp_path / "log.csv"
    assert main(["train", *common, "--data", str(tmp_path / "digits.npz"), "--log", str(log)]) == 0
    assert main(["pull", *common, "--out", str(tmp_path / "w.npz")]) == 0
    weights = [torch.tensor(s.init.array(), requires_grad=True) for s in loaded.states]
    images, labels = torch.tensor(x, dtype=torch.float32) / 255, torch.tensor(y, dtype=torch.int64)
    update = torch.optim.SGD(weights, lr=0.01)
    worst = 0.0
    ours = [float(r["loss"]) for r in rows(log)]
    for step in range(STEPS):
        hidden = torch.sigmoid(images[step : step + 1] @ weights[0].T)
        loss = torch.nn.functional.cross_entropy(hidden @ weights[1].T, labels[step : step + 1])
        update.zero_grad()
        loss.backward()
        update.step()
        worst = max(worst, abs(ours[step] - loss.item()))
    assert len(ours) == STEPS and worst <= 1e-5
    pulled = np.load(tmp_path / "w.npz")
    off = [
        np.abs(pulled[s.name] - w.detach().numpy()).max() for s, w in zip(loaded.states, weights, strict=True)
    ]
    assert max(off) <= 1e-6 and int(pulled["_steps"]) == STEPS
    trainer = loaded.on_host()
    here = [trainer.train_step(images[k : k + 1].numpy(), y[k : k + 1]) for k in range(STEPS)]
    assert np.array_equal(np.float32(here), np.float32(ours))
    assert all(np.array_equal(pulled[n], a) for n, a in trainer.state_dict().items())
    record_property("against PyTorch", f"losses within {worst:.1e}, weights within {max(off):.1e}")


def test_resumed_equals_never_stopped(words, tmp_path):
    """Another run goes on from the board's state: by its checkpoint, with moments and order, bit for bit."""
    log = tmp_path / "log.csv"
    assert main(words("train", "--epochs", 3, "--shuffle", 1, "--log", log)) == 0
    assert main(words("pull", "--out", tmp_path / "whole.npz")) == 0
    whole = [r["loss"] for r in rows(log)]
    log.unlink()
    assert main(words("train", "--fresh", "--epochs", 1, "--shuffle", 1, "--log", log)) == 0
    assert main(words("train", "--epochs", 3, "--shuffle", 1, "--log", log)) == 0
    assert [r["loss"] for r in rows(log)] == whole
    assert main(words("pull", "--out", tmp_path / "parts.npz")) == 0
    one, two = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "parts.npz")
    assert one.files == two.files and all(np.array_equal(one[n], two[n]) for n in one.files)


def test_a_board_with_spoilt_weights_goes_back_and_trains_on(words, tmp_path, capsys):
    """To the same end, bit for bit, as one whose weights were never spoilt."""
    log = tmp_path / "log.csv"
    more = ("--epochs", 2, "--shuffle", 1, "--tests", 0, "--log", log)
    assert main(words("train", *more)) == 0
    assert main(words("pull", "--out", tmp_path / "whole.npz")) == 0
    whole = [r["loss"] for r in rows(log)]
    assert main(words("train", "--fresh", "--epochs", 1, *more[2:])) == 0
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    spoilt = dict(np.load(tmp_path / "w.npz"))
    spoilt["2.weight.exp_avg"] = spoilt["2.weight.exp_avg"] * np.float32(np.nan)
    capsys.readouterr()
    session = Session(words("train")[1], "host")
    device = session.connect(words("train")[3])
    try:
        device.load_state_dict({n: a for n, a in spoilt.items() if n != "_steps"}, steps=40)
        data = load_dataset(None, session.path, device.layout)
        said = []
        listeners = (Progress(Plan(163, 5, 2, 1), 33), said.append, CsvLog(log, 33))
        run = run_training(device, data, Plan(163, 5, 2, 1), lambda r: [s(r) for s in listeners])
        listeners[2].close()
        assert run.steps == 66 and len(run.losses) == 33
        assert [r.step for r in said if r.went_back] == [33]
        assert device.counters().restored == 1 and device.counters().rejected == 3
    finally:
        device.close()
    assert "the board rejected steps and went back to step 33" in capsys.readouterr().err
    assert [r["loss"] for r in rows(log)] == whole
    assert main(words("pull", "--out", tmp_path / "again.npz")) == 0
    one, two = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "again.npz")
    assert all(np.array_equal(one[n], two[n]) for n in one.files)


def test_ctrl_c_stops_after_a_whole_step_and_the_board_is_good(words, tmp_path):
    log = tmp_path / "log.csv"
    command = words("train", "--fresh", "--epochs", 3000, "--tests", 0, "--save-every", 50, "--log", log)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "autodiff_gen", *command],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 60
    while not (tmp_path / "flash.bin").exists() or b"AGSR" not in (tmp_path / "flash.bin").read_bytes():
        assert time.monotonic() < limit and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    same = "the same command without --fresh continues from there"
    stopped = re.search(rf"stopped at step ([\d,]+) of 99,000; {same}", out)
    assert stopped and "Traceback" not in err
    step = int(stopped[1].replace(",", ""))
    assert [int(r["step"]) for r in rows(log)] == list(range(1, step + 1))
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    assert int(np.load(tmp_path / "w.npz")["_steps"]) == step


def test_push_brings_weights_to_a_board(words, tmp_path, capsys):
    assert main(words("train", "--tests", 0)) == 0
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    (tmp_path / "flash.bin").unlink()
    assert main(words("push", tmp_path / "w.npz", "--save")) == 0
    assert "the board is at step 33, checkpoint 1" in capsys.readouterr().out
    assert main(words("pull", "--out", tmp_path / "again.npz")) == 0
    one, two = np.load(tmp_path / "w.npz"), np.load(tmp_path / "again.npz")
    assert all(np.array_equal(one[n], two[n]) for n in one.files)


@pytest.mark.torch
def test_weights_of_pytorch_on_a_board_and_on_the_host(words, made, tmp_path, capsys):
    """A state_dict has no optimizer state; the outputs of predict are PyTorch's in all places and forms."""
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(20, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    torch.save(net.state_dict(), tmp_path / "w.pt")
    x = np.random.default_rng(2).normal(size=(7, 20)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)  # a folder without labels
    wanted = net(torch.tensor(x)).detach().numpy()
    trainer = load_model(str(made / "net" / "model.py"))[0].on_host()
    trainer.load_state_dict(net.state_dict())
    assert np.abs(trainer.predict(x[:5]) - wanted[:5]).max() < 1e-5
    more = ("--data", tmp_path, "--weights", tmp_path / "w.pt")
    assert main(words("predict", *more, "--out", tmp_path / "p" / "board.npy")) == 0
    assert "scores [7, 4]" in capsys.readouterr().out
    assert np.abs(np.load(tmp_path / "p" / "board.npy") - wanted).max() < 1e-5
    model = words("predict")[1]
    assert main(["predict", model, "--board", "host", *map(str, more), "--samples", "6"]) == 0
    table = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert table[0] == [f"scores.{k}" for k in range(4)]
    assert np.abs(np.array(table[1:], float) - wanted[:6]).max() < 1e-5
    assert main(words("push", tmp_path / "w.pt")) == 0
    assert "4 arrays sent to net on host, the board is at step" in capsys.readouterr().out
    torch.save({"0.weight": net[0].weight, "head.weight": net[2].weight}, tmp_path / "w.pt")
    assert main(words("push", tmp_path / "w.pt")) == 1
    assert (
        "missing 0.bias, 2.weight, 2.bias; unexpected head.weight; the model has" in capsys.readouterr().err
    )
    assert main(words("predict", "--test")) == 0
    assert len(capsys.readouterr().out.splitlines()) == 41
    assert main(words("predict", "--out", "p.txt")) == 1


def words_of(path):
    return np.frombuffer(path.read_bytes(), "<u4").copy()


def sealed(words, first, count):
    """Headers of the flash end in their checksum."""
    words[first + count] = zlib.crc32(words[first : first + count].tobytes())
    return words


def as_later(words):
    words[5] = 2
    return sealed(words, 4, 7)


def as_anothers(words):
    words[6] ^= 1
    return sealed(words, 4, 7)


@pytest.mark.parametrize(
    "change, said",
    [
        (
            as_later,
            "the checkpoints have a later format: build and upload newer firmware, or erase the flash (status -66)",
        ),
        (as_anothers, "the checkpoints belong to another model (status -65)"),
    ],
)
def test_checkpoints_that_are_not_this_firmwares(words, tmp_path, capsys, change, said):
    """The host says so in one line; the board begins with its first weights, and nothing is lost."""
    assert main(words("train", "--tests", 0)) == 0
    flash = tmp_path / "flash.bin"
    flash.write_bytes(change(words_of(flash)).tobytes())
    kept = words_of(flash)
    capsys.readouterr()
    assert main(words("train", "--tests", 0)) == 0
    out, err = capsys.readouterr()
    notes = [line for line in err.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: the board loaded no checkpoint and started with its initial weights: {said}"]
    assert "33 steps" in out and "checkpoint " in out
    if change is as_later:
        half = len(kept) // 2
        assert np.array_equal(words_of(flash)[:half], kept[:half])
    assert main(words("pull", "--out", tmp_path / "w.npz")) == 0
    assert "note" not in capsys.readouterr().err and int(np.load(tmp_path / "w.npz")["_steps"]) == 33


def test_worn_flash_is_one_line_and_the_weights_stay(words, made, tmp_path, capsys):
    assert main(words("train", "--tests", 0)) == 0
    kept = (tmp_path / "flash.bin").read_bytes()
    (tmp_path / "board").write_text(  # a file that cannot be written instead of flash that is worn
        f"#!/bin/sh\ncd '{tmp_path}' && trap '' XFSZ && ulimit -f 0 && exec '{made / 'link.elf'}'\n"
    )
    capsys.readouterr()
    assert main(words("train", "--tests", 0, "--epochs", 2)) == 1
    err = capsys.readouterr().err.splitlines()
    assert err[-1] == (
        "error: training reached step 66, but the checkpoint was not written: the flash is worn: "
        "what was programmed does not read back (status -68)"
    )
    assert (tmp_path / "flash.bin").read_bytes() == kept


def test_a_state_that_hil_cannot_restore_is_in_a_file(words, tmp_path, capsys, monkeypatch):
    def unplugged(bench):
        bench.port = "/dev/no-such-port"
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hil, "CHECKS", (hil.trains_like_the_host, unplugged))
    assert main(words("hil", "--steps", 5)) == 1
    said = r"error: .*not restored \(.*\); it is in (\w+\.npz): send it with autodiff-gen push\n"
    file = re.fullmatch(said, capsys.readouterr().err)[1]
    assert main(words("push", file)) == 0
    assert main(words("pull", "--out", "after.npz")) == 0
    one, two = np.load(file), np.load("after.npz")
    assert one.files == two.files and int(two["_steps"]) == 0
    assert all(np.array_equal(one[n], two[n]) for n in one.files)


def test_a_rejected_step_is_named(words, tmp_path, capsys):
    x = np.zeros((9, 20), np.float32)
    x[6] = 3e38
    data = saved(tmp_path / "d.npz", x=x, label=np.zeros(9, np.uint8))
    assert main(words("train", "--data", data, "--batch", 3)) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "error: step 3, epoch 1, samples 6, 7, 8: the step was rejected: "
        "the updates cannot be proved finite (status -9)"
    )


def test_nothing_to_do(words, capsys):
    assert main(words("train", "--tests", 0)) == 0
    assert main(words("train", "--tests", 0)) == 0
    assert "nothing to do: the board has trained 33 of 33 steps" in capsys.readouterr().out


@pytest.mark.parametrize("ends", [None, KeyboardInterrupt, LinkError("silent")], ids=str)
def test_hardware_in_the_loop(words, tmp_path, capsys, monkeypatch, ends):
    """And the board has its trained state afterwards, however the checks end."""
    assert main(words("train", "--tests", 0)) == 0
    assert main(words("pull", "--out", tmp_path / "before.npz")) == 0
    capsys.readouterr()
    if ends is not None:

        def interrupted(bench):
            bench.train(1)
            bench.board.save()
            bench.board.link.pipeline = None  # nothing works any more but a new session
            raise ends

        monkeypatch.setattr(hil, "CHECKS", (hil.trains_like_the_host, interrupted))
    assert main(words("hil", "--steps", 5)) == {None: 0, KeyboardInterrupt: 130}.get(ends, 1)
    out = capsys.readouterr().out
    says = "the state of the board is restored: step 33\n7 checks, 0 failed\n"
    assert ends is not None or (out.count("  ok\n") == 7 and out.endswith(says)), out
    assert main(words("pull", "--out", tmp_path / "after.npz")) == 0
    one, two = np.load(tmp_path / "before.npz"), np.load(tmp_path / "after.npz")
    assert one.files == two.files and all(np.array_equal(one[n], two[n]) for n in one.files)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


X, Y = np.zeros((9, 20), np.float32), np.zeros(9, np.uint8)
WRONG = [
    ({"x": X[:, :19], "label": Y}, r"x has shape \[9, 19\], the model takes \[samples, 20\]"),
    ({"x": X, "label": Y[:8]}, "label has 8 samples, x 9"),
    ({"x": X, "label": Y + 4}, r"label\[0\] is 4, outside 0 to 3"),
    ({"x": X, "label": Y.astype(np.float32)}, "label: expected integer class labels"),
    ({"x": X.astype(complex), "label": Y}, "x: expected numbers"),
    ({"x": np.where(np.arange(20) == 7, np.nan, X), "label": Y}, r"x\[0, 7\] is nan, no finite float32"),
    ({"x": np.float64(X) - 1e39, "label": Y}, r"x\[0, 0\] is -1e\+39, no finite float32"),
    ({"x": X}, r"missing label; the model takes x: f32\[n,20\], label: u8\[n\]"),
    ({"x": X, "label": Y, "y": Y}, "unexpected y"),
    (
        {"x": X, "label": Y, "test_x": X},
        r"missing test_label; the model takes test_x: f32\[n,20\], test_label",
    ),
    ({"x": X[:0], "label": Y[:0]}, "x has no samples"),
]


@pytest.mark.parametrize("arrays, said", WRONG, ids=[said for _, said in WRONG])
def test_wrong_data_are_one_line(words, tmp_path, capsys, arrays, said):
    assert main(words("train", "--data", saved(tmp_path / "d.npz", **arrays))) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: data ") and err.count("\n") == 1 and re.search(said, err), err


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("d.npz", "nonsense", "not a .npz file of arrays: File is not a zip file"),
        ("d.txt", "1,2", "give a .npz, a .csv, a folder of .npy or .csv files, a samples.bin, or a .py"),
        ("d.py", "x = 1", "needs a function dataset"),
        ("d.py", "def dataset():\n    return 1 / 0\n", "d.py:2: the file raises ZeroDivisionError"),
        ("d.bin", "nonsense", "not a sample set"),
    ],
)
def test_wrong_data_files(made, tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    from autodiff_gen.codegen.compiler import compile_model

    layout = link_layout(compile_model(load_model(str(made / "net" / "model.py"))[0], "net"))
    with pytest.raises(DataError) as caught:
        load_dataset(str(tmp_path / name), made / "net" / "model.py", layout)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "more, said",
    [
        (["train", "--batch", "6"], "--batch 6: the model takes 1 to 5 samples a step"),
        (["train", "--lr", "inf"], "inf is no finite float"),
        (["train", "--timeout", "0"], "must be more than 0"),
        (["pull", "--out", "w.txt"], "weights go to .npz or, for PyTorch, .pt"),
        (["push", "missing.npz"], "missing.npz: no such file"),
    ],
)
def test_wrong_options(words, capsys, more, said):
    assert main(words(*more)) in (1, 2)
    assert said in capsys.readouterr().err


def test_without_a_port_the_firmware_is_built(made, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["pull", str(made / "net" / "model.py"), "--kernels", "ref", "--ram", "64K", "--out", "w.npz"]
    assert main([*words, "--board", "host"]) == 0
    said = capsys.readouterr()
    elf = "build/host/net+kernels=ref+ram=65536/link.elf"
    assert said.err == f"no --port: net on host is {elf}\n"
    untrained = "; it has not trained: they are its initial values, or what push sent"
    assert said.out == f"w.npz: 13 arrays after 0 steps, of net on host{untrained}\n"
    assert (tmp_path / elf).is_file()
    assert main([*words, "--board", "teensy41"]) == 1
    assert capsys.readouterr().err.startswith(
        "error: board teensy41 has no emulator: name the port of a board "
    )
    monkeypatch.setenv("PATH", "")
    assert main([*words, "--board", "stm32"]) == 1
    assert "board stm32: arm-none-eabi-gcc is not installed; run: " in capsys.readouterr().err


def test_plans_leave_out_a_rest_that_is_too_small():
    assert Plan(10, 4, 1).per_epoch == 3
    assert Plan(9, 4, 2, least=2).per_epoch == 2
    assert [len(rows) for _, _, rows in Plan(10, 4, 1).batches(0)] == [4, 4, 2]
    steps = [(s, e) for s, e, _ in Plan(10, 4, 2).batches(2)]
    assert steps == [(2, 0), (3, 1), (4, 1), (5, 1)]
    first, second = Plan(10, 10, 2, shuffle=1).batches(0)
    assert sorted(first[2]) == sorted(second[2]) == list(range(10)) and list(first[2]) != list(second[2])


def test_events_of_tensorboard(tmp_path, monkeypatch):
    """loss, lr and accuracy; the steps after the one where a run is resumed replace older ones."""
    written = []

    class SummaryWriter:
        def __init__(self, folder, purge_step):
            written.append((folder, purge_step))

        def add_scalar(self, name, value, step):
            written.append((name, value, step))

        def close(self):
            written.append("closed")

    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=SummaryWriter))
    events = TensorBoard(tmp_path, 4)
    events(Record(5, 1, 5, 1.0, 0.5, lr=0.1))
    events(Record(3, 1, 5, 1.0, 0.0, went_back=True))
    events(Record(6, 1, 6, 1.0, 0.25, 0.75, lr=0.1))
    events.close()
    assert written == [
        (str(tmp_path), 5),
        *(("loss", 0.5, 5), ("lr", 0.1, 5)),
        *(("loss", 0.25, 6), ("lr", 0.1, 6), ("accuracy", 0.75, 6)),
        "closed",
    ]
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ToolError, match=r"-m pip install 'tensorboardX>=2.6'$"):
        TensorBoard(tmp_path)


def test_the_learning_rate_of_a_schedule_is_logged():
    net = nn.Linear(2, 2)
    schedule = optim.lr_scheduler.StepLR(step_size=2, gamma=0.5)
    model = ag.Model.supervised(
        net, input=(1, 2), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.8), schedule=schedule
    )
    rate = learning_rate(model, None)
    assert [round(rate(k), 6) for k in range(5)] == [0.8, 0.8, 0.4, 0.4, 0.2]


def test_a_log_is_cut_where_a_run_goes_on(tmp_path):
    path = tmp_path / "deep" / "log.csv"
    for first, last in ((0, 5), (3, 6)):
        log = CsvLog(path, first)
        for step in range(first, last):
            log(Record(step + 1, 1, 1, 1.0, float(first)))
        log.close()
    assert [(int(r["step"]), float(r["loss"])) for r in rows(path)] == [
        *((k, 0.0) for k in (1, 2, 3)),
        *((k, 3.0) for k in (4, 5, 6)),
    ]


@pytest.mark.parametrize(
    "before, first, renamed",
    [
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n", 0, True),  # --fresh
        (
            "step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n",
            1,
            True,
        ),  # the board went back
        ("step,epoch,loss,lr,accuracy,seconds\n1,1,0.5,0.1,,0.1\n2,1,0.4,0.1,,0.2\n", 2, False),
        ("step,epoch,loss,lr,accuracy,seconds\n", 0, False),
        ("some,other,file\n", 0, True),
    ],
)
def test_no_row_of_a_log_is_lost(tmp_path, before, first, renamed):
    path = tmp_path / "log.csv"
    (tmp_path / "log.1.csv").write_text("an older one")
    path.write_text(before)
    log = CsvLog(path, first)
    log.close()
    assert log.renamed == (tmp_path / "log.2.csv" if renamed else None)
    assert len(rows(path)) == first
    if renamed:
        assert log.renamed.read_text() == before
    assert (tmp_path / "log.1.csv").read_text() == "an older one"


def test_the_curve():
    lines = curve([4.0, 3.0, 2.0, 1.0, float("nan")], width=4, height=2).splitlines()
    assert [line.strip() for line in lines] == ["4 |█▃", "1 |██▆▁", "+----", "step  1  5"]
    assert curve([1.0]) == "" and clock(3723) == "1:02:03" and clock(21.4) == "0:21"
