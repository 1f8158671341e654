"""A client of Flower that hosts boards: one message for all of them, one reply with their mean."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from ...codegen.program import Program
from ...device.differences import Encoding
from ...device.rounds import shared_slots
from ...errors import AutodiffError, DataError, listed
from ..average import WeightedMean
from ..board_group import Failure, Members
from ..round_request import RoundSettings
from ..rounds import Heard, answers, moved

# Names that Flower's strategies read and write; BOARDS is the record about boards in a reply.
ARRAYS, CONFIG, METRICS, BOARDS = "arrays", "config", "metrics", "boards"
NUMBER, MU, EXAMPLES, LOSS = "server-round", "proximal-mu", "num-examples", "train_loss"
ACCURACY = "eval_acc"
FAILED = 1  # the code of each Error; its text is the reason

# Keys of a message's ConfigRecord, and the setting that each replaces.
KEYS = {
    MU: "mu",
    "lr": "lr",
    "steps": "steps",
    "epochs": "epochs",
    "batch": "n",
    "seed": "seed",
    "delta": "encoding",
    "local-buffers": "local_buffers",
}


class FlowerClientApp(ClientApp):  # type: ignore[misc]
    """Trains all boards of the members by a message of type `train`.

    The message's ConfigRecord replaces values of `settings`: KEYS has its keys. Another key is an error, as a server
    may rely on its settings.

    The reply has the mean of the boards' weights, weighted by their samples, and the metrics `num-examples` and
    `train_loss`. A board that fails is left out and named in the reply's record `boards`; if none answers, the reply is
    an Error.
    """

    def __init__(self, members: Sequence[Members], program: Program, settings: RoundSettings) -> None:
        super().__init__()
        self._members, self._program, self._settings = members, program, settings
        self.train()(self._train)

    def _train(self, message: Any, context: Context) -> Any:
        boards = range(sum(map(len, self._members)))
        (reply,) = replies(self._members, self._program, self._settings, [(message, boards)])
        return reply


def replies(
    members: Sequence[Members],
    program: Program,
    settings: RoundSettings,
    messages: Sequence[tuple[Any, Sequence[int]]],
    heard: Heard = lambda answer: None,
) -> list[Any]:
    """The replies to messages with the same content, each to other boards; all of them train at the same time."""
    try:
        return list(_replies(members, program, settings, messages, heard))
    except AutodiffError as error:
        return [Message(error=Error(FAILED, str(error)), reply_to=message) for message, _ in messages]


def _replies(
    members: Sequence[Members],
    program: Program,
    settings: RoundSettings,
    messages: Sequence[tuple[Any, Sequence[int]]],
    heard: Heard,
) -> Iterator[Any]:
    content = messages[0][0].content
    (arrays,), (config,) = content.array_records.values(), content.config_records.values()
    settings, number = settings_of(settings, config), config.get(NUMBER)
    if type(number) is not int or not 0 < number < 1 << 32:
        raise DataError(f"the server's config has {NUMBER}={number!r}: expected the number of a round")
    weights = {name: array.numpy() for name, array in arrays.items()}
    slots = shared_slots(program, settings.local_buffers)
    every = [k for _, boards in messages for k in boards]
    came = answers(members, slots, settings, number, weights, every, heard)
    for message, boards in messages:
        mean, failures = WeightedMean(), list[Failure]()
        for _, answer in zip(boards, came, strict=False):
            if isinstance(answer, Failure):
                failures.append(answer)
            else:
                mean.add(answer)
        if not mean.boards:
            yield Message(error=Error(FAILED, "; ".join(map(str, failures))), reply_to=message)
            continue
        new = moved(slots, weights, mean)
        records = {
            ARRAYS: ArrayRecord({name: serialized(array) for name, array in new.items()}),
            METRICS: MetricRecord({EXAMPLES: mean.samples, LOSS: mean.loss, **_evaluated(mean)}),
            BOARDS: ConfigRecord(
                {
                    "answered": mean.boards,
                    "failed": [str(f) for f in failures],
                    "labels": mean.labels,
                    "right": mean.right,
                    "counts": mean.counts.lines,
                }
            ),
        }
        yield Message(RecordDict(records), reply_to=message)
    for _ in came:  # members end the round after their last answer
        pass


def serialized(array: NDArray[Any]) -> Any:
    """The same as Array(array), in a third of the time: arrays of one shape have the same header."""
    data = _header(array.dtype.str, array.shape) + array.tobytes()
    return Array(str(array.dtype), array.shape, "numpy.ndarray", data)


@functools.cache
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The start of a file of np.save."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _evaluated(mean: WeightedMean) -> dict[str, float]:
    """The accuracy of the weights that the server sent, on the boards' own samples, if they evaluate."""
    return {} if math.isnan(mean.accuracy) else {ACCURACY: mean.accuracy}


def settings_of(settings: RoundSettings, config: Mapping[str, Any]) -> RoundSettings:
    """The settings, with the values of a message's ConfigRecord. Raises DataError."""
    given: dict[str, Any] = {}
    for key, value in config.items():
        if key == NUMBER:
            continue
        if key not in KEYS:
            raise DataError(
                f"the server's config has {key}, which boards do not follow; they follow {listed(KEYS)}"
            )
        kind: type = type(getattr(RoundSettings(lr=0.0), KEYS[key]))
        is_kind = isinstance(value, (int, float) if kind is float else kind)
        if not is_kind or (kind is int and value < 0):
            wanted = "at least 0" if is_kind else kind.__name__
            raise DataError(f"the server's config has {key}={value!r}: expected {wanted}")
        given[KEYS[key]] = value
    if "epochs" in given:
        given.setdefault("steps", 0)
    Encoding.of(given.get("encoding", settings.encoding))
    return replace(settings, **given)
