"""Boards over the link. Each board has its own line; a line that breaks is opened again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from time import monotonic

from ..device.board import Board
from ..device.errors import Broken, LinkError, Unreachable
from ..device.rounds import Round
from ..device.store import wear
from ..errors import AutodiffError
from ..report.timeline import ANSWERED, FAILED, Visit
from .board_group import BoardResult, Failure
from .identities import SameIdentity, identities
from .round_request import RoundRequest


class LinkedBoard:
    """A board and how to reach it. `name`: its port or its folder, for messages. `kind`: the kind of board. `open`
    connects to the board and checks that it runs the program. `fresh`: the board forgets its rounds."""

    def __init__(self, name: str, kind: str, open: Callable[[], Board], fresh: bool = False) -> None:
        self.name, self.kind, self._open, self._fresh = name, kind, open, fresh
        self._board: Board | None = None
        self._lock, self._ended = threading.Lock(), False

    def connected(self) -> Board:
        """The board. Raises LinkError, DeviceError."""
        if self._board is None:
            try:
                board = self._open()
            except Broken:
                board = self._open()
            if self._fresh:
                try:
                    board.init()
                    if board.greeting.has_flash:  # otherwise a restart loads the last round
                        board.save()
                except BaseException:
                    board.close()
                    raise
                self._fresh = False
            with self._lock:
                if not self._ended:
                    self._board = board
                    return board
            board.close()
            raise LinkError(f"{self.name}: the connection broke: the run ended")
        return self._board

    def lost(self) -> bool:
        """Close a connection that broke; returns whether the line may be opened again."""
        with self._lock:
            board, self._board = self._board, None
            may = not self._ended
        if board is not None:
            board.close()
        return may

    def end(self) -> None:
        """Close the connection for good, while another thread uses it too."""
        with self._lock:
            self._ended = True
        self.lost()

    def named(self, error: AutodiffError) -> str:
        """An error of this board as text with the board's name."""
        return str(error) if self.name in str(error) else f"{self.name}: {error}"


class LinkedBoards:
    """The boards of several lines, which train at the same time. `visits`: what each did in the last round."""

    def __init__(self, lines: Sequence[LinkedBoard], first: int = 0) -> None:
        self.first, self.lines = first, lines
        self._visits: dict[int, Visit] = {}
        self._identities, self._lock = dict[str, int](), threading.Lock()  # by the name of a line

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def visits(self) -> list[Visit]:
        return [self._visits[k] for k in sorted(self._visits)]

    def connect(self) -> list[Failure]:
        """Connect to all boards; returns a failure for each board that does not answer now. Raises LinkError for a
        board that cannot take part at all, such as a board that runs another model, and SameIdentity."""

        def one(k: int) -> Failure | None:
            try:
                self.lines[k].connected()
            except Unreachable as error:
                return Failure(self.first + k, self.lines[k].named(error))
            except AutodiffError as error:
                raise LinkError(self.lines[k].named(error)) from None
            return None

        with ThreadPoolExecutor(max(len(self.lines), 1)) as pool:
            silent = [failure for failure in pool.map(one, range(len(self.lines))) if failure is not None]
        missing = {failure.board - self.first for failure in silent}
        there = [line for k, line in enumerate(self.lines) if k not in missing]
        names = [line.name for line in there]
        for own, name in zip(identities([line.connected() for line in there], names), names, strict=True):
            self._note(own, name)
        return silent

    def _note(self, identity: int, name: str) -> None:
        """Note the identity of the board at a line, 0 without one. Raises SameIdentity if a board at another line has
        it."""
        with self._lock:
            self._identities[name] = identity
            others = [n for n, own in self._identities.items() if own == identity and n != name]
        if identity and others:
            raise SameIdentity(others[0], name, identity)

    def wear(self) -> list[str]:
        """How a round wears the flash of boards: a line for each kind of flash."""
        found = []
        for line in self.lines:
            with suppress(AutodiffError):
                found.append(str(wear(line.connected())))
        return list(dict.fromkeys(found))

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        """See Members. The round begins at once; answers are returned as they come."""
        self._visits = {}
        pool = ThreadPoolExecutor(max(len(boards), 1))
        return self._answers(pool, [pool.submit(self._one, order, k) for k in boards])

    def _answers(
        self, pool: ThreadPoolExecutor, answers: Sequence[Future[BoardResult | Failure]]
    ) -> Iterator[BoardResult | Failure]:
        try:
            for answer in as_completed(answers):
                yield answer.result()
        except BaseException:  # Ctrl-C: no board is waited for
            self.end()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _one(self, order: RoundRequest, k: int) -> BoardResult | Failure:
        begin = monotonic()
        answer = self._with_another_try(order, k)
        state = FAILED if isinstance(answer, Failure) else ANSWERED
        kind = self.lines[k - self.first].kind
        self._visits[k] = Visit(k, kind, state, 0.0, 0.0, monotonic() - begin, 0.0)
        return answer

    def _with_another_try(self, order: RoundRequest, k: int) -> BoardResult | Failure:
        """A board whose connection breaks, as when the board restarts, is connected again and goes on with the round;
        at the third break the board fails."""
        line, settings, tries = self.lines[k - self.first], order.settings, 3
        while True:
            tries -= 1
            try:
                board = line.connected()
            except AutodiffError as error:
                return Failure(k, line.named(error))
            try:
                own = Round(board, order.number, order.weights, settings.local_buffers, settings.mask)
                self._note(own.identity, line.name)
                tested = own.evaluate() if settings.evaluate else None
                local = own.train(order.work(k))
                delta = own.difference(settings.encoding, order.seed(k))
                return BoardResult(k, own.samples, local, delta, tested, line.kind)
            except SameIdentity:
                raise
            except LinkError as error:
                if not (line.lost() and tries):
                    return Failure(k, line.named(error))
            except AutodiffError as error:  # the board rejects the round, or a step
                return Failure(k, line.named(error))

    def end(self) -> None:
        """Close all connections, while rounds run too."""
        for line in self.lines:
            line.end()
