"""The clients of secure aggregation by SecAgg+ of Flower: they send differences of weights with masks that cancel out
in the sum, so that the server learns the mean of all clients, not the difference of one.

SecAgg+ is written for the older interface of Flower's strategies: a client's message and reply become FitIns and FitRes
of that interface, and back.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    RECORD_KEY_STATE,
    Key,
    Stage,
)
from flwr.compat.common import recorddict_compat as compat

from ...errors import DataError
from .client import ARRAYS, BOARDS, CONFIG, EXAMPLES, FAILED, LOSS, METRICS, serialized

LEAST, LEAST_TO_OPEN = 3, 2  # clients of a round; shares of a key that open it: one share would be the key
NAMES = "array-names"  # key in a message's config, as FitIns does not have the names
SUMS, LINES = ("answered", "labels", "right"), ("failed", "counts")  # of the record about boards

Training = Callable[[Any, Any], Any]  # by message and context


def is_secure(message: Any) -> bool:
    """Whether a message belongs to SecAgg+."""
    return bool(RECORD_KEY_CONFIGS in message.content.config_records)


def is_training(message: Any) -> bool:
    """Whether the client trains for a message of SecAgg+; the other messages exchange keys."""
    stage = message.content.config_records[RECORD_KEY_CONFIGS][Key.STAGE]
    return bool(stage == Stage.COLLECT_MASKED_VECTORS)


def without_secagg(message: Any) -> Any:
    """The message for which the client trains, as it is without SecAgg+."""
    ins = compat.recorddict_to_fitins(message.content, keep_input=True)
    config = dict(ins.config)  # it is a record of the message
    names = str(config.pop(NAMES)).split("\n")
    arrays = dict(zip(names, map(serialized, parameters_to_ndarrays(ins.parameters)), strict=True))
    content = RecordDict({ARRAYS: ArrayRecord(arrays), CONFIG: ConfigRecord(config)})
    found = copy.copy(message)
    found.content = content
    return found


class _Ended(DataError):
    """The client cannot take part: its reply is an Error with this message."""


def secured(message: Any, context: Any, train: Training) -> Any:
    """The reply to a message of SecAgg+. `train`: replies to a message without SecAgg+."""

    def call_next(message: Any, context: Any) -> Any:
        sent = without_secagg(message)
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
        _check_setup(own)
        with quiet():
            return secaggplus_mod(copied, context, call_next)
    except (_Ended, KeyError, TypeError, ValueError) as error:  # the mod's own are of messages out of order
        return Message(error=Error(FAILED, f"{error}"), reply_to=message)


def _check_setup(config: Mapping[str, Any]) -> None:
    """Raises _Ended for a server whose settings protect no client. The mod checks their types."""
    if config.get(Key.STAGE) != Stage.SETUP:
        return
    for key, least, what in (
        (Key.SAMPLE_NUMBER, LEAST, "clients in a round"),
        (Key.THRESHOLD, LEAST_TO_OPEN, "shares that open a client's key"),
    ):
        value = config.get(key)
        if isinstance(value, int) and value < least:
            raise _Ended(f"the server's secure aggregation has {value} {what}: expected {least} or more")


def _fit_result(sent: Any, content: Any, state: Mapping[str, Any]) -> Any:
    """The differences between the new weights and the weights that the server sent, and the rest of the reply."""
    changes = [array.numpy() - sent[name].numpy() for name, array in content[ARRAYS].items()]
    samples, most, limit = content[METRICS][EXAMPLES], state["max_weight"], state["clipping_range"]
    if samples > most:
        raise _Ended(f"the client has {samples:,} samples: write --secagg max_weight={samples}, or more")
    if not all(np.isfinite(x).all() for x in changes):
        raise _Ended("differences are not finite: lower --lr")
    largest = max((float(np.abs(x).max(initial=0.0)) for x in changes), default=0.0) * samples / most
    if largest > limit:
        raise _Ended(
            f"differences times samples / max_weight are up to {largest:.4g}: write --secagg clipping_range="
            f"{2 * largest:.1g}"
        )
    boards = content[BOARDS]
    said = {key: boards[key] for key in SUMS} | {key: "\n".join(boards[key]) for key in LINES}
    result = FitRes(
        Status(Code.OK, ""),
        ndarrays_to_parameters(changes),
        samples,
        {LOSS: content[METRICS][LOSS], **said},
    )
    return compat.fitres_to_recorddict(result, keep_input=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Flower's log: it repeats in several lines the reasons that replies tell in one."""
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
