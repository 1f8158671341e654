"""What a board did in a round, and how long that took."""

from __future__ import annotations

from dataclasses import dataclass

ANSWERED, LATE, VANISHED, FAILED = "answered", "late", "vanished", "failed"


@dataclass(frozen=True)
class Visit:
    """A board in a round, in seconds. Of a board over the link only the whole is known, which is `compute`."""

    board: int
    kind: str
    state: str
    delay: float
    download: float
    compute: float
    upload: float

    @property
    def seconds(self) -> float:
        return self.delay + self.download + self.compute + self.upload

    def cut(self, seconds: float) -> Visit:
        """The part of it until so many seconds after its begin."""
        parts, left = list[float](), seconds
        for part in (self.delay, self.download, self.compute, self.upload):
            parts.append(min(part, left))
            left -= parts[-1]
        return Visit(self.board, self.kind, self.state, *parts)
