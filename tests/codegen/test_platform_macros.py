"""Names of a model that headers of a platform or of programs define as macros: the C compiles after these headers."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from checkout import ROOT

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import ModelError
from autodiff_gen.ir.identifiers import KEYWORDS, Scope, is_reserved, may_be_macro
from autodiff_gen.model.loader import load_model

MACROS = ROOT / "tests/c/platform_macros.h"
# Every name there, and the names of the C library that no compiler leaves out.
NAMES = sorted(
    {*re.findall(r"^#define (\w+)", MACROS.read_text(), re.MULTILINE)} - {"PLATFORM_MACROS_H"}
    | {"errno", "stdin", "stderr", "fd_set", "sa_handler", "linux", "unix", "EOF", "I", "Serial2", "PB_7"}
)
IN, OUT = ("INPUT", "GPIOA", "round", "stdin"), ("OUTPUT", "min", "TWO_PI", "DEFAULT")


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


@pytest.mark.cc
def test_the_code_compiles_where_the_build_includes_such_a_header_first(tmp_path: Path) -> None:
    for name, text in files().items():
        (tmp_path / name).write_text(text)
    for name in ("net.c", "net_params.c"):
        words = [
            "gcc",
            "-std=gnu11",
            "-include",
            str(MACROS),
            *(f"-I{ROOT / f}" for f in ("runtime", "kernels/ref", "kernels")),
        ]
        done = subprocess.run(
            [*words, "-fsyntax-only", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


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
