"""What a function of loops that steps have in common calls its parameters, and what it is called: names that hold for
each of its callers.

    block1_norm1_out, block2_norm2_out              -> out, of compute_norm_out
    lstm_bias_ih_l0_square_avg, lstm_bias_hh_l1_... -> bias_square_avg
    d_lstm_h, d_lstm_c                              -> grad
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...ir.origin import OUTPUT
from ...lowering.c import c_ast as c
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
    """Modules in the names of values: by what each is called there, what kind of module its own name says, `norm` of
    `block1.norm2`; empty if that is a number."""

    kinds: Mapping[str, str]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.kinds, key=lambda name: (-len(name), name))
        return re.compile(rf"(?<![^_])({'|'.join(map(re.escape, longest_first))})_(?=[A-Za-z])")

    def without(self, name: str) -> str:
        """A name without the names of modules."""
        return self._pattern.sub("", name) if self.kinds else name

    def kind(self, name: str) -> str:
        found = self._pattern.search(name) if self.kinds else None
        return self.kinds[found[1]] if found else ""


def kind_of(path: str) -> str:
    """What kind of module the last name of its path says: `block1.norm2` is a norm."""
    return re.sub(r"[\d_]+$", "", path.rpartition(".")[2])


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


def function_name(group: Sequence[Loops], layers: Layers) -> str:
    """What a function is named after: the last of what its loops write, scratch memory aside, and the kind of module
    if that is the same for all loops: they update states or compute results."""
    first, *_ = group
    written = [k for k in first.passed if first.outer[k].c_type.endswith("*") and not first.outer[k].is_const]
    results = [k for k in written if not text_of(first.outer[k]).endswith(f"_{ENDINGS[-1]}")]
    same = [loops.outer[(results or written)[-1]] for loops in group]
    verb = "update" if isinstance(same[0].name, c.Member) else "compute"
    role = role_name(same, layers)
    kinds = {layers.kind(text_of(v)) for v in same}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if not kind or kind in role.split("_"):
        return f"{verb}_{role}"
    gradient = f"{GRADIENT}_" if role.startswith(f"{GRADIENT}_") else ""
    return f"{verb}_{gradient}{kind}_{role.removeprefix(gradient)}"
