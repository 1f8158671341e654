"""What a function of statements that steps have in common calls its parameters, and what it is called: names that hold
for each of its callers.

    block1_norm1_out, block2_norm2_out              -> out
    lstm_bias_ih_l0_square_avg, lstm_bias_hh_l1_... -> bias_square_avg
    d_lstm_h, d_lstm_c                              -> grad
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.identifiers import LIBRARY
from ...ir.names import Called
from ...ir.origin import OUTPUT
from ..c import c_ast as c
from .common_form import Section, Variable

OPERAND = "x"  # what is read of the result of another layer
ROW = "row"  # the part of a value that scratch memory holds


@dataclass(frozen=True)
class StepName:
    """The name of a step; is_part: another step computes the result of the call that the name ends with."""

    name: str
    is_part: bool


def role_name(same: Sequence[Variable]) -> str:
    """What to call a variable that is given as that of each of the sections: the words that all of its names have in
    common, or what it is."""
    first = same[0]
    called = [v.called for v in same]
    words = [name.words.split("_") for name in called]
    common = [w for w in dict.fromkeys(words[0]) if all(w in others for others in words)]
    part = first.called.part if all(name.part == first.called.part for name in called) else ""
    is_gradient = all(name.is_gradient for name in called)
    if any(not w.isdigit() for w in common):
        is_same = all(w == words[0] for w in words)
        name = Called("_".join(words[0] if is_same else common), "", is_gradient, part).text
        return OPERAND if name == OUTPUT and first.is_const else name
    if not first.is_pointer:
        return first.called.words
    if is_gradient:
        role = "grad"
    elif all(isinstance(v.name, c.Member) for v in same):
        role = "state"
    else:
        role = OPERAND if first.is_const else OUTPUT
    return Called(role, part=part).text


def function_name(group: Sequence[Section], step: StepName, is_part: bool) -> str:
    """The name of a function: the name of its first step. Where the step is a part of a call, or the section is a part
    of the step, the name ends in the last result that the section writes, except scratch memory."""
    first, *_ = group
    name = f"{step.name}_array" if step.name in LIBRARY else step.name
    if not step.is_part and not is_part:
        return name
    written = [k for k, v in enumerate(first.outer) if v.is_pointer and not v.is_const]
    results = [k for k in written if first.outer[k].called.part != ROW]
    if not written:
        return name
    return f"{name}_{role_name([section.outer[(results or written)[-1]] for section in group])}"
