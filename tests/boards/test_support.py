"""Bare-metal support in QEMU: every board boots, prints, exits with its code, and faults where it must."""

import os
import re
import select
import subprocess
import time
import zlib

import numpy as np
import pytest
from checkout import C
from firmware_build import support_objects

from autodiff_gen.datasets import samples
from autodiff_gen.targets import board, build_commands

pytestmark = pytest.mark.qemu
BOARDS = [name for name in board.names() if board.load(name).qemu is not None]
BOOT = C / "boot.c"
HELLO = "hello 12345678 0.33333"
WRITE, OVERFLOW, HEAP, UNDEFINED, STREAM, STACK, READ, LIBM, RANDOM = range(1, 10)


def link(b, folder, mode=0, *, address=0, console="auto", extra=()):
    elf = folder / f"boot{mode}.elf"
    compiler = [
        build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b, console=console),
        *build_commands.STRICT_FLAGS,
        *(f"-I{folder}" for folder in build_commands.include_dirs(b)),
    ]
    command = [
        *compiler,
        *("-g0", "-Wno-infinite-recursion", f"-DMODE={mode}", f"-DADDRESS={address:#x}u"),
        *map(str, (BOOT, *extra)),
        *support_objects(b, console),
        *("-o", str(elf)),
        *build_commands.link_flags(b, folder / "boot.map"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False), elf


def build(b, folder, mode=0, **options):
    done, elf = link(b, folder, mode, **options)
    assert done.returncode == 0, done.stderr
    return elf


def run(b, elf):
    done = subprocess.run(
        ["timeout", "60", *build_commands.qemu_argv(b, elf)],
        cwd=elf.parent, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 124, f"did not end: {done.stdout}"
    return done.returncode, done.stdout, done.stderr


def run_until(b, elf, end, *, semihosting, seconds=30):
    """Run until the text `end` comes, look on for a moment, then stop. Returns the text and whether QEMU still ran."""
    argv = ["timeout", "60", *build_commands.qemu_argv(b, elf, semihosting=semihosting)]
    text = ""
    with subprocess.Popen(
        argv, cwd=elf.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        limit = time.monotonic() + seconds
        while end not in text and time.monotonic() < limit:
            if select.select([process.stdout], [], [], 0.1)[0]:
                part = os.read(process.stdout.fileno(), 4096).decode()
                if not part:
                    break
                text = (text + part).replace("\r\n", "\n")
        time.sleep(0.3)
        alive = process.poll() is None
        process.terminate()
    return text, alive


@pytest.mark.parametrize("name", BOARDS)
def test_boots_prints_and_exits(name, tmp_path):
    b = board.load(name)
    assert run(b, build(b, tmp_path)) == (7, f"{HELLO}\nend\n", "")


@pytest.mark.parametrize("flag", ["-flto", "-fstack-protector-strong"])
def test_support_works_under_flags_of_other_projects(flag, tmp_path):
    """All of the firmware is compiled with them: code that only assembly names remains, and nothing needs a heap."""
    b, elf = board.load("mps2_an386"), tmp_path / "boot.elf"
    command = [
        build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b),
        *build_commands.STRICT_FLAGS,
        *("-g0", flag),
        *(f"-I{folder}" for folder in build_commands.include_dirs(b)),
        *map(str, (BOOT, *build_commands.support_sources(b))),
        *("-o", str(elf)),
        *build_commands.link_flags(b),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert run(b, elf) == (7, f"{HELLO}\nend\n", "")


@pytest.mark.parametrize("name", BOARDS)
def test_faults_print_and_exit(name, tmp_path):
    b = board.load(name)
    elf = build(b, tmp_path, UNDEFINED)
    code, said, _ = run(b, elf)
    place = re.search(r"fault: undefined instruction, pc 0x([0-9a-f]{8})", said)
    assert code == 70 and place and "end" not in said, said
    listing = subprocess.run(
        [build_commands.tool(b, "objdump"), "-d", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(rf"^ *{place[1].lstrip('0') or '0'}:\s.*\sudf\s", listing, re.MULTILINE), place[0]


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("where", ["end", "end + 4096", "start - 4", "start - 4096"])
def test_writes_outside_the_ram_fault(name, where, tmp_path):
    """QEMU's machines have memory after some boards' RAM: the guard, not the emulator, must stop the write."""
    b = board.load(name)
    ram = b.region("ram")
    address = eval(where, {"start": ram.origin, "end": ram.end})
    code, said, _ = run(b, build(b, tmp_path, WRITE, address=address))
    side = "above the board's RAM" if address >= ram.end else "under the stack"
    assert code == 70 and f"memory protection at address 0x{address:08x}, {side}" in said, said


@pytest.mark.parametrize("name", BOARDS)
def test_the_rams_ends_are_usable(name, tmp_path):
    b = board.load(name)
    ram = b.region("ram")
    for address in (ram.origin, ram.end - 4):
        assert run(b, build(b, tmp_path, WRITE, address=address))[0] == 7


def test_reads_above_stm32s_ram_fault(tmp_path):
    b = board.load("stm32")
    assert run(b, build(b, tmp_path, READ, address=b.region("ram").end))[0] == 70


@pytest.mark.parametrize("name", BOARDS)
def test_stack_overflow_is_reported(name, tmp_path):
    b = board.load(name)
    code, said, _ = run(b, build(b, tmp_path, OVERFLOW))
    assert code == 70 and said.startswith(HELLO) and "stack" in said.split("fault:")[1], said


@pytest.mark.parametrize("name", BOARDS)
def test_stack_high_water_mark(name, tmp_path):
    b = board.load(name)
    elf = build(b, tmp_path, STACK)
    before, after, reserve, ram, flash = map(int, run(b, elf)[1].splitlines()[1].split())
    assert before > 0
    assert (
        30 * 100 - before <= after - before <= 30 * 180
    )  # thirty frames of 100 bytes and what goes with each
    assert reserve == b.stack_bytes
    size = subprocess.run(
        [build_commands.tool(b, "size"), "-A", str(elf)], capture_output=True, text=True, check=True
    ).stdout
    rows = [row.split() for row in size.splitlines() if row.startswith(".")]
    sections = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    last = max(sections, key=lambda s: sections[s][1] * (s in (".stack", ".data", ".bss", ".tables")))
    assert ram == sum(sections[last]) - b.region("ram").origin
    whole = [sections.get(s, (0, 0))[0] for s in (".vectors", ".kernels", ".text", ".ARM.exidx", ".data")]
    assert 0 <= flash - sum(whole) < 600


@pytest.mark.parametrize("name", BOARDS)
def test_without_semihosting_text_goes_to_the_uart(name, tmp_path):
    """Nobody serves calls: the probe's trap is answered by the fault handler, the program parks at its end."""
    b = board.load(name)
    text, alive = run_until(b, build(b, tmp_path), "exit 7\n", semihosting=False)
    assert text == f"{HELLO}\nend\nexit 7\n" and alive


@pytest.mark.parametrize("name", BOARDS)
def test_fault_without_semihosting_parks(name, tmp_path):
    b = board.load(name)
    elf = build(b, tmp_path, WRITE, address=b.region("ram").end)
    text, alive = run_until(b, elf, "exit 70\n", semihosting=False)
    assert "fault: memory protection" in text and text.endswith("exit 70\n") and alive


def test_console_uart_never_asks_for_semihosting(tmp_path):
    b = board.load("stm32")
    text, alive = run_until(b, build(b, tmp_path, console="uart"), "exit 7\n", semihosting=True)
    assert text == f"{HELLO}\nend\nexit 7\n" and alive


def test_console_semihosting(tmp_path):
    b = board.load("stm32")
    assert run(b, build(b, tmp_path, console="semihosting"))[:2] == (7, f"{HELLO}\nend\n")


@pytest.mark.parametrize("name", BOARDS)
def test_malloc_does_not_link(name, tmp_path):
    done, elf = link(board.load(name), tmp_path, HEAP)
    assert done.returncode != 0 and "__no_heap_on_the_board" in done.stderr and not elf.exists()


@pytest.mark.parametrize("name", BOARDS)
def test_errno_of_libm_brings_no_state_of_stdio(name, tmp_path):
    """1 KB of RAM, and malloc since newlib 4.5."""
    b = board.load(name)
    elf = build(b, tmp_path, LIBM)
    assert run(b, elf) == (7, f"{HELLO}\nend\n", "")
    words = [build_commands.tool(b, "nm"), str(elf)]
    symbols = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert "powf" in symbols and not {"_impure_ptr", "_impure_data", "__sf"} & set(symbols)


@pytest.mark.parametrize("name", ["stm32", "mps2_an505"])
def test_what_does_not_fit_does_not_link(name, tmp_path):
    """RAM: all but the stack's reserve may be filled; 128 bytes more than that may not."""
    b = board.load(name)
    for spare, fits in ((2048, True), (-128, False)):
        (tmp_path / "big.c").write_text(
            f"char big[{b.ram_bytes - spare}]; int touch(void); int touch(void) {{ return big[1]; }}\n"
            "__attribute__((constructor)) static void use(void) { (void)*(volatile char *)big; }\n"
        )
        done, _ = link(b, tmp_path, extra=[tmp_path / "big.c"])
        assert (done.returncode == 0) == fits, done.stderr
    assert "overflowed" in done.stderr


def sample_set():
    images = np.arange(20 * 30, dtype=np.uint16).astype(np.uint8).reshape(20, 5, 6)
    return samples.from_arrays(images, np.arange(20, dtype=np.uint8), train=15, epochs=1)


@pytest.mark.parametrize("name", BOARDS)
def test_samples_stream_from_the_working_folder(name, tmp_path):
    b, s = board.load(name), sample_set()
    samples.write(tmp_path / "samples.bin", s.to_bytes())
    crc = zlib.crc32(s.records.tobytes())
    code, said, _ = run(b, build(b, tmp_path, STREAM))
    assert code == 7 and f"records {crc:08x} header {crc:08x} second 30\n" in said, said


def test_without_samples_it_says_so(tmp_path):
    code, said, _ = run(board.load("stm32"), build(board.load("stm32"), tmp_path, STREAM))
    assert code == 1 and "samples.bin is not in the working folder" in said


def test_samples_from_flash_without_semihosting(tmp_path):
    b, s = board.load("stm32"), sample_set()
    (tmp_path / "set.c").write_text(samples.to_c(s))
    text, _ = run_until(
        b, build(b, tmp_path, STREAM, extra=[tmp_path / "set.c"]), "exit 7\n", semihosting=False
    )
    assert f"records {zlib.crc32(s.records.tobytes()):08x} " in text


def test_a_file_does_not_replace_a_generator_that_fails(tmp_path):
    """entropy.bin is for chips without a generator, as in emulators."""
    b, failing = board.load("mps2_an386"), tmp_path / "random.c"
    failing.write_text(
        '#include "ag_machine.h"\n'
        "int ag_machine_random(void *data, uint32_t bytes) { (void)data; (void)bytes; return -1; }\n"
    )
    (tmp_path / "entropy.bin").write_bytes(b"abcdef")
    for extra, numbers in (([], "0 64636261"), ([failing], "-1 00000000")):
        assert f"\n{numbers}\n" in run(b, build(b, tmp_path, RANDOM, extra=extra))[1]


def test_no_path_of_the_host_in_what_is_flashed(tmp_path):
    """Samples are opened relative to the emulator's folder; debug information stays in the ELF file."""
    b = board.load("stm32")
    binary = tmp_path / "boot.bin"
    elf = build(b, tmp_path, STREAM)
    subprocess.run([build_commands.tool(b, "objcopy"), "-O", "binary", str(elf), str(binary)], check=True)
    data = binary.read_bytes()
    assert b"samples.bin" in data and str(tmp_path).encode() not in data and b"/boards" not in data
    assert len(data) < 16384
