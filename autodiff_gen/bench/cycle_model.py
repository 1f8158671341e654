"""Estimate cycles from executed instructions: a fixed cost for each instruction class, by core.

The model has no stalls, flash wait states or caches, and assumes that half of the branches are taken: report the
estimate together with the instruction count, not instead of it. On a board the same probes measure cycles. Sources: the
Technical Reference Manuals of Cortex-M3 (100165, 18.2) and Cortex-M4 (100166, 3.3 and 7.2.3); the Cortex-M55
Optimization Guide (102692: a Helium instruction takes two beats). M7, M33, A7 and A53, whose manuals have no table, use
the most similar of these, with half a cycle for dual-issued instructions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# integer, multiply, divide; load and store of one register, each additional register; branch; floating point:
# arithmetic, multiply-accumulate, division and square root; a 128-bit vector instruction
CLASSES = ("int", "mul", "div", "load", "store", "more", "branch", "fp", "fma", "fdiv", "vector")
_M3 = (1, 1, 7, 2, 1, 1, 2, 1, 3, 14, 0)
_M7 = (0.5, 1, 8, 1, 1, 0.5, 1, 1, 1, 16, 0)
CORES: Mapping[str, tuple[float, ...]] = {
    "cortex-m0plus": (1, 1, 30, 2, 2, 1, 2, 0, 0, 0, 0),
    "cortex-m3": _M3,
    "cortex-m4": _M3,
    "cortex-m33": (1, 1, 6, 2, 1, 1, 2, 1, 3, 14, 0),
    "cortex-m7": _M7,
    "cortex-m55": (1, 1, 8, 1, 1, 0.5, 2, 1, 1, 14, 2),
    "cortex-a7": (0.5, 1, 8, 1, 1, 0.5, 1, 1, 1, 18, 4),
    "cortex-a53": (0.5, 1, 8, 1, 1, 0.5, 1, 1, 1, 12, 1),
}
_BRANCH = re.compile(
    r"(b|bl|bx|blx|cbn?z|tbn?z|tb[bh]|ret|br|blr|le|letp|wls|wlstp)(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?"
    r"|b\.\w+"
)


def estimate(core: str, profile: Mapping[int, int], code: Mapping[int, tuple[str, str]]) -> float | None:
    """Cycles of a run: `profile` has the executions of each address, `code` its mnemonic and operands. None for a core
    without a cost table."""
    if core not in CORES:
        return None
    costs = dict(zip(CLASSES, CORES[core], strict=True))
    return sum(times * cycles(costs, *code.get(address, ("nop", ""))) for address, times in profile.items())


def cycles(costs: Mapping[str, float], mnemonic: str, operands: str) -> float:
    """Cycles of one instruction in objdump's syntax."""
    name = mnemonic.partition(".")[0] if not mnemonic.startswith("b.") else mnemonic
    registers = _register_count(operands)
    if name.startswith(
        ("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop", "ldrd", "strd", "ldp", "stp")
    ):
        kind = "load" if name.startswith(("ld", "pop", "vld", "vpop")) else "store"
        extra = costs["branch"] if "pc" in operands.partition("{")[2] else 0.0
        return costs[kind] + costs["more"] * (max(registers, 2) - 1) + extra
    vector = bool(re.search(r"\bq\d|\bv\d+\.", operands))
    if name.startswith(("vldr", "vld", "ld")):
        return max(costs["load"], costs["vector"] if vector else 0.0)
    if name.startswith(("vstr", "vst", "st")):
        return max(costs["store"], costs["vector"] if vector else 0.0)
    if _BRANCH.fullmatch(name):
        return costs["branch"]
    if vector:
        return costs["vector"]
    if name.startswith(("vdiv", "vsqrt", "fdiv", "fsqrt")):
        return costs["fdiv"]
    if name.startswith(("vfma", "vfms", "vfnm", "vmla", "vmls", "fmadd", "fmsub", "fnm")):
        return costs["fma"]
    if name.startswith("v") or re.search(r"\b[sd]\d+\b", operands):
        return costs["fp"]
    if name.startswith(("sdiv", "udiv")):
        return costs["div"]
    if name.startswith(("mul", "mla", "mls", "umul", "smul", "umla", "smla", "madd", "msub")):
        return costs["mul"]
    return costs["int"]


def _register_count(operands: str) -> int:
    """The number of registers in a register list: {s0, s2-s5} has five."""
    total = 0
    for part in operands.partition("{")[2].partition("}")[0].split(","):
        numbers = [int(n) for n in re.findall(r"[a-z]+(\d+)", part)]
        total += numbers[1] - numbers[0] + 1 if len(numbers) == 2 else 1
    return total
