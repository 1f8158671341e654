"""`export --as`: exported projects compile, link and run with nothing of this tree."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from checkout import ROOT
from exported_projects import BEGUN, CPP, WAYS, run, two, unoptimised

from autodiff_gen.cli import build as command
from autodiff_gen.cli.main import main
from autodiff_gen.errors import BoardError, ToolError
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.model.project.export import FORMATS, export, write_project
from autodiff_gen.model.project.source_groups import parts_of
from autodiff_gen.targets import board

XOR = "\n4 of 4 right\n"
# What Arduino gives every file.
ARDUINO = [
    "-Os",
    "-mcpu=cortex-m4",
    "-mthumb",
    "-mfloat-abi=hard",
    "-mfpu=fpv4-sp-d16",
    "-ffunction-sections",
]
ARDUINO += ["-fdata-sections", "-Werror", "-Wall"]
CXX = ["-std=gnu++17", "-fpermissive", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
# The declarations of a core that a sketch uses, with nothing of this project.
CORE = f"""\
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
struct Port {{
    void begin(unsigned long);
    void flush();
    size_t write(uint8_t);
    explicit operator bool();
}};
extern Port Serial;
extern "C" unsigned long millis(void);
extern "C" void delay(unsigned long);
#endif
#include "{ROOT}/tests/c/platform_macros.h"
#undef Serial
"""


def sources(folder: Path) -> list[str]:
    """C files to compile, relative to the folder."""
    found = sorted(p.relative_to(folder) for p in folder.rglob("*.c*") if p.suffix in (".c", ".cpp"))
    return [p.as_posix() for p in found if "tiles" not in p.parts]


def test_the_command_knows_the_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(command.FORMATS) == set(FORMATS)
    assert main(["export", "xor", "--board", "stm32", "--as", "plain", "--out", str(tmp_path / "p")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'p'}: a project; README.md says how to compile it\n"


@pytest.mark.cc
def test_build_files_quote_what_a_trusted_board_says(tmp_path: Path) -> None:
    """Of a board that is not trusted such flags are rejected: tests/targets/test_hostile_boards.py."""
    made = tmp_path / "made"
    said = [
        f"1;touch {made}",
        f"$(shell touch {made})",
        f"$(touch {made})",
        f"`touch {made}`",
        "$ENV{HOME} ${X} # 'a'",
    ]
    flags = [f"-DNOT_READ_{k}={text}" for k, text in enumerate(said)]
    path = tmp_path / "mine.toml"

    def project(form: str, listed: list[str]) -> None:
        path.write_text(f'schema=1\nname="m"\ninherits="host"\n[target]\ncflags={json.dumps(listed)}\n')
        export("xor", board.load(str(path), trusted=True), tmp_path / form, form=form)

    with pytest.raises(
        ToolError, match=r"CMake splits '-DNOT_READ_0=1;touch .*' at the ;: export it with --as make"
    ):
        project("cmake", flags)
    project("make", flags)
    project("cmake", flags[1:])
    run("make", "build/src/main.c.o", cwd=tmp_path / "make")
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path / "cmake")
    run("make", "-C", "build", "src/main.o", cwd=tmp_path / "cmake")
    printed = run("make", "-Bn", "build/src/main.c.o", "V=1", cwd=tmp_path / "make")
    printed += run("make", "-Bn", "-C", "build", "src/main.o", "VERBOSE=1", cwd=tmp_path / "cmake")
    compiled = [re.sub(r"\\([$`])", r"\1", line) for line in printed.splitlines() if "-DNOT_READ_1" in line]
    assert len(compiled) == 2 and all(set(flags[1:]) <= set(shlex.split(line)) for line in compiled), printed
    assert not made.exists()


def test_platformio_gets_no_flag_that_its_shell_would_change(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('schema=1\nname="m"\ninherits="stm32"\n[target]\ncflags=["-DNOT_READ=`touch x`"]\n')
    with pytest.raises(BoardError, match=r"'-DNOT_READ=`touch x`' cannot be a flag in PlatformIO"):
        export("xor", board.load(str(path), trusted=True), tmp_path / "out")


@pytest.mark.parametrize("form", ["make", "platformio"])
def test_a_file_with_a_command_in_its_name_is_rejected(form: str, tmp_path: Path) -> None:
    chip = shutil.copytree(ROOT / "boards/support/stm32f4", tmp_path / "chip")
    (chip / "$(shell touch x).c").write_text("int unused;\n")
    path = tmp_path / "mine.toml"
    path.write_text('schema=1\nname="m"\ninherits="stm32"\n[target]\nsupport="./chip"\n')
    with pytest.raises(ToolError, match=r"shell touch x\)\.c' cannot be a file of a project: rename it"):
        export("xor", board.load(str(path)), tmp_path / form, form=form)
    assert not (tmp_path / form).exists()


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_refers_to_this_tree(form: str, tmp_path: Path) -> None:
    export("xor", board.load("stm32"), tmp_path, form=form)
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert [p for p in files if str(ROOT) in p.read_text()] == []
    assert {"README.md", "export.json"} <= {p.name for p in files}


@pytest.mark.parametrize("form", ["make", "arduino"])
@pytest.mark.parametrize("model, told", [("mnist", True), ("xor", False)])
def test_the_readme_tells_where_records_come_from(form: str, model: str, told: bool, tmp_path: Path) -> None:
    export(model, board.load("stm32"), tmp_path, form=form)
    folder = "src" if form == "make" else f"examples/{model}"
    assert (f"`--out {folder}/samples.c`" in (tmp_path / "README.md").read_text()) == told
    assert any((tmp_path / folder).glob("*main.c"))


@pytest.mark.parametrize("on", ["host_avx512", "mps2_an386", "mps3_an547", "virt_a53"])
def test_what_a_file_includes_is_in_the_project(on: str) -> None:
    """In the folder of its part, or in one that is in the include path of all; headers of another core's kernels are
    included under a condition."""
    b = board.load(on)
    parts = parts_of(compile_file(load_file("lenet").made, "lenet", None, b), b)
    shared = {file for part in parts for file in part.files if "/" not in file}
    for part in parts:
        for file, text in part.files.items():
            included = set(re.findall(r'^ *#include "([\w./]+)"', text, re.MULTILINE))
            missing = included - shared - part.files.keys()
            own = ROOT / "kernels" / part.name.removeprefix("ag_")
            assert [name for name in missing if "/" in name or (own / name).exists()] == [], file


@pytest.mark.qemu
def test_cmake(tmp_path: Path) -> None:
    out = tmp_path / "it's (2) & more for $5"
    export("xor", board.load("stm32"), out, form="cmake", kernels=None)
    unoptimised(out)
    run("cmake", "-S", ".", "-B", "build", cwd=out)
    assert XOR in run("cmake", "--build", "build", "-t", "run", cwd=out)
    assert (out / "build/firmware.bin").is_file()


@pytest.mark.cc
def test_cmake_as_a_part_of_another_project(tmp_path: Path) -> None:
    """With a backend that is only a header."""
    export("xor", board.load("host"), tmp_path / "xor", form="cmake", kernels=["fastmath", "ref"])
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(own C)\nadd_subdirectory(xor)\n"
        "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE xor m)\n"
    )
    (tmp_path / "app.c").write_text(
        '#include "xor.h"\n#include <stdio.h>\nstatic xor_trainer t;\n'
        "int main(void) { return puts(xor_strstatus(xor_init(&t, 0))) < 0; }\n"
    )
    run("cmake", "-S", ".", "-B", "build", cwd=tmp_path)
    run("cmake", "--build", "build", "-t", "app", cwd=tmp_path)
    assert run("build/app", cwd=tmp_path) == "ok\n"


@pytest.mark.qemu
def test_make(tmp_path: Path) -> None:
    out = tmp_path / "it's (2) & more"
    export("xor", board.load("stm32"), out, form="make")
    unoptimised(out)
    assert " make`." in (out / "README.md").read_text()
    assert XOR in run("make", "-s", "all", "run", cwd=out)
    assert run("make", "all", cwd=out) == "make: Nothing to be done for 'all'.\n"


@pytest.mark.cc
@pytest.mark.parametrize("way", WAYS)
def test_a_model_without_a_program_gets_one_that_trains(way: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BEGUN + way)
    export(str(tmp_path / "net.py"), board.load("host"), tmp_path / "out", form="make")
    unoptimised(tmp_path / "out")
    printed = run("make", "-s", "all", "run", cwd=tmp_path / "out")
    losses = [float(x) for x in re.findall(r"^step \d+, loss ([\d.]+)$", printed, re.MULTILINE)]
    assert len(losses) == 10 and losses[-1] < losses[0] / 2


def test_a_program_for_another_name_is_none_for_this_one(tmp_path: Path) -> None:
    export("xor", board.load("host"), tmp_path, "run", form="make")
    assert "run_init(&trainer" in (tmp_path / "src/main.c").read_text()


@pytest.mark.qemu
def test_plain_compiles_as_its_readme_says(tmp_path: Path) -> None:
    export("xor", board.load("stm32"), tmp_path, form="plain", kernels=None)
    (tmp_path / "src" / "flash.c").write_text(
        """#include "ag_flash.h"
int ag_flash_open(ag_flash *flash, uint32_t state_bytes) { return ag_flash_file_for(flash, state_bytes); }
"""
    )  # the project's own, in place of the port's
    text = (tmp_path / "README.md").read_text()
    common = re.search(r"flags of its row and `(.*)`", text)
    assert common is not None
    rows = re.findall(r"^\| `(lib/\w+)` \| (?:`(.*)`|headers only) \| (.*) \|$", text, re.MULTILINE)
    include = [f"-I{folder}" for *_, folders in rows for folder in re.findall("`(.*?)`", folders)]
    compiler = ["arm-none-eabi-gcc", *shlex.split(common[1]), *include]
    objects = []
    for source in sources(tmp_path):
        flags = next((f for folder, f, _ in rows if source.startswith(f"{folder}/")), "")
        objects.append(f"{source}.o")
        run(*compiler, *shlex.split(flags), "-O0", "-c", source, "-o", objects[-1], cwd=tmp_path)
    # newlib's own start-up code and linker script, as a project of a vendor's tool has its own
    run(*compiler, *objects, "-Wl,--gc-sections", "--specs=nosys.specs", "-lm", "-o", "p.elf", cwd=tmp_path)


@pytest.mark.qemu
@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "cpp"])
def test_arduino_finds_everything_by_its_own_rules(language: str, tmp_path: Path) -> None:
    """Its rules for libraries in src/: the include path has src/ and the core, and no folder below src/; every C file
    below src/ is compiled; a sketch is compiled in a separate folder, as C++ that begins with Arduino.h."""
    models = ["lenet"] if language == "c" else [*two(tmp_path)]
    if language == "cpp":
        (tmp_path / "main.cpp").write_text(CPP)
    out = tmp_path / "out"
    export(models, board.load("mps2_an386"), out, form="arduino", kernels=None)
    (tmp_path / "core").mkdir()
    (tmp_path / "core/Arduino.h").write_text(CORE)
    (example,) = (out / "examples").iterdir()
    sketch = tmp_path / "build/sketch"
    shutil.copytree(example, sketch)
    ino = sketch / f"{example.name}.ino"
    ino.rename(ino.with_suffix(".ino.cpp")).write_text(
        f"#include <Arduino.h>\n{ino.with_suffix('.ino.cpp').read_text()}"
    )
    # the output of data.py, and headers that a user's sketch may include
    (sketch / "samples.c").write_text('#include "ag_samples.h"\n#include "ag_store.h"\n')
    include = [f"-I{tmp_path / 'core'}", f"-I{out / 'src'}"]
    objects = []
    for k, source in enumerate([*(out / "src").rglob("*.c*"), *sketch.rglob("*.c*")]):
        cxx = source.suffix == ".cpp"
        tool = ["arm-none-eabi-g++", *CXX] if cxx else ["arm-none-eabi-gcc", "-std=gnu11"]
        objects.append(f"{k}.o")
        run(*tool, *ARDUINO, *include, "-c", source, "-o", objects[-1], cwd=tmp_path)
    run("arm-none-eabi-ld", "-r", *objects, "-o", "all.o", cwd=tmp_path)
    listed = run("arm-none-eabi-nm", "all.o", cwd=tmp_path).split("\n")
    undefined = {line.split()[-1] for line in listed if " U " in line}
    own = {name for name in undefined if name.startswith(("ag_", "lenet_", "net_"))}
    # the model and the UART of the board link's firmware, which no project of Arduino has
    assert {n for n in own if not n.startswith(("ag_linked_", "ag_uart_"))} == set()
    mains = {line.split()[-1] for line in listed if " T " in line} & {"ag_main", "_Z7ag_mainv"}
    assert mains == {"ag_main" if language == "c" else "_Z7ag_mainv"}
    properties = dict(line.split("=", 1) for line in (out / "library.properties").read_text().splitlines())
    assert all(properties.values()) and not properties["name"].lower().startswith("arduino")
    assert all((out / "src" / header).is_file() for header in properties["includes"].split(","))
    assert language == "cpp" or list(tmp_path.rglob("*.inc"))


def test_a_later_export_keeps_a_changed_program_and_removes_old_files(tmp_path: Path) -> None:
    first = {"src/main.c": "int main;", "lib/a/old.c": "1", "lib/a/a.c": "1", "lib/b/c/old.c": "1"}
    assert write_project(tmp_path, first) == []
    assert write_project(tmp_path, {**first, "src/main.c": "int other;"}) == []
    (tmp_path / "src/main.c").write_text("mine")
    (tmp_path / "lib/a/a.c").write_text("mine")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(ToolError, match=r"lib/a/a\.c: not written by autodiff-gen, or changed since"):
        write_project(tmp_path, {"src/main.c": "int main;", "lib/a/a.c": "2"})
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert write_project(tmp_path, {"src/main.c": "int main;", "lib/a/a.c": "2"}, force=True) == [
        "src/main.c"
    ]
    assert write_project(tmp_path, {"src/main.c": "int main;", "lib/a/a.c": "2"}) == ["src/main.c"]
    assert write_project(tmp_path, {"src/main.c": "int main;", "lib/a/a.c": "2"}) == ["src/main.c"]
    texts = {p.relative_to(tmp_path).as_posix(): p.read_text() for p in tmp_path.rglob("*.c")}
    assert texts == {"src/main.c": "mine", "lib/a/a.c": "2"}
    assert [p.name for p in (tmp_path / "lib").iterdir()] == ["a"]


def test_a_program_in_another_language_replaces_the_exported_one(tmp_path: Path) -> None:
    first = {"src/main.c": "int main;", "lib/a/a.c": "1"}
    assert write_project(tmp_path, first) == []
    (tmp_path / "src/main.c").rename(tmp_path / "src/main.cpp")
    for _ in range(2):
        assert write_project(tmp_path, first) == ["src/main.c"]
        assert [p.name for p in (tmp_path / "src").iterdir()] == ["main.cpp"]


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ToolError, match=r"no export\.json of an export: choose an empty folder"):
        export("xor", board.load("stm32"), tmp_path, form="make")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "on, form, message",
    [
        ("host", "platformio", r"has neither \[qemu\] nor \[platformio\]"),
        ("host", "arduino", "board host is no board of Arduino: choose --board"),
        ("pico", "make", "its start-up code is Arduino's: export it with --as arduino or platformio"),
    ],
)
def test_boards_that_a_build_system_does_not_build_for(
    on: str, form: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=message):
        export("xor", board.load(on), tmp_path, form=form)
    assert list(tmp_path.iterdir()) == []
