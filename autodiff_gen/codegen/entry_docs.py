"""The comment of an entry in NAME.h: its purpose, the shapes of its arguments, and the arguments that it checks."""

from __future__ import annotations

from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from .c_printer import PRINTER
from .entries import float_inputs
from .program import Arg, Entry


def entry_doc(entry: Entry) -> str:
    """The comment as lines of C."""
    on, of = (" on n samples", " of n samples") if entry.takes_n else ("", "")
    what = {
        "train_step": f"One step of training{on}; loss is the loss before the update.",
        "accumulate": f"Adds the gradients{of} to those that wait for apply; loss is theirs.",
        "apply": "One step of training by the gradients that were accumulated, which are cleared.",
        "predict": "Evaluation; leaves the weights as they are.",
        "predict_averaged": "Evaluation with the averages of the weights.",
    }.get(entry.name, "Outputs must not overlap inputs.")
    shapes = ", ".join(f"{a.c_name}{_dims(a)}" for a in entry.args if a.type.shape)
    n = f"; {entry.least_n} <= n <= the batch" if entry.takes_n else ""
    lines = [" ".join([what, *([shapes + n] if shapes else [])]), " ".join(_checked(entry))]
    return "\n".join(PRINTER.lines([c.Comment("\n".join(filter(None, lines)))]))


def _checked(entry: Entry) -> list[str]:
    """Which values of its arguments a call checks, and which it does not."""
    floats = [a.c_name for a in float_inputs(entry)]
    names = " and ".join([", ".join(floats[:-1]), floats[-1]] if floats[1:] else floats)
    finite = f"{names} {'are' if floats[1:] else 'is'} finite"
    is_guarded = entry.plan.graph.guard is not None
    checked = ["labels and indices are in range"] if entry.checks else []
    checked += [finite] if floats and is_guarded else []
    said = [f"Checks that {', and that '.join(checked)}."] if checked else []
    return [*said, *([f"Does not check that {finite}."] if floats and not is_guarded else [])]


def _dims(arg: Arg) -> str:
    return "[" + "][".join(c_syntax.extent(d) for d in arg.type.shape) + "]"
