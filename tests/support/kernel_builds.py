"""Every backend's kernels as shared libraries of the host, and the guards that tests put around their operands."""

import numpy as np
from c_build import HOST, KERNELS, WIDTHS, compiler, shared_library, widths
from objects_once import objects

from autodiff_gen.kernels import registry

GUARD = 5  # floats around each operand; an odd number, so that nothing is aligned to more than 4 bytes
PAD = np.float32(-7.625e30)  # in guards and between rows: one of it in a sum is seen
EPSILON = 2.0**-24
LOADED = [registry.load([name], root=KERNELS).backends[0] for name in registry.available(KERNELS)]
# (backend, compiler, width of vectors): those of the host at each width that this machine has, by one compiler
BUILDS = [(b, cc, "") for cc in HOST for b in LOADED if b.kernels and set(b.requires) <= {"host"}]
BUILDS += [
    (b, HOST[0], w) for b in LOADED if b.requires == ("host",) and not b.ldflags for w in widths() if w
]


class Libraries(dict):
    """BUILDS by (compiler, backend, width), each built with the backend's own flags when it is first needed."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __missing__(self, key):
        cc, name, width = key
        folder = self.folder / cc
        folder.mkdir(exist_ok=True)
        self[key] = build(next(b for b in LOADED if b.name == name), cc, folder, width)
        return self[key]


def build(backend, cc, folder, width=""):
    sources = [s.path for s in backend.sources]
    flags = ("-O2", *WIDTHS[width], *backend.sources[0].cflags)
    made = objects(compiler(cc, ("-fPIC", *flags)), sources)
    return shared_library(cc, [*made, *backend.ldflags], folder / f"{backend.name}{width}.so", flags)
