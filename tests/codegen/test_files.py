"""Generated C: the same bytes everywhere, no warnings, used from C++."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import compiled_examples
import numpy as np
import pytest
from c_build import INCLUDES, KERNELS, check_warnings, compile_c, compiler
from checkout import ROOT
from compiled_examples import EXAMPLES
from objects_once import objects
from random_models import Model, random_model
from small_models import small_classifier

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.lowering.pipeline import Dump
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board
from autodiff_gen.targets.build_commands import STRICT_FLAGS

WORKLOADS = sorted(p.stem for p in (ROOT / "bench" / "workloads").glob("w[0-9]*.py"))


def workload_model(name):
    return load_model(str(ROOT / "bench" / "workloads" / f"{name}.py"))[0]


def every_function():
    """One function of many kinds of ops, with its gradients."""
    x, w = ag.Input("x", (4, 6)), ag.Param("w", np.zeros((3, 6)))
    b, scale = ag.Param("b", np.zeros(3)), ag.Input("scale", ())
    z = F.matmul(x, w.T) + b
    y = F.where(z > 0.0, F.tanh(z), F.exp(z) * scale) / (1.0 + F.abs(z))
    loss = F.mean(F.softmax(y, 1) * F.log_softmax(z, 1)) + F.sum(F.max(F.sigmoid(z).T, 1)[0])
    return ag.function([x, w, b, scale], [loss, y, *ag.grad(loss, [x, w, b])], "every")


SOURCES = {
    **{name: lambda name=name: compiled_examples.compiled_anew(name) for name in EXAMPLES},
    **{name: lambda name=name: compile_model(workload_model(name), name) for name in WORKLOADS},
    "momentum": lambda: compile_model(
        small_classifier(4, optimizer=optim.SGD(lr=0.1, momentum=0.9)), "momentum"
    ),
    "in_parts": lambda: compile_model(
        small_classifier(4, optimizer=optim.Adam(), guard="gradients", split=True), "in_parts"
    ),
    "many_classes": lambda: compile_model(small_classifier(2, layers=(3, 2, 300)), "many_classes"),
    "regression": lambda: compile_model(small_classifier(2, loss=nn.MSELoss()), "regression"),
    "every": lambda: compile_function(every_function(), "every"),
}


@functools.cache
def compiled(name):
    """The program and its files."""
    if name in EXAMPLES:
        return compiled_examples.compiled(name), compiled_examples.files(name)
    program = SOURCES[name]()
    return program, emit(program)


# ---- the same bytes


def test_same_bytes_in_two_folders_with_two_hash_seeds(tmp_path):
    texts = []
    for number, seed in enumerate(("0", "4242")):
        folder = tmp_path / f"a folder {number}"
        shutil.copytree(ROOT / "examples" / "mnist", folder / "mnist")
        env = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(ROOT),
            "TZ": ["UTC", "Asia/Tokyo"][number],
        }
        command = [
            sys.executable,
            "-m",
            "autodiff_gen",
            "build",
            "mnist/model.py",
            "--board",
            "stm32",
            "--out",
            "o",
        ]
        subprocess.run(command, cwd=folder, env=env, check=True)
        texts.append({p.name: p.read_bytes() for p in (folder / "o").iterdir() if p.suffix != ".json"})
    assert sorted(texts[0]) == ["mnist.c", "mnist.h", "mnist_params.c"]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", SOURCES)
def test_compiled_twice_in_one_process(name):
    assert emit(SOURCES[name]()) == compiled(name)[1]


def test_no_order_depends_on_addresses(tmp_path):
    """A fused node is split, and the second half reads several results of the first."""
    others, texts = [], set()
    for k in range(8):
        others.append([object() for _ in range(1000 * k)])
        case = random_model(777006, 9, 2)
        model = Model(tuple(case.init), 2, 0.05, [case.graph])
        compile_model(model, "m", None, board.load("virt_a7"), must_fit=False, dump=Dump(tmp_path))
        texts.add("".join(path.read_text() for path in sorted(tmp_path.iterdir())))
    assert len(texts) == 1


# ---- compilers


@pytest.mark.cc
@pytest.mark.parametrize("name", SOURCES)
def test_no_warning_under_the_strict_flags_and_used_from_cpp(name, tmp_path):
    """By gcc with -O2 and by clang; a C++ program includes the header, links what gcc has made and calls it."""
    program, files = compiled(name)
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    strict = ("-Wstrict-prototypes", f"-I{tmp_path}")
    linked = objects(compiler("gcc"), sorted((KERNELS / "ref").glob("*.c")))
    for source in sorted(tmp_path.glob("*.c")):
        check_warnings("clang", source, strict)
        linked.append(compile_c("gcc", [source], source.with_suffix(".o"), ("-O2", "-c", *strict)))
    call = f"{name}_init(&t, 0)" if program.is_model else "0"
    main = f"""#include "{name}.h"
static {program.struct} t;
int main() {{
    const int described = {name}_strstatus(-1)[0] == 'a' ? 0 : 1;
    return {call} + described + (sizeof t == {program.struct_bytes} ? 0 : 2);
}}
"""
    (tmp_path / "main.cpp").write_text(main)
    command = [
        "g++",
        "-std=c++11",
        *STRICT_FLAGS,
        f"-I{tmp_path}",
        *INCLUDES,
        str(tmp_path / "main.cpp"),
        *map(str, linked),
        "-lm",
        "-o",
        str(tmp_path / "main"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize("name", SOURCES)
def test_what_generated_code_never_holds(name):
    for file, text in compiled(name)[1].items():
        for word in ("double", "malloc", "stdio", "restrict", str(ROOT), str(Path.home())):
            assert word not in text, (file, word)
        assert all(line == line.rstrip() for line in text.splitlines()), file
        assert text.endswith("\n") and not text.endswith("\n\n")


def test_the_header_says_what_is_frozen():
    assert "Frozen" not in header_of_two_layers(trained=True)
    header = header_of_two_layers(trained=False)
    assert " * Frozen parameters, constants of the C file: 60 bytes.\n" in header


def header_of_two_layers(trained):
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    net[0].requires_grad_(trained)
    model = ag.Model.supervised(net, (2, 4), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    return emit(compile_model(model, "net"))["net.h"]


X, Y, AT = ag.Input("x", (4,)), ag.Input("y", (4,)), ag.Input("at", (4,), "s32")
CHECKED = {
    "no check": ([X, Y], lambda: X + Y, ["Does not check that x and y are finite."]),
    "indices": (
        [AT],
        lambda: F.embedding(AT, F.ones((3, 2))),
        ["Checks that labels and indices are in range."],
    ),
    "integers of any size": ([AT], lambda: AT * 2, []),
}


@pytest.mark.parametrize("case", CHECKED)
def test_the_header_says_which_arguments_a_function_checks(case):
    inputs, make, said = CHECKED[case]
    header = emit(compile_function(ag.function(inputs, [make()], "f"), "f"))["f.h"]
    assert [line for line in ("Checks that", "Does not check that") if line in header] == [
        text[: text.index("that") + 4] for text in said
    ]
    assert all(text in header for text in said)


def test_the_header_says_which_arguments_a_model_checks():
    header = emit(compile_model(load_model("xor")[0], "xor"))["xor.h"]
    train, predict = (
        header.index("Checks that labels and indices are in range, and that x and lr are finite."),
        (header.index("Does not check that x is finite.")),
    )
    assert train < header.index("int xor_train_step(") < predict < header.index("int xor_predict(")
    assert "/* overwritten by each call: train_step " in header
