"""Programs that call a model: NAME_link.c, its memory and entry functions as the board link takes them
(runtime/ag_link.h), and a main program to begin with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.identifiers import Scope
from ..ir.types import bound
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..targets.installation import __version__
from .board_link_layout import LinkArray, LinkLayout, compared_classes, entry, link_layout
from .c_printer import PRINTER
from .exchanged_part import exchanged_part
from .files import templates
from .program import Entry, Program
from .program_regions import state_parts
from .shared_part import shared_part

_LR, _LOSS = c.Name("lr"), c.Name("loss")


def link_source(program: Program) -> str:
    """The text of NAME_link.c."""
    layout = link_layout(program)
    m = {a.name: c.Member("m", a.member) for a in (*layout.inputs, *layout.outputs)}
    trainer = c.Member("m", "trainer")
    train, predict = entry(program, "train_step"), entry(program, "predict")
    exchanged = exchanged_part(program)
    sums = {name: entry(program, name) for name in ("accumulate", "apply") if exchanged}
    return (
        templates()
        .get_template("link.c.j2")
        .render(
            p=program,
            state_parts=[(s.owner, s.c_name, size) for s, size in state_parts(program)],
            shared=shared_part(program),
            exchanged=exchanged,
            sum_calls={name: _call(e, e.c_name, trainer, m) for name, e in sums.items()},
            classes=_classes(layout),
            P=program.name.upper(),
            version=__version__,
            inputs=[_member(a) for a in layout.inputs],
            outputs=[_member(a) for a in layout.outputs],
            output_bytes=layout.output_bytes,
            output_row=layout.output_row,
            takes_lr=any(train.is_lr(a) for a in train.args),
            train_takes_n=train.takes_n,
            predict_takes_n=predict.takes_n,
            train_call=_call(train, train.c_name, trainer, m),
            part_call=_call(train, f"{program.name}_train_part", trainer, m),
            predict_call=_call(predict, predict.c_name, trainer, m),
            lr=c_syntax.float_literal(program.default_lr or 0.0),
        )
    )


def main_source(programs: Sequence[Program]) -> str:
    """The text of a main program that trains each on arrays that are to be filled."""
    models = [_trained(p, f"_{p.name}" if len(programs) > 1 else "") for p in programs]
    return templates().get_template("main.c.j2").render(models=models, version=__version__)


def _trained(program: Program, of: str) -> dict[str, Any]:
    """The declarations and the call of the main program. of: the suffix of names if there are several models."""
    layout, train = link_layout(program), entry(program, "train_step")
    scope = Scope(["check", "loss", "step", "train", "trainer"])
    arrays = {a.name: f"{scope.fresh(a.member)}{of}" for a in layout.inputs}
    given = {name: c.Name(array) for name, array in arrays.items()}
    lr, loss = c.Name(f"{program.name.upper()}_DEFAULT_LR"), c.Unary("&", c.Name("loss"))
    return {
        "p": program,
        "of": of,
        "inputs": [
            _member(a) | {"member": arrays[a.name], "count": a.bytes(a.batch) // a.type.dtype.size}
            for a in layout.inputs
        ],
        "takes_n": train.takes_n,
        "call": _call(train, train.c_name, c.Name(f"trainer{of}"), given, lr, loss),
    }


def _classes(layout: LinkLayout) -> dict[str, Any] | None:
    """The comparison of an evaluation on the board: labels with the classes of the highest scores."""
    found = compared_classes(layout)
    if found is None:
        return None
    label, scores = found
    count = bound(scores.type.shape, scores.batch)
    return {
        "label": layout.inputs.index(label),
        "label_bytes": label.type.dtype.size,
        "count": count[1],
        "inner": math.prod(count[2:]),
        "comment": f"{label.name}: classes of {scores.name}",
    }


def _member(a: LinkArray) -> dict[str, Any]:
    return {
        "c_type": a.type.dtype.c,
        "member": a.member,
        "count": a.count,
        "comment": f"{a.type!r} {a.name}",
        "fixed": a.fixed,
        "row": a.row,
        "is_target": "true" if a.is_target else "false",
        "is_f32": "true" if a.type.dtype.name == "f32" else "false",
    }


def _call(
    e: Entry,
    function: str,
    trainer: c.Expr,
    arrays: Mapping[str, c.Expr],
    lr: c.Expr = _LR,
    loss: c.Expr = _LOSS,
) -> str:
    """The call of an entry with arrays by name; n is the caller's."""
    arguments: list[c.Expr] = [c.Unary("&", trainer)]
    for a in e.parameters:
        if a is None:
            arguments.append(c.Name("n"))
        elif e.is_lr(a):
            arguments.append(lr)
        elif a.role == "output" and a.name not in arrays:
            arguments.append(loss)
        else:
            array = arrays[a.name]
            arguments.append(c.Element(array, c.number(0)) if a.by_value else array)
    return PRINTER.expression(c.Call(function, tuple(arguments)))
