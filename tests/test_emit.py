"""Generated C: golden files, warnings, C++, the same bytes everywhere, and its answer to bad arguments."""

import ctypes
import difflib
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from c_build import INCLUDES, KERNELS, compile_c

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file, load_model
from autodiff_gen.targets import board

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = sorted(p.parent.name for p in (ROOT / "examples").glob("*/model.py"))
WORKLOADS = sorted(p.stem for p in (ROOT / "bench" / "workloads").glob("w[0-9]*.py"))


def workload_model(name):
    return load_model(str(ROOT / "bench" / "workloads" / f"{name}.py"))[0]


def classifier(batch, layers=(6, 5, 3), optimizer=None, loss=None, **options):
    net = nn.Sequential(nn.Linear(*layers[:2]), nn.ReLU(), nn.Linear(*layers[1:]))
    optimizer = optimizer or optim.SGD(lr=0.1)
    return ag.Model.supervised(
        net, input=(batch, layers[0]), loss=loss or nn.CrossEntropyLoss(), optimizer=optimizer, **options
    )


def every_function():
    """One function of many kinds of ops, with its gradients."""
    x, w = ag.Input("x", (4, 6)), ag.Param("w", np.zeros((3, 6)))
    b, scale = ag.Param("b", np.zeros(3)), ag.Input("scale", ())
    z = F.matmul(x, w.T) + b
    y = F.where(z > 0.0, F.tanh(z), F.exp(z) * scale) / (1.0 + F.abs(z))
    loss = F.mean(F.softmax(y, 1) * F.log_softmax(z, 1)) + F.sum(F.max(F.sigmoid(z).T, 1)[0])
    return ag.function([x, w, b, scale], [loss, y, *ag.grad(loss, [x, w, b])], "every")


SOURCES = {
    **{name: lambda name=name: compile_file(load_file(name).made, name) for name in EXAMPLES},
    **{name: lambda name=name: compile_model(workload_model(name), name) for name in WORKLOADS},
    "momentum": lambda: compile_model(classifier(4, optimizer=optim.SGD(lr=0.1, momentum=0.9)), "momentum"),
    "in_parts": lambda: compile_model(
        classifier(4, optimizer=optim.Adam(), guard="gradients", split=True), "in_parts"
    ),
    "many_classes": lambda: compile_model(classifier(2, layers=(3, 2, 300)), "many_classes"),
    "regression": lambda: compile_model(classifier(2, loss=nn.MSELoss()), "regression"),
    "every": lambda: compile_function(every_function(), "every"),
}


# ---- golden files: each example with `ref`; for two, with every other list that a board names, the lines that differ

LISTS = {board.load(name).kernels.backends: name for name in board.names()}
GOLDENS = [(e, k) for e in EXAMPLES for k in LISTS if k == ("ref",) or e in ("lenet", "mnist")]


def golden_folder(example, kernels):
    return GOLDEN / f"{example}+{'+'.join(kernels)}"


@functools.cache
def with_ref(example):
    return emit(compile_file(load_file(example).made, example, ("ref",), board.load("host"), ram=1 << 30))


def as_stored(example, kernels, files):
    """The files of `ref`; of other kernels one file of the lines that differ, `-` for ref's."""
    if kernels == ("ref",):
        return files
    lines = []
    for name, text in with_ref(example).items():
        changed = difflib.unified_diff(text.splitlines(), files[name].splitlines(), lineterm="", n=0)
        lines += [name, *(line for line in list(changed)[2:] if not line.startswith("@@"))]
    return {f"{example}.diff": "\n".join(lines) + "\n"}


@pytest.mark.parametrize(("example", "kernels"), GOLDENS, ids=lambda v: v if type(v) is str else "+".join(v))
def test_golden(example, kernels, request):
    target = board.load("host" if kernels == ("ref",) else LISTS[kernels])
    compiled = compile_file(load_file(example).made, example, kernels, target, ram=1 << 30)
    files, folder = as_stored(example, kernels, emit(compiled)), golden_folder(example, kernels)
    if request.config.getoption("--update-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert sorted(p.name for p in folder.glob("*")) == sorted(files), (
        "run pytest --update-golden, read the diff"
    )
    for name, text in files.items():
        assert text == (folder / name).read_text(encoding="utf-8"), (
            f"{name}: pytest --update-golden, read the diff"
        )


@pytest.mark.parametrize("board_name", board.names())
def test_golden_files_are_what_every_board_gets(board_name):
    target = board.load(board_name)
    kernels = target.kernels.backends
    files = emit(compile_file(load_file("mnist").made, "mnist", kernels, target))
    for name, text in as_stored("mnist", kernels, files).items():
        assert text == (golden_folder("mnist", kernels) / name).read_text(encoding="utf-8"), name


def test_no_golden_folder_is_left_over():
    assert set(GOLDEN.iterdir()) == {golden_folder(*case) for case in GOLDENS}


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
    assert emit(SOURCES[name]()) == emit(SOURCES[name]())


# ---- compilers


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write one program's files; the folder."""
    folders = {}

    def write(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name)
            for file, text in emit(SOURCES[name]()).items():
                (folders[name] / file).write_text(text)
        return folders[name]

    return write


@pytest.mark.cc
@pytest.mark.parametrize("cc", ["gcc", "clang"])
@pytest.mark.parametrize("name", SOURCES)
def test_no_warning_under_the_strict_flags(name, cc, written, tmp_path):
    for source in sorted(written(name).glob("*.c")):
        flags = ("-c", "-O2", "-Wstrict-prototypes", f"-I{written(name)}")
        compile_c(cc, [source], tmp_path / "out.o", flags)


@pytest.mark.cc
@pytest.mark.parametrize("name", SOURCES)
def test_used_from_cpp(name, written, tmp_path):
    """A C++ program includes the header, links the C and calls it."""
    program = SOURCES[name]()
    folder, objects = written(name), []
    for source in (*sorted(folder.glob("*.c")), *sorted((KERNELS / "ref").glob("*.c"))):
        objects.append(compile_c("gcc", [source], tmp_path / f"{source.stem}.o", ("-c", f"-I{folder}")))
    call = f"{name}_init(&t, 0)" if program.is_model else "0"
    main = f"""#include "{name}.h"
static {program.struct} t;
int main() {{
    const int described = {name}_strstatus(-1)[0] == 'a' ? 0 : 1;
    return {call} + described + (sizeof t == {program.struct_bytes} ? 0 : 2);
}}
"""
    (tmp_path / "main.cpp").write_text(main)
    flags = [
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Wshadow",
        "-Werror",
        f"-I{folder}",
    ]
    command = [
        "g++",
        *flags,
        *INCLUDES,
        str(tmp_path / "main.cpp"),
        *map(str, objects),
        "-lm",
        "-o",
        str(tmp_path / "main"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 0


@pytest.mark.parametrize("name", SOURCES)
def test_what_generated_code_never_holds(name):
    for file, text in emit(SOURCES[name]()).items():
        for word in ("double", "malloc", "stdio", "restrict", str(ROOT), str(Path.home())):
            assert word not in text, (file, word)
        assert all(line == line.rstrip() for line in text.splitlines()), file
        assert text.endswith("\n") and not text.endswith("\n\n")


# ---- bad arguments to the generated C


NULL, OK, ERR_NULL, ERR_BATCH, ERR_LABEL, ERR_IO = None, 0, -1, -2, -3, -4
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


class Raw:
    """A trainer's C functions, called as C calls them; every call tells whether the struct changed."""

    def __init__(self, model):
        self.trainer = host_trainer(model)
        self.batch = model.batch
        self.x = np.zeros((self.batch, 6), dtype="float32")
        self.label = np.zeros(self.batch, dtype="uint8")
        self.out = np.full((self.batch, 3), 7.0, dtype="float32")

    def __call__(self, function, *args):
        before = bytes(self.trainer.memory)
        status = self.trainer.library[f"model_{function}"](*args)
        return status, bytes(self.trainer.memory) != before

    def train(self, **changed):
        names = {"t": self.t, "x": _p(self.x), "label": _p(self.label)}
        names |= {"n": ctypes.c_int32(self.batch)} if self.batch > 1 else {}
        names |= {"lr": ctypes.c_float(0.1), "loss": _p(self.out)}
        assert changed.keys() <= names.keys()
        return self("train_step", *(names | changed).values())

    def predict(self, **changed):
        names = {"t": self.t, "x": _p(self.x)} | ({"n": ctypes.c_int32(self.batch)} if self.batch > 1 else {})
        names |= {"scores": _p(self.out)}
        assert changed.keys() <= names.keys()
        return self("predict", *(names | changed).values())

    @property
    def t(self):
        return ctypes.byref(self.trainer.memory)


def _p(array):
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(params=[1, 4], ids=["batch1", "batch4"])
def raw(request):
    return Raw(classifier(request.param))


@pytest.mark.cc
def test_right_arguments_are_accepted(raw):
    assert raw.train() == (OK, True)
    assert raw.predict()[0] == OK


@pytest.mark.cc
@pytest.mark.parametrize("pointer", ["t", "x", "label", "loss"])
def test_a_null_pointer_to_train_step(raw, pointer):
    assert raw.train(**{pointer: NULL}) == (ERR_NULL, False)
    assert (raw.out == 7.0).all()


@pytest.mark.cc
@pytest.mark.parametrize("pointer", ["t", "x", "scores"])
def test_a_null_pointer_to_predict(raw, pointer):
    assert raw.predict(**{pointer: NULL}) == (ERR_NULL, False)
    assert (raw.out == 7.0).all()


@pytest.mark.cc
@pytest.mark.parametrize("label", [3, 4, 128, 255])
def test_a_label_out_of_range_anywhere_in_the_batch(raw, label):
    for row in range(raw.batch):
        raw.label[...] = 2
        raw.label[row] = label
        assert raw.train() == (ERR_LABEL, False)
        assert (raw.out == 7.0).all()
    raw.label[...] = 2
    assert raw.train() == (OK, True)


@pytest.mark.cc
def test_a_label_beyond_n_is_not_looked_at():
    raw = Raw(classifier(4))
    raw.label[3] = 200
    assert raw.train(n=ctypes.c_int32(3)) == (OK, True)


@pytest.mark.cc
@pytest.mark.parametrize("label", [-1, 300, 2**31 - 1, -(2**31)])
def test_wide_labels_out_of_range(label):
    raw = Raw(classifier(2, layers=(6, 2, 300)))
    raw.label = np.array([299, label], dtype="int32")
    assert raw.train() == (ERR_LABEL, False)
    raw.label[1] = 0
    assert raw.train() == (OK, True)


@pytest.mark.cc
@pytest.mark.parametrize("n", [0, -1, 5, 2**31 - 1, -(2**31)])
def test_a_number_of_rows_out_of_range(n):
    raw = Raw(classifier(4))
    assert raw.train(n=ctypes.c_int32(n)) == (ERR_BATCH, False)
    assert raw.predict(n=ctypes.c_int32(n)) == (ERR_BATCH, False)


@pytest.mark.cc
def test_null_pointers_to_init_save_and_load(raw):
    callback = _CALLBACK(lambda *_: 0)
    assert raw("init", NULL, ctypes.c_uint32(0)) == (ERR_NULL, False)
    for function in ("save", "load"):
        assert raw(function, NULL, callback, None) == (ERR_NULL, False)
        assert raw(function, raw.t, NULL, None) == (ERR_NULL, False)


@pytest.mark.cc
def test_a_callback_that_fails(raw):
    callback = _CALLBACK(lambda *_: 1)
    for function in ("save", "load"):
        assert raw(function, raw.t, callback, None) == (ERR_IO, False)


@pytest.mark.cc
def test_every_status_has_its_own_words(raw):
    strstatus = raw.trainer.library["model_strstatus"]
    strstatus.restype = ctypes.c_char_p
    words = [strstatus(status).decode() for status in (*range(-9, 2), -10, 2)]
    assert len(set(words[:11])) == 11
    assert words[11] == words[12] == "unknown status"
