"""What a function of loops that steps have in common calls its parameters, and what it is called: names that hold for
each of its callers.

    block1_norm1_out, block2_norm2_out              -> out
    lstm_bias_ih_l0_square_avg, lstm_bias_hh_l1_... -> bias_square_avg
    d_lstm_h, d_lstm_c                              -> grad
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from ...ir.identifiers import LIBRARY
from ...ir.origin import OUTPUT
from ...lowering.c import c_ast as c
from ..step_names import StepName
from .loop_forms import Loops, Outer

OPERAND = "x"  # what is read of the result of another layer
GRADIENT = "d"  # the first word of the name of a gradient
ENDINGS = (
    "t",
    "part",
    "row",
)  # the last words of names of a slice at a time step, of samples and of scratch memory


@dataclass(frozen=True)
class Layers:
    """Modules in the names of values: what they are called there."""

    names: Set[str]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.names, key=lambda name: (-len(name), name))
        return re.compile(rf"(?<![^_])({'|'.join(map(re.escape, longest_first))})_(?=[A-Za-z])")

    def without(self, name: str) -> str:
        """A name without the names of modules."""
        return self._pattern.sub("", name) if self.names else name


def text_of(variable: Outer) -> str:
    return variable.name.text if isinstance(variable.name, c.Name) else variable.name.name


def role_name(same: Sequence[Outer], layers: Layers) -> str:
    """What to call a variable that is given as that of each of the loops: the words that all of its names have in
    common, or what it is."""
    first = same[0]
    names = [re.sub(r"_\d+$", "", layers.without(text_of(v))) for v in same]
    words = [name.split("_") for name in names]
    common = [w for w in dict.fromkeys(words[0]) if all(w in others for others in words)]
    if any(not w.isdigit() and w != GRADIENT and w not in ENDINGS for w in common):
        name = names[0] if len(set(names)) == 1 else "_".join(common)
        return OPERAND if name == OUTPUT and first.is_const else name
    if not first.c_type.endswith("*"):
        return names[0]
    if common[:1] == [GRADIENT]:
        role = "grad"
    elif all(isinstance(v.name, c.Member) for v in same):
        role = "state"
    else:
        role = OPERAND if first.is_const else OUTPUT
    return "_".join([role, *(w for w in ENDINGS if w in common)])


def function_name(
    group: Sequence[Loops], layers: Layers, steps: Mapping[tuple[str, str], StepName], is_part: bool
) -> str:
    """The name of a function: the name of its first step. Where the step is a part of a call, or the loops are a part
    of the step, the name ends in the last result that the loops write, except scratch memory. steps: the names of steps
    by entry and number."""
    first, *_ = group
    step = steps[first.caller]
    name = f"{step.name}_array" if step.name in LIBRARY else step.name
    if not step.is_part and not is_part:
        return name
    written = [k for k, v in enumerate(first.outer) if v.c_type.endswith("*") and not v.is_const]
    results = [k for k in written if not text_of(first.outer[k]).endswith(f"_{ENDINGS[-1]}")]
    return f"{name}_{role_name([loops.outer[(results or written)[-1]] for loops in group], layers)}"
