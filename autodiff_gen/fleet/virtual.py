"""Virtual time: how long a round would take on boards, counted while twins train. The time of a board is

    delay of late boards + download + local steps + upload

The local steps take time in proportion to their samples. A transfer takes the latency and its bytes divided by the rate
of the line; each frame that is lost takes another frame and twice the latency. A board that vanishes is gone at a
random moment of its round, and its work is lost. All is drawn from one seed, and does not depend on who takes part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..device.differences import Encoding
from ..report.timeline import ANSWERED, FAILED, LATE, VANISHED, Visit
from .board_group import BoardResult, Failure
from .conditions import Conditions, Profile
from .round_request import RoundRequest
from .twins import Twins

AROUND = 18  # bytes of a frame around its data: address, header, checksum, ends


@dataclass(frozen=True)
class Absent(Failure):
    """A virtual board that vanished, or was late."""


class VirtualTime:
    """Twins as boards of a profile. After a round, `visits` has its boards in order, and `seconds` is the time until
    the last answer, or until the deadline if there is one and a board did not answer."""

    def __init__(self, twins: Twins, profile: Profile, seed: int) -> None:
        self.first, self.twins, self._profile, self._seed = twins.first, twins, profile, seed
        self.visits: list[Visit] = []
        self.seconds = 0.0

    def __len__(self) -> int:
        return len(self.twins)

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        chosen = set(boards)
        plans = {visit.board: visit for visit in self._plans(order) if visit.board in chosen}
        failed = set()
        for k, visit in plans.items():
            if visit.state == VANISHED:
                yield Absent(k, f"vanished {visit.seconds:.1f} s after the round's begin")
        for answer in self.twins.round(order, [k for k, visit in plans.items() if visit.state != VANISHED]):
            visit = plans[answer.board]
            if isinstance(answer, Failure):
                failed.add(answer.board)
            elif visit.state == LATE:
                answer = Absent(answer.board, f"late: it needs {visit.seconds:.1f} s")
            yield answer
        self._end({k: replace(v, state=FAILED) if k in failed else v for k, v in plans.items()})

    def _end(self, visits: dict[int, Visit]) -> None:
        deadline = self._profile.deadline
        missing = any(v.state in (LATE, VANISHED) for v in visits.values())
        longest = max((v.seconds for v in visits.values()), default=0.0)
        self.seconds = deadline if deadline is not None and missing else longest
        self.visits = [v.cut(self.seconds) if v.seconds > self.seconds else v for v in visits.values()]

    def _plans(self, order: RoundRequest) -> Iterator[Visit]:
        """The visit of each board if no deadline cuts it."""
        rng = np.random.default_rng((self._seed, order.number, 0x71AE))
        boards = len(self)
        vanish, moment, late, delay = rng.random((4, boards))
        slots = self.twins.slots(order.settings.local_buffers)
        elements = sum(s.type.bytes // s.type.dtype.size for s in slots)
        down, encoding = sum(s.type.bytes for s in slots), order.settings.encoding
        deadline = self._profile.deadline
        for k, kind in enumerate(self._profile.boards):
            c = self._profile.kinds[kind]
            samples, most = self.twins.samples(k), self.twins.layout.records
            work = order.work(self.first + k).on(samples, most)
            share = (work.n or min(most, samples)) / most
            visit = Visit(
                self.first + k,
                kind,
                ANSWERED,
                -c.delay * float(np.log1p(-delay[k])) if late[k] < c.late else 0.0,
                _transfer(down, c, rng),
                work.steps * share * (c.step or 0.0),
                _transfer(upload_bytes(encoding, elements, int(c.payload)), c, rng),
            )
            if vanish[k] < c.vanish:
                yield replace(visit, state=VANISHED).cut(float(moment[k]) * visit.seconds)
            elif deadline is not None and visit.seconds > deadline:
                yield replace(visit, state=LATE)
            else:
                yield visit


def _transfer(size: int, c: Conditions, rng: np.random.Generator) -> float:
    """Seconds of a transfer of `size` bytes, with a random number of lost frames."""
    frames = max(1, -(-size // (int(c.payload) - 4)))
    again = int(rng.negative_binomial(frames, 1.0 - c.loss))
    per_frame = (size / frames + AROUND) / c.rate
    return c.latency + (frames + again) * per_frame + again * 2 * c.latency


@cache
def upload_bytes(encoding: str, elements: int, payload: int) -> int:
    """Bytes of data in the replies that send a difference."""
    how = Encoding.of(encoding)
    return sum(map(how.size, how.pieces(elements, payload)))
