"""The library in a user's own project: by link, by copy and packed; rebuilds after an edit; messages for mistakes."""

from __future__ import annotations

import json
import re
import shutil
import venv
from pathlib import Path

import numpy as np
import pytest
from bare_environment import bare_python
from checkout import ROOT
from firmware_build import once
from pio_project import copy_parts, pio, succeed
from scons_tree import MODEL

from autodiff_gen.model.loader import load_model

pytestmark = [pytest.mark.pio, pytest.mark.qemu]

INI = """\
[env:board]
platform = symlink://{platform}
board = stm32
framework = arduino
lib_deps = {library}
custom_autodiff_model = net/model.py
"""

MODEL_LINE = "custom_autodiff_model = net/model.py\n"

OTHER = """\
import autodiff_gen as ag
from autodiff_gen import nn, optim
model = ag.Model.supervised(nn.Linear(2, 1), input=(1, 2), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.1))
"""

SKETCH = """\
#include <Arduino.h>

#include "net.h"

static net_trainer trainer;
static int steps;

void setup() {
    Serial.begin(115200);
    Serial.println(net_strstatus(net_init(&trainer, 0)));
}

void loop() {
    const float x[100] = {0.1f, -0.2f, 0.3f, 0.4f};
    const uint8_t label[1] = {2};
    float loss;
    if (net_train_step(&trainer, x, label, NET_DEFAULT_LR, &loss) != NET_OK || ++steps == 4) {
        ag_system_exit(0);
    }
    Serial.print("loss ");
    Serial.println(loss, 6);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A copy of the library in a path with spaces, without the `license` that `pio pkg pack` looks up online."""

    def make(folder):
        copy_parts(folder / "the library")
        path = folder / "the library" / "library.json"
        manifest = json.loads(path.read_text())
        del manifest["license"]
        path.write_text(json.dumps(manifest))

    return once(tmp_path_factory, "pio library", make) / "the library"


def new_project(folder, library_spec):
    """A project of a user: a sketch, and a model with a module and a data file."""
    (folder / "src").mkdir(parents=True)
    (folder / "net").mkdir()
    (folder / "src" / "sketch.cpp").write_text(SKETCH)
    (folder / "net" / "model.py").write_text(MODEL)
    (folder / "net" / "helper.py").write_text("WIDTH = 5\n")
    (folder / "net" / "scale.txt").write_text("0.5\n")
    (folder / "platformio.ini").write_text(INI.format(platform=ROOT / "platformio", library=library_spec))
    return folder


def add_model(folder):
    """A second model in the program."""
    (folder / "net" / "an other.py").write_text(OTHER)
    for path, old, new in (
        ("src/sketch.cpp", "static int", '#include "other.h"\nstatic other_trainer other;\nstatic int'),
        ("src/sketch.cpp", "}\n", "    Serial.println(other_strstatus(other_init(&other, 0)));\n}\n"),
        (
            "platformio.ini",
            MODEL_LINE,
            f"{MODEL_LINE[:-1]} 'net/an other.py'\ncustom_autodiff_name = net other\n",
        ),
    ):
        text = (folder / path).read_text()
        assert old in text
        (folder / path).write_text(text.replace(old, new, 1))


def losses(folder):
    trainer = load_model(str(folder / "net" / "model.py"))[0].on_host()
    x, label = np.zeros((1, 100), np.float32), np.uint8([2])
    x[0, :4] = 0.1, -0.2, 0.3, 0.4
    return [trainer.train_step(x, label) for _ in range(3)]


@pytest.mark.cc
@pytest.mark.parametrize("how", ["symlink", "file", "packed"])
def test_a_sketch_trains_with_the_library(how, library, tmp_path):
    if how == "packed":
        succeed(library, tmp_path / "core", "pkg", "pack", ".", "--output", str(tmp_path / "library.tar.gz"))
        spec = f"file://{tmp_path}/library.tar.gz"
    else:
        spec = f"{how}://{library}"
    folder = new_project(tmp_path / "my project", spec)
    if how == "packed":
        add_model(folder)
    if how != "symlink":  # which has the board's own kernels, whose exp differs from `ref` in the last bits
        with (folder / "platformio.ini").open("a") as ini:
            ini.write("custom_autodiff_kernels = ref\n")
    said = succeed(folder, tmp_path / "core", "run", "-t", "run")
    printed, expected = re.findall(r"^loss (\d\.\d{6})$", said, re.MULTILINE), losses(folder)
    if how == "symlink":
        assert [float(loss) for loss in printed] == pytest.approx(expected, abs=1.5e-6)
    else:
        assert printed == [f"{loss:.6f}" for loss in expected]
    assert re.findall(r".*warning.*", said) == []
    assert len(re.findall("^ok$", said, re.MULTILINE)) == (2 if how == "packed" else 1)
    if how != "symlink":
        assert (folder / ".pio/libdeps/board/autodiff_gen/kernels/ag_kernels.h").is_file()


@pytest.fixture(scope="module")
def project(library, tmp_path_factory):
    """A built project, and its core folder."""
    folder = tmp_path_factory.mktemp("a users project")
    new_project(folder / "p", f"symlink://{library}")
    succeed(folder / "p", folder / "core", "run")
    return folder / "p", folder / "core"


def steps(said):
    """What was done: generated, compiled, archived and linked files by their last names."""
    found = re.findall(r"^(?:Generating|Compiling|Archiving|Linking) (.*)$", said, re.MULTILINE)
    return {Path(path).name for path in found}


def test_an_edit_regenerates_and_relinks_only_that(project):
    folder, core = project

    def build(*words):
        return steps(succeed(folder, core, "run", *words))

    build()
    assert build() == set()
    model = folder / "net" / "model.py"
    model.write_text(model.read_text().replace("0.01", "0.02"))
    done = build()
    assert {"net.c", "sketch.cpp.o", "firmware.elf"} <= done  # the header has the learning rate
    assert done <= {"net.c", "net.o", "net_params.o", "sketch.cpp.o", "libnet.a", "firmware.elf"}
    assert build() == set()
    (folder / "net" / "helper.py").write_text("WIDTH = 6\n")
    done = build()
    assert {"net.c", "net.o", "net_params.o", "libnet.a", "firmware.elf"} <= done
    assert not done & {"gemm.o", "startup.o"}
    (folder / "net" / "scale.txt").write_text("0.25\n")  # the model opens it, and makes nothing of it
    assert build() == {"net.c"}
    model.write_text(model.read_text() + "# a comment\n")
    assert build() == {"net.c"}
    assert build("-j", "1") == set()


def test_any_number_of_jobs_gives_the_same(project, library, tmp_path):
    folder, core = project
    made = {}
    for jobs in ("1", "4"):
        succeed(folder, core, "run", "-t", "clean")
        succeed(folder, core, "run", "-j", jobs, SCONSFLAGS="--cache-disable")
        made[jobs] = (folder / ".pio/build/board/firmware.elf").read_bytes()
    assert made["1"] == made["4"]


def test_editors_ask_without_a_build(project):
    """`pio project metadata` runs the script too, which prints nothing, changes nothing, and knows the headers."""
    folder, core = project
    succeed(folder, core, "run")
    generated = folder / ".pio/build/board/autodiff"
    before = {p: p.stat().st_mtime_ns for p in generated.rglob("*")}
    path = folder / "metadata.json"
    said = succeed(folder, core, "project", "metadata", "--json-output-path", str(path))
    assert "autodiff" not in said.lower()
    includes = json.loads(path.read_text())["board"]["includes"]["build"]
    assert str(generated) in includes and any(i.endswith("/kernels") for i in includes)
    assert {p: p.stat().st_mtime_ns for p in generated.rglob("*")} == before


def more(option):
    """(old, new) that add an option of the library."""
    return MODEL_LINE, f"{MODEL_LINE}custom_autodiff_{option}\n"


# the fault, (old, new) in platformio.ini, the one line
MISTAKES = {
    "no model": (
        (MODEL_LINE, ""),
        "Error: [env:no_model] of platformio.ini has no custom_autodiff_model: add",
    ),
    "no file": (
        ("net/model.py", "net/modle.py"),
        "Error: custom_autodiff_model = net/modle.py: no such file: ",
    ),
    "unknown option": (
        ("autodiff_model", "autodiff_modell"),
        "unknown option custom_autodiff_modell; did you mean",
    ),
    "two of one name": (
        ("net/model.py", "net/model.py net/model.py"),
        "Error: two models in one program are called 'net' and 'net'",
    ),
    "a name too few": (
        ("net/model.py", "net/model.py net/helper.py\ncustom_autodiff_name = net"),
        "Error: custom_autodiff_name = net: give 2 names",
    ),
    "bad name": (more("name = 2nd"), "'2nd' cannot be the name of C files"),
    "bad ram": (more("ram = 64K"), "custom_autodiff_ram = 64K: must be a number"),
    "too much ram": (more("ram = 200000"), "board stm32 has 131072 bytes of RAM"),
    "too little ram": (more("ram = 64"), "error: net needs "),
    "unknown board id": (
        ("board = stm32", "board = mystery"),
        "Error: no board profile serves the board 'mystery'",
    ),
    "unknown profile": (more("board = stm23"), "unknown board 'stm23'; did you mean"),
    "profile with more RAM": (
        more("board = mps2_an386"),
        "Error: profile mps2_an386 has 4194304 bytes of ram, but PlatformIO's board stm32 has 131072: choose",
    ),
    "unknown kernels": (more("kernels = reff"), "unknown kernel backend 'reff'; did"),
    "no such Python": (more("python = no/python"), "custom_autodiff_python = no/python: no such program"),
    "generator not installed": (more("python = bare/bin/python"), "cannot run the generator"),
    "another board": (
        more("board = evil.toml"),
        "evil.toml: target.cflags: '-fplugin=x' needs a file that you trust",
    ),
    "bad trust": (more("trust_board = maybe"), "custom_autodiff_trust_board = maybe: must be yes or no"),
    "a folder for the shell": (
        more("board = evil.toml\ncustom_autodiff_trust_board = yes"),
        "/k;touch x`/own: PlatformIO gives this path to a shell: rename the folder without ",
    ),
    "no samples": (more("samples = data.py -n 3"), "data.py -n 3: no such file"),
}
EVIL = """
schema = 1
name = "evil"
inherits = "stm32"
[target]
cflags = ["-fplugin=x"]
[kernels]
backends = ["./k;touch x`/own"]
"""
BOARD = {
    "name": "x",
    "vendor": "x",
    "url": "x",
    "frameworks": ["arduino"],
    "upload": {"maximum_ram_size": 131072, "maximum_size": 1048576},
}


@pytest.fixture(scope="module")
def wrong(library, tmp_path_factory):
    """A project with a board that no profile serves, and a Python without the generator."""
    folder = tmp_path_factory.mktemp("wrong")
    return new_wrong_project(folder / "p", library), folder / "core"


def new_wrong_project(folder, library):
    made = new_project(folder, f"symlink://{library}")
    (made / "boards").mkdir()
    text = json.loads((ROOT / "platformio/boards/stm32.json").read_text())
    (made / "boards" / "mystery.json").write_text(json.dumps({**text, **BOARD}))
    (made / "evil.toml").write_text(EVIL)
    (made / "k;touch x`" / "own").mkdir(parents=True)
    (made / "k;touch x`" / "own" / "kernels.toml").write_text("schema = 1\nkernel = []\n")
    venv.create(made / "bare", symlinks=True)
    return made


@pytest.fixture(scope="module")
def mistakes(library, tmp_path_factory):
    """Mistake -> what `pio run` prints for an environment that has it; all are built by one call."""

    def make(folder):
        made = new_wrong_project(folder / "p", library)
        good = (made / "platformio.ini").read_text()
        assert good.startswith("[env:board]\n")
        texts = []
        for mistake, ((old, new), _) in MISTAKES.items():
            assert old in good
            name = f"[env:{mistake.replace(' ', '_')}]\n"
            texts.append(good.replace("[env:board]\n", name).replace(old, new))
        (made / "platformio.ini").write_text("".join(texts))
        done = pio(made, folder / "core", "run", timeout=600)
        assert done.returncode == 1, done.stdout
        (folder / "said").write_text(done.stdout)

    said = (once(tmp_path_factory, "pio mistakes", make) / "said").read_text()
    parts = re.split(r"^Processing (\w+) \(", said.split("\nEnvironment ")[0], flags=re.MULTILINE)
    assert len(re.findall(r"^\w+ +FAILED ", said, re.MULTILINE)) == len(MISTAKES), said
    return dict(zip((name.replace("_", " ") for name in parts[1::2]), parts[2::2], strict=True))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_line(mistakes, mistake):
    check_one_line(mistakes[mistake], MISTAKES[mistake][1])


def check_one_line(said, says):
    lines = [line for line in said.splitlines() if line.lower().startswith("error: ")]
    assert len(lines) == 1 and says in lines[0], said
    assert "Traceback" not in said


def failing(folder, core, **variables):
    """What `pio run` prints when it fails."""
    done = pio(folder, core, "run", **variables)
    assert done.returncode != 0, done.stdout
    return done.stdout


def test_a_broken_model_is_one_clear_line(wrong):
    folder, core = wrong
    model = folder / "net" / "model.py"
    text = model.read_text()
    try:
        model.write_text(text + "raise ValueError('no such day')\n")
        said = failing(folder, core)
    finally:
        model.write_text(text)
    check_one_line(said, "no such day")


def test_a_missing_compiler_is_one_clear_line(wrong, tmp_path):
    folder, core = wrong
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "env", "timeout"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    said = failing(folder, core, PATH=str(tmp_path / "bin"))
    check_one_line(said, "arm-none-eabi-gcc is not installed; run: sudo apt-get install")


def test_a_python_of_ones_own(project, tmp_path):
    """The generator's Python need not be PlatformIO's."""
    folder, core = project
    own = tmp_path / "own python"
    own.write_text(f'#!/bin/sh\necho called >>"{tmp_path}/calls"\nexec "{bare_python()}" "$@"\n')
    own.chmod(0o755)
    ini = folder / "platformio.ini"
    text = ini.read_text()
    try:
        ini.write_text(text + f"custom_autodiff_python = {own}\n")
        succeed(folder, core, "run")
    finally:
        ini.write_text(text)
    assert "called" in (tmp_path / "calls").read_text()
