"""The C that the graph API prints, compiled and called."""

import ctypes
import re
import subprocess

import numpy as np

from autodiff_gen.frontends import graph as ag
from autodiff_gen.frontends.graph import Param
from autodiff_gen.targets.build_commands import STRICT_FLAGS

HEADERS = ["math.h", "stdint.h", "stdlib.h", "string.h"]
COMPILERS = ("gcc", "clang")


def compiled(cc, text, folder, *flags, name="model"):
    """Compile the only file of a folder; warnings are errors."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.c").write_text(text)
    command = [
        cc,
        "-std=c99",
        *STRICT_FLAGS,
        *flags,
        f"{name}.c",
        "-o",
        name,
        *([] if "-c" in flags else ["-lm"]),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return folder / name


class Library:
    """The generated C in this process, by the offsets that its own enum states."""

    def __init__(self, text, folder, cc="gcc", *flags):
        self.library = ctypes.CDLL(str(compiled(cc, text, folder, "-O2", "-shared", "-fPIC", *flags)))
        self.offsets = {k: int(v) for k, v in re.findall(r"^    (\w+) = (\d+),? ", text + " ", re.MULTILINE)}
        self.floats = int(re.search(r"GRAPH_FLOATS = (\d+)$", text, re.MULTILINE)[1])
        self.library.graph_new.restype = ctypes.POINTER(ctypes.c_float)
        self.pointer = self.library.graph_new()
        self.buf = np.ctypeslib.as_array(self.pointer, (self.floats,))

    def at(self, name, shape=()):
        start = self.offsets[f"{name}_OFFSET"]
        return self.buf[start : start + int(np.prod(shape))].reshape(shape)

    def call(self, name, *args):
        self.library[name].restype = None
        self.library[name](self.pointer, *args)


def classifier(**data):
    """A one-layer classifier: its parameters by name, the scores and the loss."""
    x, t = Param(None, shape=(1, 4), var_name="x"), Param(None, shape=(1, 3), var_name="t")
    w = Param(data.get("w"), shape=(3, 4), var_name="w")
    scores = ag.log_softmax(ag.matmul(x, w.t()))
    return x, t, w, scores, ag.nll_loss(scores, t)
