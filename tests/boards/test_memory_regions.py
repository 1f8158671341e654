"""Trainers in two regions of memory: on emulated boards with the numbers of one region, and as the ELF has them."""

import struct
import zlib

import firmware_build
import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.report.collect import collect
from autodiff_gen.report.page import trainer
from autodiff_gen.report.symbols import memories
from autodiff_gen.targets import board
from autodiff_gen.targets.size import usage

STEPS = 3
F405 = (122_880, 65_536)  # its SRAM less the stack, and its CCM
pytestmark = [pytest.mark.cc, pytest.mark.qemu]


def model():
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(392, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip
    return ag.Model.supervised(
        net, input=(4, 1, 14, 14), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.001)
    )


def batch():
    random = np.random.default_rng(1)
    x = random.integers(0, 256, (4, 1, 14, 14)).astype(np.float32) / np.float32(256)
    return x, random.integers(0, 10, 4)


def build(name, sizes, folder):
    """The program and its ELF for a board, with the sizes of its first two regions."""
    b = board.load(name)
    main, further = (s.region for s in b.spaces[:2])
    program = compile_model(model(), "model", ["ref"], b, dict(zip((main, further), sizes, strict=True)))
    x, label = batch()
    floats, labels = (", ".join(map(str, a.reshape(-1).tolist())) for a in (x, label))
    texts = emit(program) | {
        "regions.h": f"#define RAM_STRUCT model_in_{main}\n#define FURTHER_STRUCT model_in_{further}\n"
        f"#define IN_FURTHER AG_REGION({further})\nenum {{ STEPS = {STEPS} }};\n"
        f"static const float x[] = {{{floats.replace(',', 'f,')}f}};\n"
        f"static const uint8_t label[] = {{{labels}}};\n"
    }
    for path, text in texts.items():
        (folder / path).write_text(text)
    tables = registry.load(["ref"], features=b.target.features)
    called = {k.source for k in program.kernels}
    kernels = [s.path for s in tables.sources() if s.path in called]
    own = [folder / "model.c", folder / "model_params.c", firmware_build.C / "regions.c"]
    elf = folder / "regions.elf"
    include = (folder, firmware_build.C)
    return program, firmware_build.program(b, tables, kernels, own, elf, cc=None, flags=(), include=include)


def check_elf(b, program, elf):
    """The structs are in their regions, with the bytes of the plan."""
    symbols, used = firmware_build.symbols(elf), {u.region: u.used for u in usage(b, elf)}
    main, further = program.regions
    assert [main.region, further.region] == [s.region for s in b.spaces[:2]]
    for r, variable, limit in zip(program.regions, ("near_by", "far_off"), F405, strict=True):
        address, size = symbols[variable]
        assert size == r.bytes <= limit
        assert b.memory[r.region].origin <= address <= b.memory[r.region].end - size
    assert symbols["trainer"][1] == program.handle_bytes
    report = collect(program, b, dict(zip((main.region, further.region), F405, strict=True)))
    found = {m.usage.region: s for m in memories(b, elf) if (s := trainer(m, report)) is not None}
    assert {region: s.name for region, s in found.items()} == {
        main.region: "near_by",
        further.region: "far_off",
    }
    assert used[further.region] == further.bytes
    assert used[main.region] >= b.stack_bytes + main.bytes
    assert program.struct_bytes == main.bytes + further.bytes + program.handle_bytes


def test_two_regions_train_as_one_does(tmp_path):
    """As much as the STM32F405 has, on a machine that emulates two regions; one region is too small."""
    name = "mps2_an386"
    program, elf = build(name, F405, tmp_path)
    check_elf(board.load(name), program, elf)
    assert program.struct_bytes > 150_000 > max(F405)
    said = [line.split(" ", 1) for line in firmware_build.run(name, elf, tmp_path).splitlines()]
    host = model().on_host()
    losses = [host.train_step(*batch()) for _ in range(STEPS)]
    host.save(tmp_path / "checkpoint")
    assert [t for k, t in said if k == "loss"] == [struct.pack(">f", loss).hex() for loss in losses]
    assert ["crc", f"{zlib.crc32((tmp_path / 'checkpoint').read_bytes()):08x}"] in said
    assert said[:4] == [
        ["unset", "a pointer is NULL"],
        ["null", "a pointer is NULL"],
        ["odd", "the memory of a region is not aligned to 4 bytes"],
        ["init", "ok"],
    ]


def test_the_stm32f405_has_the_structs_in_sram_and_ccm(tmp_path):
    check_elf(board.load("stm32_ccm"), *build("stm32_ccm", F405, tmp_path))
