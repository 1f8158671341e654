"""The figures that `pio test` compares with on the board are what float64 and PyTorch give, and cover every kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest

from checkout import ROOT
from kernel_vectors import kernel_header
from model_vectors import model_header
from pio_project import examples

NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?f|-?\d+e[+-]\d+f")


def hold(path, text, request):
    """The stored file says the same; its figures may differ in the last bits, which depend on the machine."""
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    stored = path.read_text()
    assert NUMBER.sub("#", stored) == NUMBER.sub("#", text), (
        f"{path.relative_to(ROOT)}: pytest --update-golden {request.node.nodeid}"
    )
    ours, now = (np.array([float(n[:-1]) for n in NUMBER.findall(t)]) for t in (stored, text))
    np.testing.assert_allclose(ours, now, rtol=1e-6, atol=1e-9)
    assert len(ours) > 3


def test_kernel_figures(request):
    hold(ROOT / "platformio" / "test" / "kernel_figures.h", kernel_header(), request)


@pytest.mark.torch
@pytest.mark.parametrize("name", examples())
def test_figures_of_an_example_are_pytorchs(name, request):
    hold(ROOT / "examples" / name / "include" / "model_figures.h", model_header(name), request)
