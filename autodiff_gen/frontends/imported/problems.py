"""The problems of an import, collected so that one error lists all of them."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...errors import LONGEST, AutodiffError, ModelError, listed, shortened
from ...functional.alternatives import ALTERNATIVES

# Raised by code that reads a damaged node: its arguments are too few, or of other types or sizes than its op has.
MALFORMED = (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError, ValueError)


class Rejected(ModelError):
    """A problem that ends the import: no other form of the network is tried."""


# The problem of a node that raises one of MALFORMED.
DAMAGED = "has arguments that its definition does not allow; export it anew"


@contextlib.contextmanager
def importing(name: str) -> Iterator[None]:
    """Raises ModelError if the block raises one of MALFORMED, as for a damaged file."""
    try:
        yield
    except AutodiffError:
        raise
    except MALFORMED as error:
        raise ModelError(
            f"{name} cannot be imported: it is damaged, or of an unknown form; export it anew"
        ) from error


@dataclass
class Problems:
    """name: the name of the network or the file, for the message."""

    name: str
    found: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # (op, problem) -> places

    def add(self, op: str, what: str, source: str) -> None:
        """op: its original name; what: the problem, and what to use instead; source: the user's file and line, or the
        module."""
        places = self.found.setdefault((op, what), [])
        if source and source not in places:
            places.append(source)

    def unknown(self, op: str, known: Iterable[str], source: str, name: str = "") -> None:
        """Add an op that has no counterpart. known: the ops that have one; name: its name in torch, if the message can
        tell an alternative."""
        near = difflib.get_close_matches(op, list(known), n=1, cutoff=0.75)
        hint = f"; the nearest that has one is {near[0]}" if near else ""
        hint = f"; {ALTERNATIVES[name]}" if name in ALTERNATIVES else hint
        self.add(op, f"has no counterpart{hint}", source)

    def check(self, error_type: type[ModelError] = ModelError) -> None:
        """Raises this kind of error if there is a problem."""
        if not self.found:
            return
        texts = []
        for (op, what), places in self.found.items():
            where = listed(places)
            texts.append(f"{shortened(op)} {what}" + (f" ({where})" if where else ""))
        begin = f"{self.name} cannot be imported: "
        raise error_type(begin + listed(texts, LONGEST - len(begin) - len(" and 1,000 more"), "; "))
