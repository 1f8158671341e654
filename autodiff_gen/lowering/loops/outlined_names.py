"""The names of functions that steps have in common, and of their parameters: names that hold for each caller.

block1_norm1_out, block2_norm2_out              -> out
lstm_bias_ih_l0_square_avg, lstm_bias_hh_l1_... -> bias_square_avg
d_lstm_h, d_lstm_c                              -> grad
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ...ir.identifiers import LIBRARY
from ...ir.names import Called
from ...ir.origin import BACKWARD, OUTPUT, UPDATE
from ..c import c_ast as c
from .outlined_form import Section, Variable

OPERAND = "x"  # an operand that is the result of another layer
OPERAND_GRADIENT = "d_x"  # a gradient that is computed from gradients of results
LOOPS = "loops"  # of steps with nothing in common
ROW = "row"  # the part of a value that scratch memory holds


PHASES = {BACKWARD: "backward", UPDATE: "update"}  # that a name tells
MOST = 3  # functions in a name: the last ones
Words = tuple[tuple[str, str], ...]  # functions or ops, each with the word of its phase


@dataclass(frozen=True)
class StepName:
    """The name of a step; is_part: another step computes the result of the call that the name ends with; functions: the
    words of the name without the parameters that the step reads; ops: of a name that has ops in place of functions."""

    name: str
    is_part: bool
    functions: Words = ()
    ops: Words = ()


def joined(words: Iterable[tuple[str, str]]) -> str:
    """`batch_norm_relu_backward` of relu and batch_norm, whose gradients are computed in this order. A gradient that
    recomputes its function is named only after the gradient."""
    parts = []
    found = list(dict.fromkeys(words))
    backward = PHASES[BACKWARD]
    once = [w for w in found if w[1] or (w[0], backward) not in found]
    for phase, group in groupby(once[-MOST:], lambda word: word[1]):
        functions = [function for function, _ in group]
        parts += functions[::-1] if phase == backward else functions
        parts += [phase] if phase else []
    return "_".join(parts)


def role_name(same: Sequence[Variable]) -> str:
    """The name of a parameter, from the variable that each section passes for it: the words that all names of the
    variables have in common, or else their role."""
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
        role = "grad" if first.is_const else OPERAND_GRADIENT
    elif all(isinstance(v.name, c.Member) for v in same):
        role = "param" if all(v.is_trained for v in same) else "state"
    else:
        role = OPERAND if first.is_const else OUTPUT
    return Called(role, part=part).text


def parameter_name(group: Sequence[Section], number: int) -> str:
    """The parameter name for an outer variable of the sections. A result that sections read together with its gradient
    is `out`. The only array that sections of several layers read is `x`."""
    columns = list(zip(*(section.outer for section in group), strict=True))
    read = [k for k, (v, *_) in enumerate(columns) if v.is_const and v.is_pointer]
    same = columns[number]
    name = role_name(same)
    is_gradient = all(v.called.is_gradient for v in same)
    if number not in read:
        is_taken = any(role_name(columns[k]) == name for k in read)
        return OPERAND_GRADIENT if is_taken and is_gradient else name
    gradients = [v.called.gradient for v in same]
    if name == OPERAND and any([v.called for v in columns[k]] == gradients for k in read):
        return OUTPUT
    has_states = any(isinstance(v.name, c.Member) for v, *_ in columns)
    is_one = read == [number] and not has_states and len({v.called for v in same}) > 1
    return OPERAND if is_one and not is_gradient else name


def function_names(
    groups: Sequence[Sequence[Section]], steps: Mapping[tuple[str, str], StepName], parts: Sequence[bool]
) -> list[str]:
    """The names of functions. Equal names get a word that tells them apart: the layer of the sections, else the last
    result that they write, else their entry. steps: by entry and number; parts: whether the sections are parts of their
    steps."""
    names = [_function_name(group, steps, is_part) for group, is_part in zip(groups, parts, strict=True)]
    for word_of in (_layer_of, _result_of, _entry_of):
        for name in [name for name, times in Counter(names).items() if times > 1]:
            same = [k for k, other in enumerate(names) if other == name]
            words = [word_of(groups[k]) for k in same]
            for k, word in zip(same, words, strict=True):
                if word and len(set(words)) > 1:
                    names[k] = f"{word}_{name}" if word_of is _layer_of else f"{name}_{word}"
    return names


def _layer_of(group: Sequence[Section]) -> str:
    """The layer of the states that sections use, else of the variables that they write, if all sections have the same
    one."""
    found = set()
    for section in group:
        states = [v for v in section.outer if isinstance(v.name, c.Member)]
        written = [v for v in section.outer if v.is_pointer and not v.is_const]
        found.add(next((v.called.layer for v in states + written if v.called.layer), ""))
    return found.pop() if len(found) == 1 else ""


def _result_of(group: Sequence[Section]) -> str:
    """The last variable that sections write, except scratch memory; empty where they write none."""
    written = [k for k, v in enumerate(group[0].outer) if v.is_pointer and not v.is_const]
    results = [k for k in written if group[0].outer[k].called.part != ROW]
    return role_name([section.outer[(results or written)[-1]] for section in group]) if written else ""


def _entry_of(group: Sequence[Section]) -> str:
    entries = {section.caller[0] for section in group}
    return entries.pop() if len(entries) == 1 else ""


def _function_name(group: Sequence[Section], steps: Mapping[tuple[str, str], StepName], is_part: bool) -> str:
    """The name of a function: the name of its steps, or the words that all names have in common. Where the first step
    is a part of a call, or the section is a part of the step, the name ends in the last result that the section
    writes."""
    callers = [steps[section.caller] for section in group]
    names = {step.name for step in callers}
    called = names.pop() if len(names) == 1 else _common_name(callers)
    name = f"{called}_array" if called in LIBRARY else called
    result = _result_of(group) if callers[0].is_part or is_part else ""
    return f"{name}_{result}" if result else name


def _common_name(steps: Sequence[StepName]) -> str:
    """The functions that all steps compute, else their ops."""
    for first, *others in ([s.functions for s in steps], [s.ops for s in steps]):
        common = [word for word in first if all(word in words for words in others)]
        if common:
            return joined(common)
    return LOOPS
