"""The command line of a measurement that prints its tables, or writes them into a section of a document."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from autodiff_gen.bench.markdown import replace_section
from autodiff_gen.errors import AutodiffError


def command(
    words: Sequence[str],
    about: str,
    section: str,
    kind: str,
    known: Collection[str],
    text: Callable[[Sequence[str]], str],
) -> int:
    """Measure the networks that `words` name, all of them without names. kind: how messages call one of `known`; text:
    the tables of some networks. Returns 0, or 1 after an error of one line."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"a {kind} (default: all)")
    parser.add_argument(
        "--docs", type=Path, metavar="FILE", help=f"write the section `{section}` of this document"
    )
    args = parser.parse_args(words)
    unknown = [name for name in args.names if name not in known]
    try:
        if unknown:
            raise AutodiffError(f"unknown {kind} {unknown[0]!r} (known: {', '.join(known)})")
        found = text(args.names)
        if args.docs is not None:
            replace_section(args.docs, section, found)
    except AutodiffError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(found)
    return 0
