"""The functions of ag_math.h, compiled for the host."""

import pytest
from c_build import shared_library
from checkout import C


@pytest.fixture(scope="module")
def math_library(tmp_path_factory):
    return shared_library("gcc", [C / "math_sweep.c"], tmp_path_factory.mktemp("math") / "math.so")
