"""Every board profile of the tree, and every way in which a board file can be wrong."""

import json
import re
import subprocess
import sys
import tomllib

import jsonschema
import pytest
from checkout import ROOT

from autodiff_gen.cli.main import main
from autodiff_gen.errors import BoardError, ToolError
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board, build_commands, schema

NAMES = board.names()
FURTHER = {  # regions of RAM that trainers may use after the main one
    "mps2_an386": ["psram"],
    "mps2_an500": ["sram"],
    "stm32_ccm": ["ccm"],
}

USER = """
schema = 1
name = "mine"
inherits = "arch/cortex_m4f"
[memory.flash]
kind = "flash"
origin = 0x08000000
bytes = 524288
[memory.sram]
origin = 0x20000000
bytes = 98304
[target]
support = "stm32f4"
"""


@pytest.fixture
def load(tmp_path):
    """Write a board file (and others beside it) and load it."""

    def write(text, trusted=False, **others):
        for name, other in others.items():
            (tmp_path / f"{name}.toml").write_text(other)
        (tmp_path / "mine.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
        return board.load(tmp_path / "mine.toml", trusted=trusted)

    return write


def test_the_boards_are_there():
    assert {"host", "stm32", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547"} <= set(
        NAMES
    )
    assert {"virt_a7", "virt_a53"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_profile_is_whole(name):
    b = board.load(name)
    assert b.id == name and b.path.stem == name and b.files[0] == b.path
    assert registry.load(b.kernels.backends, features=b.target.features).names[-1] == "ref"
    assert b.toolchain.packages and b.toolchain.probes
    assert build_commands.support_sources(b) and all(p.is_file() for p in build_commands.support_sources(b))
    assert all(folder.is_dir() for folder in build_commands.include_dirs(b))
    assert f"-DAG_BOARD={name}" in build_commands.compile_flags(b)
    if b.is_host:
        assert b.ram_bytes is None and b.qemu is None
    else:
        assert b.spaces[0].bytes == b.region("ram").bytes - b.stack_bytes > 0
        assert b.ram_bytes == sum(s.bytes for s in b.spaces)
        assert [s.region for s in b.spaces[1:]] == FURTHER.get(name, [])
        assert f"-mcpu={b.target.core}" in b.target.cflags
        aarch64 = b.toolchain.prefix.startswith("aarch64")  # which has no other calling convention
        assert ("fpu" in b.target.features) == (aarch64 or "-mfloat-abi=hard" in b.target.cflags)
        assert b.qemu is None or b.qemu.machine in build_commands.qemu_argv(b, "x.elf")
        arduino = b.target.support.name == b.platformio.get("framework") == "arduino"
        assert b.qemu is not None or arduino or name == "stm32_ccm"


@pytest.mark.parametrize("name", NAMES)
def test_probes_pass_here(name):
    for probe in board.load(name).toolchain.probes:
        assert subprocess.run(probe, capture_output=True, check=False).returncode == 0, probe


def test_stm32_is_the_real_chip():
    """DS8626: 1 MB of flash, 128 KB of contiguous SRAM."""
    b = board.load("stm32")
    assert (b.region("flash").origin, b.region("flash").bytes) == (0x08000000, 1 << 20)
    assert (b.region("ram").origin, b.region("ram").bytes, b.stack_bytes) == (0x20000000, 131072, 8192)
    assert b.ram_bytes == 122880


def test_a_board_cannot_be_changed():
    b = board.load("stm32")
    with pytest.raises(AttributeError):
        b.name = "other"
    with pytest.raises(TypeError):
        b.memory["sram"] = None


def test_board_needs_no_numpy():
    code = "import sys, autodiff_gen.targets.board as b; b.load('stm32'); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ones_own_board(load):
    b = load(USER)
    assert b.id == "mine" and b.ram_bytes == 98304 - 8192 and b.qemu is None
    assert [p.stem for p in b.files] == ["mine", "cortex_m4f", "cortex_m"]
    assert b.target.core == "cortex-m4" and b.target.support.name == "stm32f4"


def test_nearer_files_win_and_lists_are_replaced(load):
    b = load(
        'schema=1\ninherits="stm32"\nname="small"\n[memory.sram]\nbytes=65536\n[target]\nfeatures=["fpu"]\n'
    )
    assert b.region("ram").origin == 0x20000000 and b.region("ram").bytes == 65536
    assert b.target.features == ("fpu",) and b.name == "small" and b.qemu.machine == "netduinoplus2"


def test_ones_own_stm32_may_inherit_the_trees(tmp_path):
    path = tmp_path / "stm32.toml"
    path.write_text('schema=1\ninherits="stm32"\nstack_bytes=4096\n')
    assert board.load(path).stack_bytes == 4096


def test_the_page_on_boards_has_every_key_and_its_examples_load(load):
    page = (ROOT / "docs" / "boards.md").read_text()
    names = {re.sub(r"use\..*", "use.K", key.replace("memory.*", "memory.R")) for key in schema.known_keys()}
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(.*?)`", row)} == names
    similar, regions = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert [s.bytes for s in load(regions).spaces] == [131072 - 8192, 65536]
    b = load(similar)
    assert b.profile == "size" and b.ram_bytes == 114688 - 8192 and b.qemu.machine == "netduinoplus2"


def test_ones_own_support_folder_is_beside_the_file(load, tmp_path):
    (tmp_path / "my support").mkdir()
    assert load(USER.replace('"stm32f4"', '"./my support"')).target.support == tmp_path / "my support"


def test_kernels_of_ones_own_are_beside_the_file(load, tmp_path):
    text = '[kernels]\nbackends = ["./wide", "armv7em", "ref"]\n'
    text += '[kernels.use]\nger_f32 = "ref"\ngemv_f32 = ["../other/tall", "ref"]\n'
    kernels = load(USER + text).kernels
    assert kernels.backends == (str(tmp_path / "wide"), "armv7em", "ref")
    assert kernels.use == {"ger_f32": ("ref",), "gemv_f32": (str(tmp_path.parent / "other/tall"), "ref")}


def test_a_nearer_file_changes_one_kernel(load, tmp_path):
    (tmp_path / "base.toml").write_text(USER + '[kernels.use]\nger_f32 = "ref"\ngemv_f32 = "ref"\n')
    b = load('schema=1\ninherits="base"\n[kernels.use]\ngemv_f32 = "armv7em"\n')
    assert b.kernels.use == {"ger_f32": ("ref",), "gemv_f32": ("armv7em",)}


def test_platformio_is_copied_through(load):
    text = '[platformio]\nboard = "genericSTM32F405RG"\n[platformio.extra]\nanything = [1, 2]\n'
    assert load(USER + text, trusted=True).platformio == {
        "board": "genericSTM32F405RG",
        "extra": {"anything": [1, 2]},
    }


_FURTHER = "\n[memory.{}]\norigin = 0x10000000\nbytes = {}\ncost = 1\n"
BAD = [
    # the fault, the file, the message
    ("unknown key", USER + 'color = "red"', "unknown key 'target.color'"),
    ("near match", USER.replace("support", "suport"), "did you mean 'support'"),
    ("unknown section", USER + "[memry.x]\nbytes=1", "unknown key 'memry'; did you mean 'memory'"),
    ("key of a region", USER.replace("bytes = 98304", "size = 98304"), "unknown key 'memory.sram.size'"),
    ("string for integer", USER.replace("98304", '"96K"'), "memory.sram.bytes must be an integer, got '96K'"),
    ("bool for integer", USER.replace("98304", "true"), "memory.sram.bytes must be an integer"),
    ("float for integer", USER.replace("98304", "98304.0"), "memory.sram.bytes must be an integer"),
    ("integer for string", USER.replace('"mine"', "7"), "name must be a string"),
    ("empty name", USER.replace('"mine"', '""'), "name must be a string that is not empty"),
    ("string for list", USER + 'cflags = "-O2"', "target.cflags must be a list of strings"),
    ("numbers in a list", USER + "[kernels]\nbackends = [1]", "kernels.backends must be a list of strings"),
    ("unknown kernel", USER + "[kernels.use]\ngemv_f23 = 'ref'",
     "unknown key 'kernels.use.gemv_f23'; did you mean 'gemv_f32'?"),
    ("no backend for a kernel", USER + "[kernels.use]\ngemv_f32 = 1",
     "kernels.use.gemv_f32 must be a backend or a list of them, got 1"),
    ("an empty list for a kernel", USER + "[kernels.use]\ngemv_f32 = []", "must be a backend or a list of them"),
    ("value for section", USER.replace("[target]", "[qemu]\nmachine='x'\n[upload]\naddress='x'\n[target]"),
     "upload.address must be an integer"),
    ("section as value", "kernels = 3\n" + USER, "kernels must be a section [kernels]"),
    ("negative", USER.replace("98304", "-32"), "memory.sram.bytes must be from"),
    ("unknown kind", USER.replace('"flash"\norigin', '"flsh"\norigin'), "memory.flash.kind is not a known kind"),
    ("unknown core", USER + 'core = "cortex-m4f"', "target.core is not a known core; did you mean 'cortex-m4'"),
    ("unknown feature", USER + 'features = ["fpuu"]', "'fpuu', which is no core feature; did you mean 'fpu'"),
    ("no schema", USER.replace("schema = 1", ""), "schema is missing"),
    ("the old place of vectors", USER + "vectors = 8", "unknown key 'target.vectors'"),
    ("no lanes", USER + "[cost]\nvector = 0", "cost.vector must be from 1 to 1024, got 0"),
    ("unknown cost", USER + "[cost]\nloads = 1", "unknown key 'cost.loads'; did you mean 'load'?"),
    ("a cost in words", USER + '[cost]\nload = "1"', "cost.load must be a number, got '1'"),
    ("an address", USER.replace("0x20000000", "0x200000000"), "origin must be from 0x0 to 0xffffffff, got "),
    ("a cost below 0", USER + "[cost]\nmac = -1", "cost.mac must be from 0 to 1000000, got -1"),
    ("no kernel", USER + "[cost.gemm]\ncalls = 1", "unknown key 'cost.gemm.calls'; did you mean 'call'?"),
    ("a number for a kernel", USER + "[cost]\ngemm = 1", "cost.gemm must be a section [cost.gemm], got 1"),
    ("schema 2", USER.replace("schema = 1", "schema = 2"), "schema must be 1, got 2"),
    ("no name", USER.replace('name = "mine"', ""), "name is missing"),
    ("no target", 'schema=1\nname="x"\n', "missing section [target]"),
    ("no memory", USER[: USER.index("[memory.flash]")] + '[target]\nsupport="stm32f4"', "missing section [memory]"),
    ("no RAM", USER.replace('[memory.sram]\n', '[memory.sram]\nkind="flash"\n'), "no region of kind 'ram'"),
    ("no origin", USER.replace("origin = 0x20000000", ""), "memory.sram.origin is missing"),
    ("no core", 'schema=1\nname="x"\n[target]\nsupport="stm32f4"', "target.core is missing"),
    ("no machine", USER + '[qemu]\nargs = []', "qemu.machine is missing"),
    ("empty command", USER + '[toolchain]\nprobes = [[]]', "toolchain.probes must be a list of commands"),
    ("overlap", USER.replace("0x20000000", "0x08000000"), "memory.flash and memory.sram overlap"),
    ("above 4 GiB", USER.replace("0x20000000", "0xffff0000"), "memory.sram ends above 4 GiB"),
    ("states of a region without cost", USER + "[memory.ccm]\norigin=0x10000000\nbytes=64\nstates=['w']",
     "memory.ccm.states: trainers do not use the region"),
    ("stack too large", "stack_bytes = 98304\n" + USER, "stack_bytes is 98304, but memory.sram has 98304"),
    ("odd stack", "stack_bytes = 1001\n" + USER, "stack_bytes must be a multiple of 8"),
    ("unknown profile", 'profile = "fast"\n' + USER, "profile is not a known profile (known: size, speed)"),
    ("odd RAM", USER.replace("98304", "98305"), "multiples of 32"),
    ("odd further RAM", USER + _FURTHER.format("ccm", 65540), "memory.ccm: origin and bytes must be multiples of 8"),
    ("a region that C cannot name", USER + _FURTHER.format("c-c", 64), "memory.c-c: with a cost, the name must be one"),
    ("too many regions", USER + "".join(f"[memory.r{k}]\norigin = {k << 16}\nbytes = 64\ncost = 1\n" for k in range(4)),
     "4 regions of RAM after the first have a cost, at most 3 may: remove the cost of memory.r3"),
    ("no start-up folder", USER + 'startup = "cortex_a"', "target.startup names no folder of"),
    ("no support folder", USER.replace('"stm32f4"', '"stm32f5"'), "did you mean 'stm32f4'"),
    ("no parent", USER.replace("arch/cortex_m4f", "arch/cortex_m4"), "did you mean 'arch/cortex_m4f'"),
    ("not TOML", "schema = = 1", "not valid TOML"),
    ("key twice", USER + 'support = "mps2"', "not valid TOML"),
    ("nested deeply", "schema = " + "[" * 3000 + "]" * 3000, "not valid TOML: brackets are nested too deeply"),
    ("a long number", "schema = " + "1" * 5000, "not valid TOML: Exceeds the limit"),
    ("a long hexadecimal number", "schema = 0x" + "1" * 5000, "not valid TOML: Exceeds the limit"),
    ("a line in a key", USER + '["a\\nb"]', "unknown key 'a\\nb'"),
    ("a line in a section", USER + '[memory]\n"\\n" = 3', "memory.\\n must be a section [memory.\\n], got 3"),
    ("a long value", f'schema = "{"x" * 5000}"', "schema must be an integer, got 'xxxx"),
    ("not UTF-8", 'schema = 1\nname = "\udcff"', "byte 20 is not UTF-8: save the file in this encoding"),
]  # fmt: skip


def test_size_or_speed():
    assert board.load("stm32").profile == "speed"
    small = board.load("stm32", "size")
    assert "-Os" in build_commands.compile_flags(small) and build_commands.model_flags(small) == []
    with pytest.raises(BoardError, match=r"^profile=fast: must be speed or size$"):
        board.load("stm32", "fast")


def test_bad_file(load, subtests):
    for fault, text, message in BAD:
        with subtests.test(fault):
            with pytest.raises(BoardError) as caught:
                registry.for_board(load(text))  # which checks the kernels that a board names
            said = str(caught.value)
            assert message in said and "mine.toml" in said and "\n" not in said and len(said) < 4100


def test_a_file_that_begins_with_a_mark_of_the_byte_order(load):
    assert load("\ufeff" + USER).name == "mine"


def test_a_fault_names_the_file_that_has_it(load):
    with pytest.raises(BoardError, match=r"base\.toml: unknown key 'memory\.ram\.length'"):
        load('schema=1\ninherits="base"\nname="x"\n', base="schema=1\n[memory.ram]\nlength=3\n")


def test_a_file_that_inherits_itself(load):
    with pytest.raises(BoardError, match="inherits goes in a circle: mine -> mine"):
        load('schema=1\ninherits="mine"\n')


def test_circle(load):
    with pytest.raises(BoardError, match="inherits goes in a circle: mine -> a -> b -> mine"):
        load('schema=1\ninherits="a"\n', a='schema=1\ninherits="b"\n', b='schema=1\ninherits="mine"\n')


def test_unknown_board():
    with pytest.raises(
        BoardError,
        match=rf"unknown board 'stm23'; did you mean 'stm32'\? \(known: {', '.join(board.names())}\)",
    ):
        board.load("stm23")
    with pytest.raises(BoardError, match="no such file"):
        board.load("./nowhere.toml")
    with pytest.raises(BoardError, match="unknown board ''"):
        board.load("")


def test_upload(monkeypatch, load):
    b = board.load("stm32")
    here = {"openocd": "/bin/openocd", "st-flash": "/bin/st-flash"}
    monkeypatch.setattr(build_commands.shutil, "which", here.get)
    assert build_commands.upload_argv(b, "f w.bin")[-1] == "program {f w.bin} 0x8000000 verify reset exit"
    del here["openocd"]
    assert build_commands.upload_argv(b, "f.bin") == [
        "/bin/st-flash",
        "--reset",
        "write",
        "f.bin",
        "0x8000000",
    ]
    del here["st-flash"]
    with pytest.raises(ToolError, match=r"no probe software is installed; apt-get install openocd"):
        build_commands.upload_argv(b, "f.bin")
    with pytest.raises(ToolError, match=r"no \[upload\] section"):
        build_commands.upload_argv(load(USER), "f.bin")
    with pytest.raises(ToolError, match=r"no \[qemu\] section"):
        build_commands.qemu_argv(load(USER), "f.elf")


GUARDS = [
    # ram origin, bytes, other region (origin, bytes), guard below, guard above
    (0x20000000, 131072, None, 8192, 1 << 17),
    (0x20000000, 98304, None, 8192, 1 << 15),
    (0x20000000, 131072, (0x20020000, 4096), 8192, 0),  # a memory right above: no guard in it
    (0x20000000, 131072, (0x1FFFF000, 4096), 0, 1 << 17),
    (0x20000000, 131072, (0x1FFFE000, 4096), 4096, 1 << 17),
    (0x20001000, 4096, None, 4096, 1 << 13),
]


@pytest.mark.parametrize("origin, size, other, below, above", GUARDS)
def test_guards_are_clear_of_other_memory_and_aligned(load, origin, size, other, below, above):
    text = USER.replace("0x20000000", f"{origin:#x}").replace("98304", f"{size}")
    text = text.replace("schema", "stack_bytes = 1024\nschema")
    if other:
        text += f"[memory.other]\norigin = {other[0]}\nbytes = {other[1]}\n"
    flags = build_commands.link_flags(load(text))
    assert f"-Wl,--defsym=__guard_below_bytes={below:#x}" in flags
    assert f"-Wl,--defsym=__guard_above_bytes={above:#x}" in flags


WRONG_VALUES = {
    "unknown": {"schema": 1, "stack": 8192},
    "string": {"schema": 1, "name": ""},
    "range": {"schema": 2},
    "boolean": {"schema": 1, "upload": {"st_flash": 1}},
    "choice": {"schema": 1, "profile": "fast"},
    "list": {"schema": 1, "target": {"features": ["fpu", 1]}},
    "cost": {"schema": 1, "cost": {"load": -1}},
    "name": {"schema": 1, "memory": {"sram": {"bytes": 31}}},
    "commands": {"schema": 1, "toolchain": {"probes": [[]]}},
}


def test_the_json_schema_accepts_every_board_file():
    for path in sorted((ROOT / "boards").rglob("*.toml")):
        jsonschema.validate(tomllib.loads(path.read_text()), schema.json_schema())


@pytest.mark.parametrize("data", WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_the_json_schema_rejects_what_the_schema_rejects(data):
    with pytest.raises(BoardError):
        schema.check(data, ROOT / "mine.toml")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema.json_schema())


def test_the_command_prints_the_json_schema(capsys):
    assert main(["boards", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema.json_schema()


def test_the_file_of_a_name_without_toml_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").touch()
    with pytest.raises(
        BoardError, match=r"^unknown board 'mine' .*; give a board of your own as mine\.toml$"
    ):
        board.load("mine")
    with pytest.raises(BoardError, match=r"^board file \./mine: no such file; did you mean \./mine\.toml\?$"):
        board.load("./mine")
