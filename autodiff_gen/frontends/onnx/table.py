"""The table of ONNX ops: for each op the rule that calls our functions. Ops of other domains have the domain before the
name."""

from __future__ import annotations

from ..imported.rules import Rule
from .contrib_ops import OPTIMIZED
from .elementwise import ELEMENTWISE
from .estimators import ESTIMATORS
from .indexing import INDEXING
from .normalization import NORMALIZATION
from .random import RANDOM
from .recurrent import RECURRENT
from .reductions import REDUCTIONS
from .resampling import RESAMPLING
from .shapes import SHAPES
from .windows import WINDOWS

TABLE: dict[str, Rule] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **WINDOWS,
    **NORMALIZATION,
    **RECURRENT,
    **SHAPES,
    **INDEXING,
    **RESAMPLING,
    **ESTIMATORS,
    **RANDOM,
    **OPTIMIZED,
}
