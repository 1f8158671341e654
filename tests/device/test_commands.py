"""`autodiff-gen train`, `pull`, `push`, `hil` against the link's firmware as a program of the host."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from checkout import ROOT
from csv_rows import rows
from link_build import link_program
from terminal import as_stderr

from autodiff_gen.cli.main import main
from autodiff_gen.device import hil
from autodiff_gen.device.dataset import load_dataset
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.log import CsvLog, Progress
from autodiff_gen.device.session import Session
from autodiff_gen.device.training import BatchPlan, run_training
from autodiff_gen.host.compiler import first_error
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.cc

STEPS = 150  # of W1 in QEMU


def test_an_error_of_the_linker_says_what_does_not_fit():
    ld = "/usr/lib/gcc/../bin/ld: "
    output = f"{ld}a section `.bss' will not fit in region `RAM'\n{ld}region `RAM' overflowed by 8 bytes\n"
    error = first_error(output + "collect2: error: ld returned 1 exit status\n")
    assert error == "ld: region `RAM' overflowed by 8 bytes"


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
    """And the board trains on the host's rounded samples, bit for bit."""
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
    exec((made / "net" / "data.py").read_text(), namespace)
    data = namespace["dataset"]()
    x, y = torch.tensor(data["x"], dtype=torch.float32) / 255, torch.tensor(data["label"], dtype=torch.int64)
    plan = BatchPlan(163, 5, 2, 7)
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
        listeners = (Progress(BatchPlan(163, 5, 2, 1), 33), said.append, CsvLog(log, 33))
        run = run_training(device, data, BatchPlan(163, 5, 2, 1), lambda r: [s(r) for s in listeners])
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


def test_nothing_to_do(words, capsys):
    assert main(words("train", "--tests", 0)) == 0
    assert main(words("train", "--tests", 0)) == 0
    assert "nothing to do: the board has trained 33 of 33 steps" in capsys.readouterr().out
    assert main(words("train", "--tests", 0, "--samples", 100)) == 0
    other = (
        "33 of 20 steps, so it trained on other data, or in more epochs; --more 1 trains one more pass over"
    )
    assert other in capsys.readouterr().out


def test_a_terminal_shows_the_progress_of_training(words, monkeypatch):
    """In the line that said what was compiled: the first step, some of the others, and the end of each epoch."""
    terminal = as_stderr(monkeypatch)
    assert main(words("train", "--tests", 0, "--epochs", 2)) == 0
    shown = terminal.lines
    assert shown[1].startswith("compiling net for host (")
    first = next(k for k, line in enumerate(shown) if line.startswith("epoch"))
    assert re.fullmatch(
        r"epoch 1/2 \[-{20}\] 1/33  [\d,]+ samples/s  loss \d\.\d{4}  \d:\d\d left", shown[first]
    )
    ends = [line for line in shown[first:] if line.endswith("\n")]
    assert all(re.match(rf"epoch {k}/2 \[#{{20}}\] 33/33 ", line) for k, line in enumerate(ends, 1))
    assert len(ends) == 2 and shown[-1] == ends[1] and shown[-1].endswith("  0:00 left\n")


def test_more_passes(words, tmp_path, capsys):
    """Over the same data as `--epochs`, bit for bit; and whole passes over other data."""
    log, common = tmp_path / "log.csv", ("--tests", 0, "--shuffle", 1)
    assert main(words("train", *common, "--epochs", 3, "--log", log)) == 0
    whole = [(r["epoch"], r["loss"]) for r in rows(log)]
    for passes in (("--fresh",), ("--more", 2)):
        assert main(words("train", *common, *passes, "--log", log)) == 0
    assert [(r["epoch"], r["loss"]) for r in rows(log)] == whole
    said = capsys.readouterr()
    assert "continues after step 33 with 2 more epochs" in said.out
    assert re.search(r"^epoch 2/2 \[#{20}\] 33/33 ", said.err, re.MULTILINE)
    assert main(words("train", *common, "--samples", 20, "--more", 1, "--log", log)) == 0
    assert [int(r["step"]) for r in rows(log)] == list(range(1, 104))
    assert [r["epoch"] for r in rows(log)][98:] == ["3", *("4",) * 4]
    assert main(words("train", *common, "--more", 1, "--log", other := tmp_path / "other.csv")) == 0
    assert {r["epoch"] for r in rows(other)} == {"4"}, "without earlier rows, as in a run on these data"


def test_a_test_set_is_scored(words, tmp_path, capsys):
    """Words that are classes are in the file; the accuracy belongs to the last epoch of training."""
    rng = np.random.default_rng(5)
    label = rng.choice(["run", "sit", "skip"], 90)
    x = rng.normal(size=(90, 20))
    x[:, 0] += 3 * (label == "sit")
    x[:, 1] += 3 * (label == "skip")
    np.savez(
        tmp_path / "d.npz",
        x=x[:60],
        label=label[:60].astype(str),
        test_x=x[60:],
        test_label=label[60:].astype(str),
    )
    data, out = ("--data", tmp_path / "d.npz"), tmp_path / "p.csv"
    assert main(words("train", *data, "--epochs", 3, "--log", tmp_path / "log.csv")) == 0
    capsys.readouterr()
    assert main(words("predict", *data, "--test", "--out", out)) == 0
    printed = capsys.readouterr().out.splitlines()
    found = rows(out)
    assert list(found[0]) == [*(f"scores.{n}" for n in ("run", "sit", "skip", "3", "class")), "label"]
    assert [r["label"] for r in found] == label[60:].tolist()
    right = sum(r["scores.class"] == r["label"] for r in found)
    assert (
        printed[1] == "note: the classes count as 0 run, 1 sit, 2 skip, of 4; --classes gives another order"
    )
    assert printed[2] == f"accuracy {100 * right / 30:.2f} %, {right} of 30"
    assert float(rows(tmp_path / "log.csv")[-1]["accuracy"]) == pytest.approx(right / 30, abs=1e-6)
    assert printed[-1].split() == ["3", "0", "0", "0", "0", "-"]
    names = "run,sit,skip,fall"
    assert main(words("predict", *data, "--test", "--classes", names, "--out", tmp_path / "p.npz")) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["fall", "0", "0", "0", "0", "-"]
    assert np.load(tmp_path / "p.npz")["label"].tolist() == label[60:].tolist()
    assert main(words("predict", *data, "--classes", f"{names},fly")) == 1
    assert "label has 5 words" in capsys.readouterr().err


def test_a_recording_is_classified(words, tmp_path, capsys):
    """Of one channel, without labels; windows overlap."""
    values = np.random.default_rng(6).normal(size=50).astype(np.float32)
    (tmp_path / "r.csv").write_text("volts\n" + "".join(f"{v:.9g}\n" for v in values))
    cut = np.stack([values[k : k + 20] for k in range(0, 31, 10)])
    np.save(tmp_path / "x.npy", cut)
    outputs = []
    for data in (("r.csv", "--window", 20, "--stride", 10), (".",)):
        more = ("--data", tmp_path / data[0], *data[1:], "--classes", "a,b,c,d")
        assert main(words("predict", *more)) == 0
        said = capsys.readouterr()
        outputs.append(said.out.splitlines())
        assert ("windows: 4 of 20 rows, one every 10 rows\nhighest score: " in said.err) == ("r.csv" in data)
    assert outputs[0] == outputs[1] and len(outputs[0]) == 5
    assert {line.split(",")[-1] for line in outputs[0][1:]} <= set("abcd")


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
    assert BatchPlan(10, 4, 1).per_epoch == 3
    assert BatchPlan(9, 4, 2, least=2).per_epoch == 2
    assert [len(rows) for _, _, rows in BatchPlan(10, 4, 1).batches(0)] == [4, 4, 2]
    steps = [(s, e) for s, e, _ in BatchPlan(10, 4, 2).batches(2)]
    assert steps == [(2, 0), (3, 1), (4, 1), (5, 1)]
    first, second = BatchPlan(10, 10, 2, shuffle=1).batches(0)
    assert sorted(first[2]) == sorted(second[2]) == list(range(10)) and list(first[2]) != list(second[2])
