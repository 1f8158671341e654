"""Exceptions for the user's mistakes: each message is one line that says what is wrong, where, and how to fix it."""

from __future__ import annotations


class AutodiffError(Exception):
    """Base of all errors that are printed to the user without a traceback."""


class ShapeError(AutodiffError):
    """Shapes, dtypes or arguments that an op does not accept."""


class ModelError(AutodiffError):
    """A model file or an `ag.Model` that cannot be built."""


class GraphError(AutodiffError):
    """A graph that violates a rule of the IR (two parameters with one name, an op without a gradient)."""


class BoardError(AutodiffError):
    """A board profile that is unknown, malformed, or contradicts itself."""


class KernelError(AutodiffError):
    """A kernel backend or kernel table that is unknown or malformed."""


class PlanError(AutodiffError):
    """A memory plan that does not fit the board."""


class DataError(AutodiffError):
    """A data set that is missing, truncated or damaged."""


class ToolError(AutodiffError):
    """A compiler, emulator or probe that is missing or failed."""
