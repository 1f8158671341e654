"""NAME_link.c: a model's memory and entry functions as the board link takes them (runtime/ag_link.h)."""

from __future__ import annotations

from typing import Any

from ..lowering import c_ast as c
from ..lowering import c_syntax
from ..targets.installation import __version__
from .c_printer import PRINTER
from .files import templates
from .link_layout import LinkArray, entry, is_lr, link_layout
from .program import Entry, Program
from .regions import state_parts


def link_source(program: Program) -> str:
    """The text of NAME_link.c."""
    layout = link_layout(program)
    members = {a.name: a.member for a in (*layout.inputs, *layout.outputs)}
    train, predict = entry(program, "train_step"), entry(program, "predict")
    return (
        templates()
        .get_template("link.c.j2")
        .render(
            p=program,
            state_parts=[(s.owner, s.c_name, size) for s, size in state_parts(program)],
            P=program.name.upper(),
            version=__version__,
            inputs=[_member(a) for a in layout.inputs],
            outputs=[_member(a) for a in layout.outputs],
            output_bytes=layout.output_bytes,
            output_row=layout.output_row,
            takes_lr=any(is_lr(a) for a in train.args),
            train_takes_n=train.takes_n,
            predict_takes_n=predict.takes_n,
            train_call=_call(train, train.c_name, members),
            part_call=_call(train, f"{program.name}_train_part", members),
            predict_call=_call(predict, predict.c_name, members),
            lr=c_syntax.float_literal(program.default_lr or 0.0),
        )
    )


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


def _call(e: Entry, function: str, members: dict[str, str]) -> str:
    """The call of an entry with the members of `m`; n, lr and loss are the caller's."""
    arguments: list[c.Expr] = [c.Unary("&", c.Member("m", "trainer"))]
    n_is_due = e.takes_n
    for a in e.args:
        if n_is_due and (a.by_value or a.role == "output"):
            arguments.append(c.Name("n"))
            n_is_due = False
        if is_lr(a):
            arguments.append(c.Name("lr"))
        elif a.role == "output" and e.name == "train_step":
            arguments.append(c.Name("loss"))
        else:
            member = c.Member("m", members[a.name])
            arguments.append(c.Element(member, c.number(0)) if a.by_value else member)
    return PRINTER.expression(c.Call(function, tuple(arguments)))
