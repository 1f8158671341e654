"""The reference of the command line, from the definitions of the arguments."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from intro import intro

from autodiff_gen.cli.main import _parser


def page(root: Path) -> str:
    """The page of reference/command-line.md."""
    parser = _parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [intro("command-line"), "## autodiff-gen", _table(("command", ""), _summaries(commands.choices))]
    parts += [_command(name, command) for name, command in commands.choices.items()]
    sys.path.insert(0, str(root / "site_scons"))
    import commandline  # of SCons, which is in the same environment

    sys.path.remove(str(root / "site_scons"))
    parts += ["## ./scons", "`./scons [board=...] [model=...] [target...]`", "### Targets"]
    parts += [
        _table(("target", ""), [(f"`{k}`", v) for k, v in commandline.TARGETS.items()]),
        "### Options of scons",
    ]
    parts += [_table(("option", ""), [(f"`{k}=`", v) for k, v in commandline.KEYS.items()])]
    return "\n\n".join(parts) + "\n"


def _summaries(commands: dict[str, argparse.ArgumentParser]) -> list[tuple[str, str]]:
    return [(f"[`{name}`](#{name})", command.description or "") for name, command in commands.items()]


def _command(name: str, command: argparse.ArgumentParser) -> str:
    usage = re.sub(r"\s+", " ", command.format_usage().removeprefix("usage: ")).replace(" [-h]", "").strip()
    rows = [(_flag(a), _help(a)) for a in command._actions if not isinstance(a, argparse._HelpAction)]
    table = f"\n\n{_table(('argument', ''), rows)}" if rows else ""
    return f"### {name}\n\n{command.description}\n\n    {usage}{table}"


def _flag(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest.upper()
    value = f" {metavar}" if action.nargs != 0 else ""
    return f"`{', '.join(action.option_strings)}{value}`" if action.option_strings else f"`{metavar}`"


def _help(action: argparse.Action) -> str:
    text = (action.help or "") % {"default": action.default}
    if action.choices:
        text += f"; one of {', '.join(map(str, action.choices))}"
    return text + (" (required)" if action.required and action.option_strings else "")


def _table(head: tuple[str, ...], rows: list[tuple[str, str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(
        [*lines, *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)]
    )
