"""Analysers and sanitizers over the runtime, kernels and generated C: a finding is a failure."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from c_build import compile_c
from compiled_examples import EXAMPLES, files

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_source import link_source
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets.build_commands import STRICT_FLAGS

pytestmark = pytest.mark.cc

# Beside the strict warnings, which gcc and clang give in every build.
TIDY = ",".join(
    (
        "-*",
        "bugprone-*",
        "cert-*",
        "clang-analyzer-*",
        "-bugprone-easily-swappable-parameters",  # a matter of taste
        "-bugprone-narrowing-conversions",  # -Wconversion decides
        "-bugprone-reserved-identifier,-cert-dcl37-c,-cert-dcl51-cpp",  # the linker's symbols
        "-clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling",  # recommends Annex K, which nobody has
    )
)
QUICK = f"{TIDY},-clang-analyzer-*"
MODELS = ("mnist", "xor")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Generated C of two models and of one with all options of a model, for the link too."""
    made = tmp_path_factory.mktemp("analysed")
    everything = ag.Model.supervised(
        nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 4)),
        input=(4, 20),
        loss=nn.CrossEntropyLoss(),
        optimizer=optim.Adam(),
        guard="gradients",
        split=True,
        restore_after=3,
    )
    models = {**{name: load_model(name)[0] for name in MODELS}, "everything": everything}
    for name, model in models.items():
        program = compile_model(model, name, ("ref",))
        for file, text in {**emit(program), f"{name}_link.c": link_source(program)}.items():
            (made / file).write_text(text)
    return made


@pytest.fixture(scope="module")
def sources(root, folder):
    """The runtime, the host's support, the link's main program, and the generated C."""
    own = [
        *root.glob("runtime/*.c"),
        *root.glob("boards/support/host/*.c"),
        *root.glob("boards/support/link/*.c"),
    ]
    found = sorted([*own, *folder.glob("*.c")])
    assert len(found) > 15
    return found


@pytest.fixture(scope="module")
def includes(root, folder):
    return [f"-I{d}" for d in (folder, root / "runtime", *registry.load(("ref",)).include_dirs())]


def clean(words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=600)
    found = [line for line in (done.stdout + done.stderr).splitlines() if "warnings generated" not in line]
    assert done.returncode == 0, "\n".join(found)


def clang_tidy(checks, sources, includes, *options):
    words = ["clang-tidy", "--quiet", "--warnings-as-errors=*", f"--checks={checks}", *options]
    clean([*words, *sources, "--", "-std=c99", *includes])


def test_clang_tidy(sources, includes):
    clang_tidy(TIDY, sources, includes)


@pytest.mark.parametrize("folder", ["ref", "fast", "host", "compare"])
def test_clang_tidy_of_kernels(folder, root):
    """Those in C that any computer compiles; without the analyser, which takes longer than all other checks."""
    found = sorted(root.glob(f"kernels/{folder}/*.c"))
    folders = (root / "kernels", root / "kernels" / "ref", root / "kernels" / folder, root / "runtime")
    words = [f"-I{d}" for d in folders]
    if folder in ("fast", "host"):
        found = sorted({*found, *(source.path for source in registry.load((folder,)).backends[0].sources)})
        words.append(f"-DAG_BACKEND={folder}")
    assert len(found) > 3
    clang_tidy(QUICK, found, words, "--header-filter=/kernels/")


LONG_TABLE = re.compile(r"= \{[^;]{2000,}?\};")


def test_clang_tidy_of_all_examples(includes, tmp_path):
    """Without the numbers of long tables, megabytes that take longer than all code; short ones are of the same form."""
    for name in EXAMPLES:
        for file, text in files(name).items():
            (tmp_path / file).write_text(LONG_TABLE.sub("= {0};", text))
    clang_tidy(QUICK, [tmp_path / f"{name}.c" for name in EXAMPLES], [f"-I{tmp_path}", *includes])


def test_cppcheck(sources, includes):
    checks = ["--std=c99", "--enable=warning,portability,performance", "--error-exitcode=1", "--inline-suppr"]
    known = subprocess.run(["cppcheck", "--help"], capture_output=True, text=True, check=True).stdout
    if "--check-level" in known:  # since 2.11 it limits itself otherwise, and says so
        checks.append("--check-level=exhaustive")
    clean(["cppcheck", "--quiet", "-j", "2", *checks, *includes, *sources])


def test_gccs_analyser(sources, includes, tmp_path):
    for source in sources:
        clean(
            [
                "gcc",
                "-std=c99",
                "-O2",
                "-fanalyzer",
                *STRICT_FLAGS,
                *includes,
                "-c",
                source,
                "-o",
                tmp_path / "x.o",
            ]
        )


RUN = """\
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static {name}_trainer t, copy;
static unsigned char saved[sizeof t + 64];
static int put(void *ctx, uint32_t at, const void *data, uint32_t n) {{
    (void)ctx;
    memcpy(saved + at, data, n);
    return 0;
}}
static int get(void *ctx, uint32_t at, void *data, uint32_t n) {{
    (void)ctx;
    memcpy(data, saved + at, n);
    return 0;
}}
int main(void) {{
    float *x = malloc({inputs} * sizeof *x), *scores = malloc({outputs} * sizeof *scores), loss = 0.0f;
    uint8_t *label = malloc({batch});
    int status = {name}_init(&t, 0);
    for (int step = 0; step < 20 && status == 0; step++) {{
        for (int i = 0; i < {inputs}; i++) {{
            x[i] = (float)((i * 7 + step * 13) % 32) / 32.0f;
        }}
        for (int i = 0; i < {batch}; i++) {{
            label[i] = (uint8_t)((i + step) % 2);
        }}
        status = {name}_train_step(&t, x, label, {n}0.01f, &loss);
    }}
    status = status != 0 ? status : {name}_predict(&t, x, {n}scores);
    status = status != 0 ? status : {name}_save(&t, put, NULL);
    status = status != 0 ? status : {name}_load(&copy, get, NULL);
    printf("%d %d\\n", status, memcmp(&t, &copy, {upper}_STATE_BYTES));
    free(x);
    free(scores);
    free(label);
    return 0;
}}
"""
SIZES = {"mnist": (784, 10, 1), "xor": (8, 8, 4)}


@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("name", MODELS)
def test_generated_c_under_the_sanitizers(name, cc, folder, includes, tmp_path):
    """Arrays of exactly the sizes that the header tells, on the heap, where an access beside them is seen."""
    inputs, outputs, batch = SIZES[name]
    n = "" if batch == 1 else f"{batch}, "
    words = {
        "name": name,
        "upper": name.upper(),
        "inputs": inputs,
        "outputs": outputs,
        "batch": batch,
        "n": n,
    }
    (tmp_path / "main.c").write_text(RUN.format(**words))
    kernels = [s.path for s in registry.load(("ref",)).sources() if s.path.stem in ("gemm", "gemv", "ger")]
    files = [tmp_path / "main.c", folder / f"{name}.c", folder / f"{name}_params.c", *kernels]
    flags = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *includes, "-lm")
    program = compile_c(cc, files, tmp_path / "run", flags)
    done = subprocess.run([program], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "0 0\n"), done.stderr


def test_the_tools_are_those_of_the_set_up():
    """`./scons test` installs what these tests call."""
    code = "from autodiff_gen.targets.toolchain import TESTS; print(*[p for ps, _ in TESTS for p in ps])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"clang-tidy", "cppcheck", "libclang-rt-dev"} <= set(done.stdout.split())
