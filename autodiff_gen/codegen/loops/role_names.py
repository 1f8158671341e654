"""What a function of loops that steps have in common calls its parameters, and what it is called: names that hold for
each of its callers.

    block1_norm1_out, block2_norm2_out              -> out
    lstm_bias_ih_l0_square_avg, lstm_bias_hh_l1_... -> bias_square_avg
    d_lstm_h, d_lstm_c                              -> grad
"""

from __future__ import annotations

import re
from collections import Counter
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
OPERAND_GRADIENT = "d_x"  # what is computed of gradients of results
ENDINGS = (
    "t",
    "part",
    "row",
)  # the last words of names of a slice at a time step, of samples and of scratch memory


@dataclass(frozen=True)
class Layers:
    """Modules in the names of values: what they are called there. parameters: the names of parameters."""

    names: Set[str]
    parameters: Set[str] = frozenset()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.names, key=lambda name: (-len(name), name))
        return re.compile(rf"(?<![^_])({'|'.join(map(re.escape, longest_first))})_(?=[A-Za-z])")

    def without(self, name: str) -> str:
        """A name without the names of modules."""
        return self._pattern.sub("", name) if self.names else name

    def of(self, name: str) -> str:
        """The innermost module in a name; empty where there is none."""
        found = self._pattern.findall(name) if self.names else []
        return found[-1] if found else ""


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
        role = "grad" if first.is_const else OPERAND_GRADIENT
    elif all(isinstance(v.name, c.Member) for v in same):
        role = "param" if {text_of(v) for v in same} <= layers.parameters else "state"
    else:
        role = OPERAND if first.is_const else OUTPUT
    return "_".join([role, *(w for w in ENDINGS if w in common)])


def parameter_name(group: Sequence[Loops], number: int, layers: Layers) -> str:
    """What a function calls an outer variable of its loops. A result that they read with its gradient is the result of
    their own function. The one array of several layers of which another one is computed needs no role."""
    columns = list(zip(*(loops.outer for loops in group), strict=True))
    texts = [[text_of(v) for v in column] for column in columns]
    read = [k for k, (v, *_) in enumerate(columns) if v.is_const and v.c_type.endswith("*")]
    name = role_name(columns[number], layers)
    is_gradient = name.startswith((f"{GRADIENT}_", "grad"))
    if number not in read:
        is_taken = any(role_name(columns[k], layers) == name for k in read)
        return OPERAND_GRADIENT if is_taken and is_gradient else name
    if name == OPERAND and [f"{GRADIENT}_{text}" for text in texts[number]] in [texts[k] for k in read]:
        return OUTPUT
    has_states = any(isinstance(v.name, c.Member) for v, *_ in columns)
    is_one = read == [number] and not has_states and len(set(texts[number])) > 1
    return OPERAND if is_one and not is_gradient else name


def function_names(
    groups: Sequence[Sequence[Loops]],
    layers: Layers,
    steps: Mapping[tuple[str, str], StepName],
    parts: Sequence[bool],
) -> list[str]:
    """The names of functions. Those that would be equal tell the layer of the loops, else the last result that they
    write, else their entry: the first that tells functions apart."""
    names = [function_name(g, layers, steps, is_part) for g, is_part in zip(groups, parts, strict=True)]
    for what in (_layer_of, _result_of, _entry_of):
        for name in [name for name, times in Counter(names).items() if times > 1]:
            same = [k for k, other in enumerate(names) if other == name]
            words = [what(groups[k], layers) for k in same]
            for k, word in zip(same, words, strict=True):
                if word and len(set(words)) > 1:
                    names[k] = f"{word}_{name}" if what is _layer_of else f"{name}_{word}"
    return names


def _layer_of(group: Sequence[Loops], layers: Layers) -> str:
    """The layer of the states that loops use, else of what they write, if it is the same one for all of them."""
    found = set()
    for loops in group:
        states = [v for v in loops.outer if isinstance(v.name, c.Member)]
        written = [v for v in loops.outer if v.c_type.endswith("*") and not v.is_const]
        found.add(next((layer for v in states + written if (layer := layers.of(text_of(v)))), ""))
    return found.pop() if len(found) == 1 else ""


def _result_of(group: Sequence[Loops], layers: Layers) -> str:
    return role_name([loops.outer[_result(group[0])] for loops in group], layers)


def _entry_of(group: Sequence[Loops], _: Layers) -> str:
    entries = {loops.caller[0] for loops in group}
    return entries.pop() if len(entries) == 1 else ""


def _result(loops: Loops) -> int:
    """The number of the last variable that loops write, except scratch memory."""
    written = [k for k, v in enumerate(loops.outer) if v.c_type.endswith("*") and not v.is_const]
    results = [k for k in written if not text_of(loops.outer[k]).endswith(f"_{ENDINGS[-1]}")]
    return (results or written)[-1]


def function_name(
    group: Sequence[Loops], layers: Layers, steps: Mapping[tuple[str, str], StepName], is_part: bool
) -> str:
    """The name of a function: the name of its first step. Where the step is a part of a call, or the loops are a part
    of the step, the name ends in the last result that the loops write, except scratch memory. steps: the names of steps
    by entry and number."""
    first, *_ = group
    step = steps[first.caller]
    same = {steps[loops.caller].name for loops in group}
    called = step.name if len(same) == 1 else step.ops or step.name
    name = f"{called}_array" if called in LIBRARY else called
    if not step.is_part and not is_part:
        return name
    return f"{name}_{_result_of(group, layers)}"
