"""How long to wait for a reply before the request is sent again."""

from __future__ import annotations

SHORTEST, LONGEST = 0.1, 2.0  # seconds; a NAK comes sooner
FIRST = 0.5  # before any reply was received


class Timeouts:
    """The timeout of each kind of request: the mean time of a reply and four times its deviation (RFC 6298)."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, float]] = {}

    def took(self, request: int, seconds: float) -> None:
        """A reply, to a request that was sent once, came after `seconds`."""
        if request not in self._known:
            self._known[request] = seconds, seconds / 2
            return
        mean, deviation = self._known[request]
        self._known[request] = (
            mean + (seconds - mean) / 8,
            deviation + (abs(seconds - mean) - deviation) / 4,
        )

    def of(self, request: int) -> float:
        """Seconds to wait for the reply."""
        if request not in self._known:
            return FIRST
        mean, deviation = self._known[request]
        return min(max(SHORTEST, mean + 4 * deviation), LONGEST)

    def longer(self, wait: float) -> float:
        """The next wait after one that was too short, or whose request was lost."""
        return min(wait * 1.5, LONGEST)
