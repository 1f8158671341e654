"""The digits example as a user builds it: its files, its share of the chip, how it learns, on which boards."""

import json
import re
import struct
import sys
import zlib

import numpy as np
import pytest
from checkout import ROOT
from example_output import check_result, check_sizes, sizes
from firmware_build import boards, call, copy_of_the_project, once, run, scons, sections, symbols
from fresh_clone import fresh_clone

from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board, size

HEAP = {
    "_sbrk",
    "sbrk",
    "_sbrk_r",
    "malloc",
    "_malloc_r",
    "free",
    "_free_r",
    "calloc",
    "realloc",
    "__no_heap_on_the_board",
}
EPOCH = re.compile(r"^ +(\d+) +(\d+\.\d{6}) +(\d+\.\d\d) % +([\d,]+) +([0-9a-f]{8})$", re.MULTILINE)
USED = re.compile(r"^(flash|RAM|stack) +([\d,]+) of +([\d,]+) bytes", re.MULTILINE)
OUTPUTS = (
    "mnist.h",
    "mnist.c",
    "mnist_params.c",
    "firmware.elf",
    "firmware.bin",
    "firmware.hex",
    "firmware.map",
)
pytestmark = [pytest.mark.qemu, pytest.mark.slow]


def number(text):
    return int(text.replace(",", ""))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the project, for the builds of all boards."""
    return once(tmp_path_factory, "tree", copy_of_the_project)


@pytest.fixture(scope="module")
def stm32(tmp_path_factory):
    """The build folder of the default board after one run over all digits; `said` is the run's output."""
    clone, said = fresh_clone(tmp_path_factory)
    return clone / "build" / "stm32" / "mnist", said


def samples(path):
    """Digits uint8[n, 784], labels uint8[n], the number to train on, epochs; only ag_samples.h gives the layout."""
    data = path.read_bytes()
    _, header, record, *_, train, test, epochs = struct.unpack_from("<8I", data, 4)
    records = np.frombuffer(data, np.uint8, offset=header).reshape(train + test, record)
    return records[:, :784], records[:, 784], train, epochs


@pytest.fixture(scope="module")
def pytorch(stm32, tmp_path_factory):
    """(loss, percent right, checksum of the digits as they were fed) per epoch: PyTorch's own run over samples.bin."""
    path = stm32[0] / "samples.bin"
    folder = once(
        tmp_path_factory, "mnist-pytorch", lambda f: (f / "epochs").write_text(json.dumps(train(path)))
    )
    return json.loads((folder / "epochs").read_text())


def train(path):
    import torch

    torch.set_num_threads(1)
    digits, labels, count, epochs = samples(path)
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 32, bias=False),
        torch.nn.Sigmoid(),
        torch.nn.Linear(32, 10, bias=False),
        torch.nn.LogSoftmax(dim=1),
    )
    start = {s.name: torch.tensor(s.init.array()) for s in load_model("mnist")[0].states}
    net.load_state_dict(start)
    update = torch.optim.SGD(net.parameters(), lr=0.01)
    images = torch.tensor(digits, dtype=torch.float32) / 255
    targets = torch.tensor(labels, dtype=torch.int64)
    results = []
    for _ in range(epochs):
        crc, losses = 0, []
        for i in range(count):
            crc = zlib.crc32(digits[i].tobytes() + labels[i : i + 1].tobytes(), crc)
            update.zero_grad()
            loss = torch.nn.functional.nll_loss(net(images[i : i + 1]), targets[i : i + 1])
            loss.backward()
            update.step()
            losses.append(loss.item())
        with torch.no_grad():
            right = (net(images[count:]).argmax(1) == targets[count:]).double().mean().item()
        results.append((float(np.mean(losses)), 100 * right, f"{crc:08x}"))
    return results


@pytest.mark.torch
def test_epochs_on_stm32_equal_pytorchs(stm32, pytorch, record_property):
    """Loss within 0.001 and accuracy within 0.2 points, or one digit of a smaller set, on digits in the same order."""
    folder, said = stm32
    _, labels, count, epochs = samples(folder / "samples.bin")
    tests = len(labels) - count
    ours = EPOCH.findall(said)
    assert [int(e) for e, *_ in ours] == list(range(1, epochs + 1)), said
    assert (epochs, count, tests) == (3, 8000, 2000) or count + tests < 10000
    for (epoch, loss, accuracy, steps, crc), (their_loss, their_accuracy, their_crc) in zip(
        ours, pytorch, strict=True
    ):
        line = (
            f"epoch {epoch}: loss {loss}, PyTorch {their_loss:.6f}; accuracy {accuracy}, PyTorch {their_accuracy:.2f}; "
            f"order {crc}, PyTorch {their_crc}"
        )
        print(line)
        record_property(f"epoch {epoch}", line)
        assert crc == their_crc, line
        assert number(steps) == int(epoch) * count
        assert abs(float(loss) - their_loss) <= 1e-3, line
        assert abs(float(accuracy) - their_accuracy) <= max(0.2, 100 / tests) + 0.005, line


def test_it_learns(stm32):
    """Two programs could agree on nothing learned."""
    losses, accuracies = zip(*[(float(e[1]), float(e[2])) for e in EPOCH.findall(stm32[1])], strict=True)
    assert losses[0] > losses[1] > losses[2] and losses[2] < 1.0
    assert accuracies[2] > 75


def test_all_named_files_are_made(stm32):
    folder, _ = stm32
    assert [name for name in OUTPUTS if not (folder / name).stat().st_size] == []
    flash = board.load("stm32").region("flash")
    binary = (folder / "firmware.bin").read_bytes()
    stack, reset = struct.unpack_from("<2I", binary)
    assert stack == symbols(folder / "firmware.elf")["__stack_top"][0]
    assert flash.origin < reset < flash.origin + len(binary)
    assert intel_hex(folder / "firmware.hex") == (flash.origin, binary)


def intel_hex(path):
    """First address and bytes of an Intel HEX file, zeros in its gaps; its checksums are looked at."""
    base, pieces = 0, {}
    for line in path.read_text().split():
        row = bytes.fromhex(line[1:])
        assert line[0] == ":" and sum(row) % 256 == 0
        count, offset, kind = row[0], int.from_bytes(row[1:3], "big"), row[3]
        if kind == 4:
            base = int.from_bytes(row[4:6], "big") << 16
        elif kind == 0:
            pieces[base + offset] = row[4 : 4 + count]
    start = min(pieces)
    data = bytearray(max(at + len(piece) for at, piece in pieces.items()) - start)
    for at, piece in pieces.items():
        data[at - start : at - start + len(piece)] = piece
    return start, bytes(data)


def test_the_trainer_takes_at_most_102400_bytes(stm32, record_property):
    """The variable in the linked program, not the plan: parameters and arena, the input outside."""
    address, size = symbols(stm32[0] / "firmware.elf")["trainer"]
    print(f"sizeof(mnist_trainer) = {size}")
    record_property("sizeof(mnist_trainer)", size)
    assert address >= 0x20000000
    assert 101_632 < size <= 102_400
    header = (stm32[0] / "mnist.h").read_text()
    assert f"#define MNIST_TRAINER_BYTES {size}u" in header


def test_the_firmware_fits_the_chips_128_kb(stm32, record_property):
    """Everything that the linker has placed, with the stack's reserve of 8 KB, and the firmware's own count."""
    folder, said = stm32
    parts = {k: v for k, v in sections(folder / "firmware.elf").items() if v[0] >= 0x20000000}
    assert all(address + size <= 0x20000000 + 131_072 for address, size in parts.values()), parts
    assert parts[".stack"] == (0x20000000, 8192)
    end = max(address + size for address, size in parts.values()) - 0x20000000
    assert re.search(r"^RAM +0x0*20000000 +0x0*20000 ", (folder / "firmware.map").read_text(), re.MULTILINE)
    used = {name: (number(a), number(b)) for name, a, b in USED.findall(said)}
    flash, ram = size.usage(board.load("stm32"), folder / "firmware.elf")
    assert used["RAM"] == (end, 131_072) == (ram.used, ram.size)
    assert used["flash"][1] == 1_048_576
    assert 0 <= flash.used - used["flash"][0] < 8
    assert len((folder / "firmware.bin").read_bytes()) == flash.used
    print(f"RAM {end} of 131072 bytes, flash {flash.used}")
    record_property("RAM", end)
    record_property("flash", flash.used)


def test_the_stack_stays_in_its_reserve(stm32, record_property):
    used, reserve = next((number(a), number(b)) for name, a, b in USED.findall(stm32[1]) if name == "stack")
    print(f"stack {used} of {reserve} bytes")
    record_property("stack", used)
    assert 0 < used <= 8192 == reserve


def test_the_documents_show_the_memory_that_was_used(stm32, pytestconfig):
    """The README of the example, and the results of the project's."""
    check_sizes("mnist", stm32[1], pytestconfig)
    check_result("flash and RAM of the whole firmware", sizes(stm32[1]), pytestconfig)


def test_there_is_no_heap(stm32):
    assert not HEAP & symbols(stm32[0] / "firmware.elf").keys()


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A folder with 200 digits to train on and 50 to test on, twice over."""

    def make(folder):
        words = ["--train", "200", "--test", "50", "--epochs", "2"]
        script = str(ROOT / "examples" / "mnist" / "data.py")
        code = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path({script!r}, run_name='__main__')"
        call([sys.executable, "-c", code, "--out", str(folder / "samples.bin"), *words], folder, 100)

    return once(tmp_path_factory, "few", make)


def few_epochs(factory, tree, few, name):
    """The lines of both epochs on a board with `ref` kernels, and the first line."""

    def make(folder):
        scons(tree, f"board={name}", "model=mnist", "kernels=ref")
        program = tree / "build" / name / "mnist+kernels=ref" / "firmware.elf"
        (folder / "said").write_text(run(name, program, few))

    said = (once(factory, f"few-{name}", make) / "said").read_text()
    return said.splitlines()[0], EPOCH.findall(said)


@pytest.mark.cc
@pytest.mark.parametrize("name", boards())
def test_every_board_trains_with_the_hosts_bits(name, tree, few, tmp_path_factory):
    title, ours = few_epochs(tmp_path_factory, tree, few, name)
    _, host = few_epochs(tmp_path_factory, tree, few, "host")
    print(*ours, sep="\n")
    assert title.startswith(f"mnist on {name}: 200 digits to train, 50 to test")
    assert len(host) == 2 and host[0][1] > host[1][1]
    assert ours == host
