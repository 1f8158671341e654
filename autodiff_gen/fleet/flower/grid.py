"""Boards as clients of Flower in this process, for simulations of thousands of boards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import flwr
from flwr.app import Context, Error, Message, MessageType, RecordDict
from flwr.serverapp import Grid

from ...codegen.program import Program
from ...errors import DataError, ToolError, counted, pip_install
from ..board_group import BoardResult, Failure, Members
from ..round_request import RoundSettings
from ..rounds import Heard
from .client import FAILED, replies
from .secure_client import is_secure, is_training, secured, without_secagg

VERSION = "1.42."  # of Flower: `_identify` sets a private detail
RUN, SERVER = 1, 1
POLLS = 4  # strategies ask once or twice in a round for nodes, and each second if they miss some


class LocalGrid(Grid):  # type: ignore[misc]
    """`clients`: the boards of each node, in ascending order. All boards of a round train at the same time. `failures`:
    in the replies to the last messages. Raises ToolError with another version of Flower, and DataError for a strategy
    that waits for more nodes than there are."""

    def __init__(
        self,
        members: Sequence[Members],
        program: Program,
        settings: RoundSettings,
        clients: Mapping[int, Sequence[int]],
    ) -> None:
        _identify()
        self._members, self._program, self._settings, self._clients = (
            members,
            program,
            settings,
            dict(clients),
        )
        self._polls = 0  # since the last message
        self._replies: dict[str, Any] = {}
        self._names = map(str, itertools.count(1))
        self._run: Any = None
        self._contexts = {node: Context(RUN, node, {}, RecordDict(), {}) for node in self._clients}
        self.heard: Heard = lambda answer: None
        self.failures: list[Failure] = []

    def set_run(self, run: Any) -> None:
        self._run = run

    @property
    def run(self) -> Any:
        return self._run

    def create_message(
        self,
        content: Any,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Any:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        self._polls += 1
        if self._polls > POLLS:
            raise DataError(
                f"the strategy waits for more clients than the {counted(len(self._clients), 'client')} of this run: "
                "lower its fraction_train, min_train_nodes or min_available_nodes"
            )
        return list(self._clients)

    def push_messages(self, messages: Iterable[Any]) -> Iterable[str]:
        names = []
        for reply in self._answered(messages):
            names.append(next(self._names))
            self._replies[names[-1]] = reply
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Any]:
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(self, messages: Iterable[Any], *, timeout: float | None = None) -> Iterable[Any]:
        return list(self._answered(messages))

    def _answered(self, messages: Iterable[Any]) -> Iterator[Any]:
        """Replies in the order of the nodes, so that sums are equal in each run."""
        self._polls = 0
        ordered = sorted(messages, key=lambda m: (id(m.content), m.metadata.dst_node_id))
        if ordered and is_secure(ordered[0]):
            yield from self._secured({m.metadata.dst_node_id: m for m in ordered})
            return
        self.failures = []
        for _, same in itertools.groupby(ordered, key=lambda m: id(m.content)):
            sent = [(message, self._clients[message.metadata.dst_node_id]) for message in same]
            if sent[0][0].metadata.message_type == MessageType.TRAIN:
                yield from replies(self._members, self._program, self._settings, sent, self._hear)
            else:
                error = Error(FAILED, "boards train only")
                yield from (Message(error=error, reply_to=message) for message, _ in sent)

    def _secured(self, messages: Mapping[int, Any]) -> Iterator[Any]:
        """Replies to messages of SecAgg+, by node. Where clients train, all train at the same time."""
        trained: dict[int, Any] = {}
        if is_training(next(iter(messages.values()))):
            self.failures = []
            sent = [(without_secagg(message), self._clients[node]) for node, message in messages.items()]
            answers = replies(self._members, self._program, self._settings, sent, self._hear)
            trained = dict(zip(messages, answers, strict=True))
        for node, message in messages.items():
            reply = secured(message, self._contexts[node], lambda message, context: trained[context.node_id])
            if reply.has_error() and node in trained and not trained[node].has_error():
                self.failures.append(Failure(self._clients[node][0], str(reply.error.reason)))
            yield reply

    def _hear(self, answer: BoardResult | Failure) -> None:
        if isinstance(answer, Failure):
            self.failures.append(answer)
        self.heard(answer)


def _identify() -> None:
    """Set the identity of a task, which messages need and a SuperLink sets otherwise: a private detail of Flower."""
    if not flwr.__version__.startswith(VERSION):
        raise ToolError(
            f"Flower {flwr.__version__} is installed, and boards in this process need {VERSION}x; "
            f"run: {pip_install('flwr')}"
        )
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, SERVER, RUN
