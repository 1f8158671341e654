"""Inputs with names that generated code needs: `table` gave wrong results without a word, others did not compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.targets import installation
from autodiff_gen.targets.build_commands import STRICT_FLAGS

_NAMES = """
    table sum i n t ag_expf sqrtf int32_t size_t loss arena tanh_x val f_work f F_OK F_BATCH ag_gemm_nn_f32_ref
"""
NAMES = _NAMES.split()
C = np.arange(6, dtype="float32").reshape(2, 3)


def made(name: str) -> ag.Function:
    x, s = ag.Input(name, (2, 3)), ag.Input("scale", ())
    y = F.exp(x * C) + s + F.sum(F.sqrt(F.abs(x)), 1, keepdim=True)
    return ag.function([x, s], [y, F.matmul(F.tanh(x), C.T)])


@pytest.mark.cc
def test_table() -> None:
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    y, z = made("table").on_host()(x, 0.5)
    assert np.allclose(y, np.exp(x * C) + 0.5 + np.sqrt(np.abs(x)).sum(1, keepdims=True), rtol=1e-5)
    assert np.allclose(z, np.tanh(x) @ C.T, rtol=1e-4, atol=1e-5)


@pytest.mark.cc
def test_every_name_compiles(tmp_path: Path) -> None:
    sources = []
    for name in NAMES:
        folder = tmp_path / name
        folder.mkdir()
        for file, text in emit(compile_function(made(name), "f")).items():
            (folder / file).write_text(text)
        sources.append(folder / "f.c")
    include = [f"-I{p}" for p in (*registry.load(["ref"]).include_dirs(), installation.runtime())]
    command = ["gcc", "-std=c99", *STRICT_FLAGS, "-fsyntax-only", *include, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_a_layer_named_as_a_macro() -> None:
    net = nn.Sequential(nn.Linear(3, 2))
    net.INT32_MAX = nn.Linear(2, 2)
    x = ag.Input("x", (2, 3))
    w = ag.Param("UINT8_MAX", np.ones(2, dtype="float32"))
    f = ag.function([x, w, *net.parameters()], [F.tanh(net.INT32_MAX(net[0](x))) * w])
    assert np.isfinite(
        f.on_host()(C, *(p.node.attrs["state"].init.array() for p in (w, *net.parameters())))[0]
    ).all()
