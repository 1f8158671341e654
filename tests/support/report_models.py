"""Compiled models for the tests of the reports."""

from __future__ import annotations

from functools import cache

from autodiff_gen.codegen.program import Program
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.report.collect import collect
from autodiff_gen.report.program_report import Report
from autodiff_gen.targets import board

# Matrices; a scan; frozen layers; integers; values that are computed again; several functions.
MODELS = {
    "mnist": "stm32",
    "gesture": "stm32",
    "keywords": "mps2_an386",
    "keywords_int8": "mps2_an386",
    "resnet8": "mps2_an386",
    "scalar": "host",
}


@cache
def compiled(name: str) -> tuple[Program, Report]:
    """A model of MODELS for its board, whether it fits there or not, and its records."""
    b = board.load(MODELS[name])
    program = compile_file(load_file(name).made, name, None, b, must_fit=False)
    return program, collect(program, b, b.ram_bytes)
