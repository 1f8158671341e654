"""The LeNet example: it learns as PyTorch's does, with the same bits on the host and on an emulated Cortex-M4F."""

import re

import numpy as np
import pytest
from firmware_build import copy_of_the_project, once, run, scons

from autodiff_gen import datasets
from autodiff_gen.datasets import samples
from autodiff_gen.model.loader import load_file

EPOCH = re.compile(r"^ +(\d+) +(\d+\.\d{6}) +(\d+\.\d\d) % +([\d,]+) +([0-9a-f]{8})$", re.MULTILINE)
pytestmark = [pytest.mark.qemu, pytest.mark.cc, pytest.mark.slow]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return once(tmp_path_factory, "tree", copy_of_the_project)


@pytest.fixture(scope="module")
def host(tree, tmp_path_factory):
    """The build folder for the host, and the output of a run over all digits."""

    def make(folder):
        (folder / "said").write_text(
            scons(tree, "board=host", "model=lenet", "kernels=ref", "run", timeout=300)
        )

    said = once(tmp_path_factory, "lenet-host", make) / "said"
    return tree / "build" / "host" / "lenet+kernels=ref", said.read_text()


def pytorchs(path):
    """(mean loss, percent right) of each epoch, as PyTorch trains on the digits of samples.bin."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    given = samples.read(path)
    x = torch.tensor(given.records[:, :784].astype(np.float32) / np.float32(255)).reshape(-1, 1, 28, 28)
    y = torch.tensor(given.records[:, 784].astype(np.int64))
    features = [
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
    head = [nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    net = nn.Sequential(*features, nn.Flatten(), *head)
    start = load_file("lenet").made.on_host().state_dict()
    net.load_state_dict({k: torch.tensor(v) for k, v in start.items()})
    update = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(given.epochs):
        losses = []
        for batch, labels in zip(x[: given.train].split(8), y[: given.train].split(8), strict=True):
            update.zero_grad()
            loss = nn.functional.cross_entropy(net(batch), labels)
            loss.backward()
            update.step()
            losses += [loss.item()] * len(labels)
        with torch.no_grad():
            right = (net(x[given.train :]).argmax(1) == y[given.train :]).double().mean().item()
        yield float(np.mean(losses)), 100 * right


@pytest.mark.torch
def test_it_learns_as_pytorchs_does(host, record_property):
    """The mean loss of the first epoch to 1e-4; after it roundings grow, and accuracy may differ by a point."""
    folder, said = host
    ours = EPOCH.findall(said)
    assert len(ours) == 2, said
    theirs = list(pytorchs(folder / "samples.bin"))
    for (epoch, loss, accuracy, *_), (their_loss, their_accuracy) in zip(ours, theirs, strict=True):
        line = f"epoch {epoch}: loss {loss}, PyTorch {their_loss:.6f}; "
        line += f"accuracy {accuracy}, PyTorch {their_accuracy:.2f}"
        print(line)
        record_property(f"epoch {epoch}", line)
        assert abs(float(accuracy) - their_accuracy) <= 1.0, line
    assert abs(float(ours[0][1]) - theirs[0][0]) <= 1e-4
    if samples.read(folder / "samples.bin").train == 8000:  # MNIST; scikit-learn's smaller set teaches less
        assert float(ours[1][2]) >= 95.0, said


def test_100_steps_have_the_same_bits_in_qemu(host, tree, tmp_path):
    board = "mps2_an386"
    scons(tree, f"board={board}", "model=lenet", "kernels=ref", "firmware")
    train = 800
    chosen, _ = datasets.load_digits().split(train, 80)
    few = samples.from_arrays(chosen.images, chosen.labels, train=train, epochs=1)
    samples.write(tmp_path / "samples.bin", few.to_bytes())
    said = {}
    for name, folder in (("host", host[0]), (board, tree / "build" / board / "lenet+kernels=ref")):
        (line,) = EPOCH.findall(run(name, folder / "firmware.elf", tmp_path, timeout=280))
        said[name] = line
    assert said["host"] == said[board]
    assert said["host"][3] == "100"
