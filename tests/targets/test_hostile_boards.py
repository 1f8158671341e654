"""A board file chooses compilers and options, and nothing else; anything beyond needs --trust-board."""

from __future__ import annotations

import os

import hostile_boards
import pytest

from autodiff_gen.cli.main import main
from autodiff_gen.errors import AutodiffError, BoardError, KernelError
from autodiff_gen.kernels import registry
from autodiff_gen.targets import allowed, board
from autodiff_gen.targets.toml_file import read_toml


def test_every_hostile_value_is_rejected_unless_the_file_is_trusted(tmp_path):
    path = tmp_path / "evil.toml"
    accepted = []
    for key, value, text in hostile_boards.files():
        path.write_text(text)
        try:
            board.load(str(path))
            accepted.append((key, value))
        except BoardError as error:
            said = str(error)
            assert said.startswith(f"{path}: ") and "\n" not in said and len(said) < 400, said
            if "control character" not in said and "must " not in said:
                assert key.split(".")[0] in said and "--trust-board (./scons: trust_board=yes)" in said, said
    assert accepted == []
    assert registry.available()  # which reads every table of the tree without trust
    path.write_text('schema=1\nname="mine"\ninherits="host"\n[target]\ncflags=["-I/tmp", "-DX=a b"]\n')
    assert board.load(str(path), trusted=True).target.cflags == ("-I/tmp", "-DX=a b")


ALLOWED = {
    allowed.compiler_options: """
        -O3 -Og -march=rv32imac_zicsr -mabi=ilp32 -mcpu=cortex-m55+nomve -mno-outline-atomics -fno-math-errno -flto=auto
        -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off -DSTM32F405xx -DHSE_VALUE=8000000UL
        -U_FORTIFY_SOURCE -std=gnu11 -Wall -Wno-unused -Wframe-larger-than=256 -g3 -Wa,-mimplicit-it=thumb -fopenmp-simd
        -fuse-ld=gold --specs=nano.specs -fshort-enums --param=min-pagesize=0 -pipe
    """,
    allowed.linker_options: """
        -lm -lgcc -static -no-pie -nolibc -nostartfiles -u_printf_float -Wl,--defsym=__x=0x4000,--defsym=__y=8K -O2
        -Wl,--build-id=none -Wl,--gc-sections -Wl,-z,max-page-size=4096 -Wl,--no-warn-rwx-segments -Wl,-u,_printf_float
    """,
}


def test_usual_options_are_allowed():
    for rule, words in ALLOWED.items():
        assert rule(words.split()) is None
    assert allowed.linker_options(["-u", "_printf_float", "-lm"]) is None
    more = {
        "qemu": {
            "machine": "virt,gic-version=3",
            "cpu": "max,sve=off",
            "args": ["-nic", "none", "-m", "128M", "-smp", "2"],
        },
        "upload": {"openocd": ["-f", "board/st_nucleo_g4.cfg", "-c", "adapter speed 4000", "-d2"]},
        "toolchain": {"prefix": "riscv64-unknown-elf-", "packages": ["gcc-riscv64-unknown-elf", "g++-12"]},
        "platformio": {"platform": "ststm32 @ ^17.0.0", "board": "nucleo_f446re", "framework": "zephyr"},
    }
    allowed.check_allowed(more, board.boards_dir())


def test_files_outside_of_the_folder_need_trust(tmp_path):
    outside, own = tmp_path / "outside", tmp_path / "project"
    for folder in (outside, own, own / "chip"):
        folder.mkdir()
    path, secret = own / "mine.toml", outside / "secret.c"
    path.write_text('schema=1\nname="mine"\ninherits="stm32"\n[target]\nsupport="./chip"\n')
    assert board.load(str(path)).target.support == own / "chip"
    secret.write_text("int secret;\n")
    (own / "chip" / "machine.c").symlink_to(secret)
    with pytest.raises(BoardError, match=r"target\.support: .*machine\.c' outside of .*--trust-board"):
        board.load(str(path))
    board.load(str(path), trusted=True)
    (own / "chip" / "machine.c").unlink()
    os.mkfifo(own / "chip" / "machine.c")
    with pytest.raises(BoardError, match=r"machine\.c is a pipe; give a regular file"):
        board.load(str(path), trusted=True)


KERNEL = '[[kernel]]\nname = "ger_f32"\nsymbol = "ag_ger_f32_mine"\nsource = "{}"\n'
TABLES = [
    # a kernel table, the message
    ('cflags = ["-fplugin=/tmp/x.so"]\nkernel = []', "cflags: '-fplugin=/tmp/x.so' needs a file that you trust"),
    ('ldflags = ["-L/tmp"]\npackages = ["x"]\nkernel = []', "ldflags: '-L/tmp' needs"),
    ('headers = ["-fplugin=x"]\npackages = ["x"]\nkernel = []', "headers: '-fplugin=x' needs"),
    ("kernel = []\n[external]\nname = 'x'", "external: a section needs"),
    (KERNEL.format("../x.c"), "is outside of its kernel folder"),
    (KERNEL.format("x.c") + 'when = ["' + "1 + " * 2000 + 'm == 1"]', "has more than 300 characters"),
    ("kernel = []\n[[function]]\nname='ag_expf'\nsymbol='x(){system();}'\nheader='x.h'\nerror='0'", "symbol must be"),
    ("kernel = []\n[[function]]\nname='ag_expf'\nsymbol='x'\nheader='../x.h'\nerror='0'", "header must be of the form"),
    ("kernel = []\n[[function]]\nname='ag_expf'\nsymbol='x'\nheader='x.h'\nerror='*/ x'", "error must be of the form"),
]  # fmt: skip


def test_kernel_tables(tmp_path, subtests):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "x.c").write_text("void ag_ger_f32_mine(void);\n")
    (folder / "x.h").write_text("float x(float);\n")
    for text, message in TABLES:
        (folder / "kernels.toml").write_text(f"schema = 1\n{text}\n")
        with subtests.test(message), pytest.raises(KernelError) as caught:
            registry.for_board(board.load("host"), [str(folder)])
        assert (
            message in str(caught.value) and str(folder) in str(caught.value) and len(str(caught.value)) < 400
        )


DOTS = ".".join("a" * 100_000)
FILES = [
    # the text of a TOML file, the message
    (f"{DOTS} = 1", "a key has more than 8 parts"),
    (f"[{DOTS}]", "a key has more than 8 parts"),
    ("a = { " * 20_000, "brackets are nested too deeply"),
    ("a = 0x" + "f" * 100_000, "Exceeds the limit of 4,300 digits"),
    ("a = 1" + " " * 300_000, "300,005 bytes of TOML, the limit is 262,144"),
    ("[a.b]\n[a.b]", "Cannot declare a.b twice (at line 2"),
    ("x" * 200_000 + " = = 1", "not valid TOML"),
    ('"' * 200_000, "not valid TOML"),
]


def test_files_that_take_memory_or_time(tmp_path, subtests, monkeypatch):
    monkeypatch.delenv("AUTODIFF_LIMITS", raising=False)
    path = tmp_path / "evil.toml"
    for text, message in FILES:
        path.write_text(text)
        with subtests.test(message), pytest.raises(BoardError) as caught:
            read_toml(path, BoardError)
        assert (
            message in str(caught.value) and str(path) in str(caught.value) and len(str(caught.value)) < 400
        )
    path.unlink()
    os.mkfifo(path)
    for place, message in (
        (path, "is a pipe"),
        (tmp_path / "zero.toml", "is a device"),
        (tmp_path / "d.toml", "a folder"),
    ):
        if "device" in message:
            place.symlink_to("/dev/zero")
        elif "folder" in message:
            place.mkdir()
        with subtests.test(message), pytest.raises(AutodiffError, match=f"{message}; give a regular file"):
            board.load(str(place))


NAMES = [
    # a line of a board file, the message
    ('name = "x */ int y; /*"', "name must be at most 100 letters"),
    ('name = "x\\ny"', "name must be at most 100 letters"),
    ('name = "x $(shell touch y)"', "name must be at most 100 letters"),
    (f'inherits = "{"x" * 300}"', "inherits must have at most 200 characters"),
    ('inherits = "x\\u0000"', "has a control character"),
    ('[memory."x */ y"]\norigin = 0\nbytes = 64', "the name 'memory.x */ y' must be letters"),
    ('[kernels]\nbackends = ["./a\\u0000"]', "has a control character"),
    ("schema = 2020-01-01", "schema must be an integer, got 2020-01-01"),
    ("[target]\nfeatures = [1, 2020-01-01, {a = 1}, true]", "got [1, 2020-01-01, a section, true]"),
]


def test_names_that_reach_generated_text(tmp_path, subtests):
    path = tmp_path / "evil.toml"
    for line, message in NAMES:
        head = {"schema": "schema = 1", "name": 'name = "x"', "inherits": 'inherits = "stm32"'}
        lines = [text for key, text in head.items() if not line.startswith(key)]
        path.write_text("\n".join([*lines, line]))
        with subtests.test(line), pytest.raises(BoardError) as caught:
            board.load(str(path))
        assert (
            message in str(caught.value) and str(path) in str(caught.value) and len(str(caught.value)) < 400
        )


def test_a_chain_of_many_files(tmp_path):
    for k in range(20):
        (tmp_path / f"b{k}.toml").write_text(f'schema = 1\ninherits = "b{k + 1}"\n')
    with pytest.raises(BoardError, match=r"b16\.toml: inherits 'b17': a board has at most 16 files below"):
        board.load(str(tmp_path / "b0.toml"))


def test_the_commands_have_the_option(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('schema=1\nname="mine"\ninherits="host"\n[target]\ncflags=["-I/tmp"]\n')
    command = ["build", "examples/scalar/model.py", "--board", str(path), "--out", str(tmp_path / "out")]
    assert main(command) == 1
    assert "target.cflags: '-I/tmp' needs a file that you trust" in capsys.readouterr().err
    assert main([*command, "--trust-board"]) == 0
