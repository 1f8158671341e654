"""The Python text of an imported network holds no text of its file: calls of known names, and literals."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hostile_networks import PAYLOAD
from pt2_files import saved_entries, written

from autodiff_gen.errors import ModelError
from autodiff_gen.frontends.files import program_of
from autodiff_gen.frontends.imported.program import ProgramCall
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.imported.text import Placeholders, literal
from autodiff_gen.frontends.imported.verify_source import checked

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("nothing_is_executed")]


def test_a_text_with_another_tree_is_rejected() -> None:
    def printer(head: str) -> Callable[[], tuple[str, None]]:
        return lambda: (f"net = {head}({literal(3)})\n", None)

    assert checked("net.pt2", printer("nn.Linear"))[0] == "net = nn.Linear(3)\n"
    for head in ("eval", "nn.Linear.__init__.__globals__", "open", "(lambda x: x)", "nn.Linear(1); print"):
        with pytest.raises(ModelError, match=r"net\.pt2 cannot be imported: it has names or values"):
            checked("net.pt2", printer(head))


def test_literals_are_values_of_known_types() -> None:
    for value in (
        3,
        -3,
        0.5,
        -1e-9,
        float("inf"),
        True,
        None,
        'a"b\n\\',
        "é\u2028\U0001f600",
        (1, (2.0, "x")),
        (),
    ):
        text, _, _ = checked("net.pt2", lambda v=value: (f"net = nn.f({literal(v)})\n", None))  # type: ignore[misc]
        assert eval(text.partition("nn.f")[2]) == value
    with pytest.raises(TypeError, match="list is no literal"):
        literal([1])
    marks = Placeholders()
    assert len({marks.of(str(k), k) for k in range(30_000)}) == 30_000


def test_forms_of_calls_hold_no_text_of_a_file() -> None:
    for form in ("{}[:, 3]", "{} + {}", "{}.shape[0]", "{} + 1e-09", "F.with_updates({}, {{{}: {}}})"):
        ProgramCall(form, ())
    for form in ("{}[a]", "{0.__class__}", "{!r}", "{}.__class__", "{} + open({})", f"{{}}[{PAYLOAD}]"):
        with pytest.raises(ValueError, match="another argument"):
            ProgramCall(form, ())


def test_the_printer_of_a_network_writes_the_same_lines_with_placeholders() -> None:
    program = program_of(written(saved_entries()))
    text, _, _ = checked("net.pt2", lambda: network_source(program))
    assert text == network_source(program)[0]
