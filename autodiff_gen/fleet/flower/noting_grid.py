"""Which clients of Flower failed in a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class NotingGrid:
    """A grid that notes errors in replies, and how many clients do not reply; a round sends one message or more to a
    client, and no further one to a client that failed. `failed`: how many clients failed."""

    def __init__(self, grid: Any) -> None:
        self._grid, self._errors = grid, list[str]()
        self._clients = self._silent = 0

    @property
    def failed(self) -> int:
        return len(self._errors) + self._silent

    @property
    def failures(self) -> list[str]:
        """The reason of each error, and how many clients did not reply."""
        silent = [f"{self._silent} of {self._clients} clients did not reply"] if self._silent else []
        return [*self._errors, *silent]

    def send_and_receive(self, messages: Sequence[Any], *, timeout: float | None = None) -> list[Any]:
        replies = list(self._grid.send_and_receive(messages, timeout=timeout))
        self._errors += [str(r.error.reason) for r in replies if r.has_error()]
        self._silent += len(messages) - len(replies)
        self._clients = max(self._clients, len(messages))
        return replies
