"""The kernels of `ref` as a shared library of the host, and the guards that tests put around their operands."""

import numpy as np
from c_build import KERNELS, compiler, shared_library
from objects_once import objects

from autodiff_gen.kernels import registry

GUARD = 5  # floats around each operand; an odd number, so that nothing is aligned to more than 4 bytes
PAD = np.float32(-7.625e30)  # in guards and between rows: one of it in a sum is seen
EPSILON = 2.0**-24
REF = registry.load([], root=KERNELS).backends[0]


def build(backend, cc, folder):
    sources = [s.path for s in backend.sources]
    flags = ("-O2", *backend.sources[0].cflags)
    made = objects(compiler(cc, ("-fPIC", *flags)), sources)
    return shared_library(cc, made, folder / f"{backend.name}.so", flags)
