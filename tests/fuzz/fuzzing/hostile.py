"""Values that break readers."""

from __future__ import annotations

import math
import random

from .process import CANARY

INTEGERS = (
    *(0, -1, 1, 2, 3, 7, 64, 255, 256, 65536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**62),
    *(2**63 - 1, -(2**63), 2**63, 2**64, 10**30, -(10**30)),
)
FLOATS = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 0.5, 1e39, 1e-10)
CODE = f"__import__('{CANARY}')"
STRINGS = (
    "", " ", "'", '"', "\\", "\n", "\r\n", "\0", "\t", "\u2028", "\u202e", "\x1b[31m", "é", "a" * 300, "a" * 20_000,
    CODE, f"'+{CODE}+'", f'"+{CODE}+"', f"0]+{CODE}+[0", f"x)\n{CODE}\n(", f'"""\n{CODE}\n"""', f"'''\n{CODE}\n'''",
    f"x\nimport {CANARY}\n", f"#\nimport {CANARY}", f"{{{CODE}}}", f"x if {CODE} else y", f"lambda: {CODE}",
    f"$(touch {CANARY})", f"`touch {CANARY}`", f";touch {CANARY};", f"| touch {CANARY}", "${HOME}", "%n%s%x",
    "../../../../../../tmp/" + CANARY, f"/tmp/{CANARY}", "/etc/passwd", "/dev/zero", "..", ".", "/", "a/../../b",
    "def", "class", "self", "None", "True", "net", "model", "nn", "F", "np", "ag", "init", "optim", "constants",
    "forward", "weight", "forward.weight", "training", "__init__", "__class__", "__dict__", "__builtins__", "x.y",
    "x..y", ".x", "x.", "0", "-1", "1e999", "nan", "0x10", "1_000", "\u0663", "\ufb01", "int32_t", "main", "NULL",
    "*/", "//", "/*", "??/", "{0.__class__}", "C:\\x",
)  # fmt: skip


def value(rng: random.Random) -> object:
    """Any value of JSON."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(INTEGERS)
    if kind == 1:
        return rng.choice(FLOATS)
    if kind in (2, 3):
        return rng.choice(STRINGS)
    if kind == 4:
        return rng.choice((None, True, False))
    return rng.choice(([], {}, [[]], [None] * 50, {"a": 1}, [0] * 1000, ["x", 1, None], {"": {}}))


def integer(rng: random.Random, old: int) -> int:
    """An integer, often near the old one."""
    if rng.random() < 0.5:
        return rng.choice(INTEGERS)
    return rng.choice(
        (old + 1, old - 1, -old, old * 2, old << rng.randrange(1, 40), old ^ (1 << rng.randrange(31)))
    )


def string(rng: random.Random, old: str) -> str:
    """A string, sometimes with the old one in it."""
    new = rng.choice(STRINGS)
    at = rng.randint(0, len(old))
    return new if rng.random() < 0.6 else old[:at] + new + old[at:]
