"""The command line: `autodiff-gen COMMAND ...`, which SCons and PlatformIO call too.

An error of the user is one line on stderr and exit code 1 (2 for the command line); a traceback is a bug.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from .. import progress
from ..errors import AutodiffError, DataError, ToolError, fitted
from ..targets.installation import __version__
from ..targets.schema import near
from . import bench, build, catalog, check, device, fleet, help_error, plan, report


class _UsageError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    """Report errors as one line with the closest match, without argparse's usage text."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{message}; see {self.prog} --help")

    def parse_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            word = unknown[0].split("=")[0]
            flags = [f for f in _flags(self, known) if f.startswith("--")]
            what = (
                f"unknown option {word!r}{near(word, flags)}"
                if word.startswith("-")
                else f"unexpected argument {unknown[0]!r}"
                + (f": {known.command} serves one model" if os.path.exists(word) and "model" in known else "")
            )
            raise _UsageError(what)
        return known


def _flags(parser: argparse.ArgumentParser, known: argparse.Namespace) -> list[str]:
    actions = list(parser._actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and known.command is not None:
            actions += action.choices[known.command]._actions
    return list(dict.fromkeys(flag for action in actions for flag in action.option_strings))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    # Graphs are large, full of cycles and live long: looking for garbage took a third of the time, at the end a tenth.
    gc.set_threshold(5_000_000, 30, 30)
    atexit.register(gc.freeze)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # as stderr is: paths may not be in the terminal's encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = _parser()
        _check_command(parser, words)
        args = parser.parse_args(words)
        _check_output(args)
        with progress.on_terminal(sys.stderr):
            code: int = args.run(args)
        sys.stdout.flush()
        return code
    except _UsageError as error:
        print(f"error: {fitted(str(error))}", file=sys.stderr)
        return 2
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:  # where no command says more: a path that is too long, a disk that is full
        what = ToolError(f"cannot read or write {error.filename or 'a file'}: {error.strerror or error}")
        print(f"error: {what}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command that is not run. Raises DataError."""
    try:
        return _parser().parse_args(words)
    except _UsageError as error:
        raise DataError(str(error)) from None


def _check_command(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    if not words:
        raise _UsageError(f"no command given; choose from {', '.join(sub.choices)}; see {parser.prog} --help")
    if not words[0].startswith("-") and words[0] not in sub.choices:
        raise _UsageError(f"unknown command {words[0]!r}{near(words[0], sub.choices)}")


def _check_output(args: argparse.Namespace) -> None:
    """Raise where the file to write is one that the command reads, such as the model."""
    out = getattr(args, "out", None)
    if not isinstance(out, Path) or not out.is_file():
        return
    for name, path in vars(args).items():
        if name != "out" and isinstance(path, str | Path) and os.path.isfile(path) and out.samefile(path):
            raise _UsageError(f"--out {out} is a file that the command reads ({name}); choose another")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="autodiff-gen",
        description="Compile Python models to C that trains them on a microcontroller.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"autodiff_gen {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(name, help=help, description=help, allow_abbrev=False)

    for group in (build, check, report, plan, help_error, device, fleet, bench, catalog):
        group.add_commands(command)
    return parser
