"""Names that headers of a platform, of programs or of the C library use too: the C compiles after these headers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.identifiers import KEYWORDS, LIBRARY, Scope, is_reserved, may_be_macro
from autodiff_gen.model.loader import load_model

MACROS = ROOT / "tests/c/platform_macros.h"
# Every name there, and the names of the C library that no compiler leaves out.
NAMES = sorted(
    {*re.findall(r"^#define (\w+)", MACROS.read_text(), re.MULTILINE)} - {"PLATFORM_MACROS_H"}
    | {"errno", "stdin", "stderr", "fd_set", "sa_handler", "linux", "unix", "EOF", "I", "Serial2", "PB_7"}
)
IN, OUT = ("INPUT", "GPIOA", "round", "stdin"), ("OUTPUT", "min", "TWO_PI", "DEFAULT")


class Asinh(nn.Module):
    def forward(self, x: ag.Value) -> ag.Value:
        return F.asinh(x)


@cache
def files() -> dict[str, str]:
    """A model with all of them as parameters, some as inputs and outputs."""
    inputs = [ag.Input(name, (1, 4)) for name in IN]
    x = sum(inputs[1:], inputs[0])
    for name in sorted({*NAMES} - {*IN, *OUT}):
        x = x * ag.Param(f"{name}.{name}" if name in KEYWORDS else name, np.ones(4, np.float32))
    outputs = {name: x * float(k) for k, name in enumerate(OUT, 1)}
    model = ag.Model(
        inputs=inputs, targets=[], outputs=outputs, loss=F.sum(F.square(x)), optimizer=optim.SGD(lr=0.01)
    )
    return emit(compile_model(model, "net"))


def test_a_name_gets_one_underscore() -> None:
    """Also where it is made of a name that has got one, as in NAME_link.c."""
    assert Scope().fresh(Scope().fresh("GPIOA")) == Scope().fresh("GPIOA_") == "GPIOA_"
    assert "const float *GPIOA_," in files()["net.h"]


def macros(compiler: str, text: str) -> set[str]:
    """Macros without arguments, as the compiler lists them after the text."""
    done = subprocess.run(
        [compiler, "-std=gnu11", "-dM", "-E", "-xc", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^#define (\w+)(?: |$)", done.stdout, re.MULTILINE))


@pytest.mark.cc
@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "gcc", "clang"])
def test_macros_of_the_c_library_are_known(compiler: str) -> None:
    """Only names that a tensor may have by chance: names of <inttypes.h> and of fields of the system's structs are
    none."""
    text = MACROS.read_text()
    others = re.compile(r"(PRI|SCN)\w+|(si|st|sigev|sa)_\w+|[LP]_\w+|math_errhandling")
    named = {n for n in macros(compiler, text) if not is_reserved(n) and not n.startswith("_")}
    assert len(named) > 100
    assert {n for n in named if not (may_be_macro(n) or n in KEYWORDS or others.fullmatch(n))} == set()


@pytest.mark.cc
@pytest.mark.parametrize(
    "compiler, language",
    [
        (["gcc", "-std=c99", "-pedantic-errors"], "c"),
        (["clang", "-std=gnu11"], "c"),
        (["g++", "-std=gnu++17"], "c++"),
        (["arm-none-eabi-gcc", "-std=gnu11"], "c"),
    ],
)
def test_the_headers_compile_after_those_of_a_platform(
    compiler: list[str], language: str, tmp_path: Path
) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    own = sorted(path.name for path in (ROOT / "runtime").glob("*.h"))
    text = "".join(f'#include "{name}"\n' for name in (MACROS.name, "net.h", *own))
    (tmp_path / "use.c").write_text(f"{text}extern int unused;\n")
    folders = [
        f"-I{tmp_path}",
        f"-I{MACROS.parent}",
        *(f"-I{ROOT / f}" for f in ("runtime", "kernels/ref", "kernels")),
    ]
    words = [*compiler, f"-x{language}", *folders, "-fsyntax-only", str(tmp_path / "use.c")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def messages(text: Mapping[str, str], name: str, folder: Path, *options: str) -> str:
    """What gcc says about a file of a program."""
    for file, lines in text.items():
        (folder / file).write_text(lines)
    folders = [f"-I{ROOT / f}" for f in ("runtime", "kernels/ref", "kernels")]
    words = ["gcc", "-std=gnu11", *options, *folders, "-fsyntax-only", str(folder / name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == "")
    return done.stderr


@pytest.mark.cc
@pytest.mark.parametrize("name", ["net.c", "net_params.c"])
def test_the_code_compiles_where_the_build_includes_such_a_header_first(name: str, tmp_path: Path) -> None:
    assert messages(files(), name, tmp_path, "-include", str(MACROS)) == ""


@pytest.mark.cc
@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "gcc"])
def test_functions_of_the_c_library_are_known(compiler: str) -> None:
    """A function of loops may get the name of any function of this library."""
    headers = "".join(f"#include <{name}.h>\n" for name in ("math", "stdio", "stdlib", "string"))
    words = [compiler, "-std=gnu11", "-D_GNU_SOURCE", "-E", "-xc", "-"]
    done = subprocess.run(words, input=headers, capture_output=True, text=True, check=True)
    declared = set(re.findall(r"\b(\w+) ?\(", done.stdout)) & {*F.__all__}
    assert {"asinh", "atan2", "rand"} <= declared
    assert declared - LIBRARY == set()


@pytest.mark.cc
def test_a_function_of_loops_has_another_name_than_one_of_the_c_library(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(24, 32, bias=False), Asinh(), nn.Linear(32, 24, bias=False), Asinh())
    model = ag.Model.supervised(net, input=(16, 24), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.01))
    text = emit(compile_model(model, "net"))
    assert "asinh_array(" in text["net.c"]
    assert messages(text, "net.c", tmp_path) == ""


@pytest.mark.parametrize(
    "name, why",
    [
        ("f", "'f': <unistd.h> defines F_OK, which f.h would define again"),
        ("HAL", "'HAL': STM32's HAL defines HAL_OK"),
        ("Arduino", "'Arduino': <Arduino.h> is a header of C"),
        ("strings", "'strings': <strings.h> is a header of C"),
    ],
)
def test_names_of_models_whose_files_or_macros_others_have(name: str, why: str) -> None:
    with pytest.raises(ModelError, match=f"^{re.escape(why)}.*; give another name with --name"):
        compile_model(load_model("xor")[0], name)
