"""Secure aggregation by SecAgg+ of Flower: clients send differences of weights with masks that cancel out in the sum,
so that the server learns the mean of all clients, not the difference of one.

SecAgg+ is written for the older interface of Flower's strategies. Here it makes one round: a client's message and reply
become FitIns and FitRes of that interface, and the mean becomes one reply, which the strategy reads as of one client.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitIns, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    RECORD_KEY_STATE,
    Key,
    Stage,
)
from flwr.compat.common import recorddict_compat as compat
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as RoundKey

from ...errors import DataError, counted, listed, quoted
from .client import ARRAYS, BOARDS, CONFIG, EXAMPLES, FAILED, LOSS, METRICS, serialized
from .strategies import number

LEAST, MOST_SHARES, THRESHOLD = 3, 11, 0.6  # clients, shares of a key, share of these that opens it
NAMES = "names"  # key in a message's config: the names of the arrays, which FitIns does not have
_SUMS = ("answered", "labels", "right")  # of the record about boards

Trains = Callable[[Any, Any], Any]  # by message and context


# ---- the clients


def is_secure(message: Any) -> bool:
    """Whether a message belongs to SecAgg+."""
    return bool(RECORD_KEY_CONFIGS in message.content.config_records)


def trains(message: Any) -> bool:
    """Whether the client trains for a message of SecAgg+; the other messages exchange keys."""
    stage = message.content.config_records[RECORD_KEY_CONFIGS][Key.STAGE]
    return bool(stage == Stage.COLLECT_MASKED_VECTORS)


def plain(message: Any) -> Any:
    """The message for which the client trains, as it is without SecAgg+."""
    ins = compat.recorddict_to_fitins(message.content, keep_input=True)
    config = dict(ins.config)  # it is a record of the message
    names = str(config.pop(NAMES)).split("\n")
    arrays = dict(zip(names, map(serialized, parameters_to_ndarrays(ins.parameters)), strict=True))
    content = RecordDict({ARRAYS: ArrayRecord(arrays), CONFIG: ConfigRecord(config)})
    found = copy.copy(message)
    found.content = content
    return found


class _Ended(Exception):
    """The client cannot take part: the reply is an Error."""


def secured(message: Any, context: Any, train: Trains) -> Any:
    """The reply to a message of SecAgg+. `train`: replies to a message without SecAgg+."""

    def call_next(message: Any, context: Any) -> Any:
        sent = plain(message)
        reply = train(sent, context)
        if reply.has_error():
            raise _Ended(reply.error.reason)
        state = context.state.config_records[RECORD_KEY_STATE]
        return Message(_fit_result(sent.content[ARRAYS], reply.content, state), reply_to=message)

    # The mod changes this record, which messages of one process share.
    own = ConfigRecord(dict(message.content.config_records[RECORD_KEY_CONFIGS]))
    copied = copy.copy(message)
    copied.content = RecordDict({**message.content, RECORD_KEY_CONFIGS: own})
    try:
        with _quiet():
            return secaggplus_mod(copied, context, call_next)
    except (_Ended, KeyError, TypeError, ValueError) as error:  # the mod's own are of messages out of order
        return Message(error=Error(FAILED, f"{error}"), reply_to=message)


def _fit_result(sent: Any, content: Any, state: Mapping[str, Any]) -> Any:
    """The differences of the weights from those that were sent, and what the reply has beside weights."""
    changes = [array.numpy() - sent[name].numpy() for name, array in content[ARRAYS].items()]
    samples, most, limit = content[METRICS][EXAMPLES], state["max_weight"], state["clipping_range"]
    if samples > most:
        raise _Ended(f"the client has {samples:,} samples: write --secagg max_weight={samples}, or more")
    largest = max((float(np.abs(x).max(initial=0.0)) for x in changes), default=0.0) * samples / most
    if not largest <= limit:
        raise _Ended(
            f"differences times samples / max_weight are up to {largest:.4g}: write --secagg clipping_range="
            f"{2 * largest:.1g}"
        )
    boards = content[BOARDS]
    said = {key: boards[key] for key in _SUMS} | {"failed": "\n".join(boards["failed"])}
    result = FitRes(
        Status(Code.OK, ""),
        ndarrays_to_parameters(changes),
        samples,
        {LOSS: content[METRICS][LOSS], **said},
    )
    return compat.fitres_to_recorddict(result, keep_input=True)


# ---- the server


@dataclass(frozen=True)
class SecureMean:
    """Rounds by SecAgg+ with these options of SecAggPlusWorkflow."""

    options: Mapping[str, Any]

    @classmethod
    def of(cls, text: str, clients: int, most_samples: int | None = None) -> SecureMean:
        """`text`: KEY=VALUE,... `clients`: how many take part in a round; `most_samples`: of a client, if known. Raises
        DataError."""
        if clients < LEAST:
            raise DataError(
                f"--secagg hides a client among others: it needs {LEAST} at least, and this run has "
                f"{counted(clients, 'client')}"
            )
        known = [name for name in inspect.signature(SecAggPlusWorkflow).parameters if name != "timeout"]
        options: dict[str, Any] = {
            "num_shares": min(clients, MOST_SHARES),
            "reconstruction_threshold": THRESHOLD,
        }
        if most_samples:
            options["max_weight"] = float(most_samples)
        for word in text.split(",") if text else ():
            key, equals, value = word.partition("=")
            if key not in known or not equals:
                raise DataError(
                    f"--secagg: expected numbers of {listed(known)}, such as num_shares=5, got {quoted(word)}"
                )
            options[key] = number("--secagg", key, value)
        for key in ("max_weight", "clipping_range"):
            if key in options:
                options[key] = float(options[key])
        try:
            with _quiet():
                made = SecAggPlusWorkflow(**options)
        except (TypeError, ValueError) as error:
            raise DataError(f"--secagg: {str(error).replace('`', '')}") from None
        if clients * made.quantization_range >= made.modulus_range:
            raise DataError(
                f"--secagg: {clients:,} clients overflow modulus_range={made.modulus_range}: write quantization_range="
                f"{1 << ((made.modulus_range - 1) // clients).bit_length() - 1}, or less"
            )
        return cls(options)

    def collect(
        self, grid: Any, number: int, messages: Sequence[Any], timeout: float
    ) -> tuple[list[Any], list[str]]:
        """The replies of a round as one, and what failed. Raises DataError where too few clients replied."""
        heard, content = _Hearing(grid), messages[0].content
        strategy = _OneRound({m.metadata.dst_node_id for m in messages}, content[ARRAYS], content[CONFIG])
        state = RecordDict(
            {
                MAIN_CONFIGS_RECORD: ConfigRecord({RoundKey.CURRENT_ROUND: number}),
                MAIN_PARAMS_RECORD: content[ARRAYS],
            }
        )
        context = Context(run_id=1, node_id=1, node_config={}, state=state, run_config={})
        with _quiet():
            workflow = SecAggPlusWorkflow(**self.options, timeout=timeout)
            workflow(heard, LegacyContext(context, strategy=strategy, client_manager=_Clients(len(messages))))
        if strategy.results is None:
            if len(heard.errors) == len(messages):
                return [], heard.errors
            first = heard.errors[0] if heard.errors else "no reply"
            raise DataError(
                f"round {number}: {len(heard.errors)} of {len(messages)} clients failed, too many to open the sum of "
                f"the others: {first}; --secagg reconstruction_threshold=X with a smaller X allows more"
            )
        return [Message(_mean(content[ARRAYS], strategy.results), reply_to=messages[0])], heard.errors


def _mean(before: Any, results: Sequence[FitRes]) -> Any:
    """What clients reply together. All results have the same parameters: the mean difference."""
    changes = parameters_to_ndarrays(results[0].parameters)
    arrays = {
        name: serialized((array.numpy() + change).astype(np.float32))
        for (name, array), change in zip(before.items(), changes, strict=True)
    }
    samples = sum(r.num_examples for r in results)
    loss = sum(r.num_examples * r.metrics[LOSS] for r in results) / samples
    said: dict[str, Any] = {key: sum(r.metrics[key] for r in results) for key in _SUMS}
    failed = [line for r in results for line in r.metrics["failed"].split("\n") if line]
    return RecordDict(
        {
            ARRAYS: ArrayRecord(arrays),
            METRICS: MetricRecord({EXAMPLES: samples, LOSS: loss}),
            BOARDS: ConfigRecord({**said, "failed": failed}),
        }
    )


class _OneRound:
    """A strategy of the older interface: clients get these arrays, and the results are kept."""

    def __init__(self, nodes: set[int], arrays: Any, config: Mapping[str, Any]) -> None:
        self._nodes = sorted(nodes)
        self.results: list[FitRes] | None = None
        self._config = {**config, NAMES: "\n".join(arrays)}

    def configure_fit(self, number: int, parameters: Any, clients: Any) -> list[Any]:
        return [(_Client(node), FitIns(parameters, dict(self._config))) for node in self._nodes]

    def aggregate_fit(
        self, number: int, results: Sequence[Any], failures: Any
    ) -> tuple[None, dict[str, Any]]:
        self.results = [result for _, result in results]
        return None, {}


@dataclass(frozen=True)
class _Client:
    node_id: int


@dataclass(frozen=True)
class _Clients:
    number: int

    def num_available(self) -> int:
        return self.number


class _Hearing:
    """A grid that notes the errors of replies."""

    def __init__(self, grid: Any) -> None:
        self._grid, self.errors = grid, list[str]()

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        replies = list(self._grid.send_and_receive(messages, timeout=timeout))
        self.errors += [str(r.error.reason) for r in replies if r.has_error()]
        return replies


@contextmanager
def _quiet() -> Iterator[None]:
    """Flower's log says in several lines what replies say in one."""
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
