"""The server of secure aggregation by SecAgg+ of Flower, which learns the mean of all clients.

SecAgg+ is written for the older interface of Flower's strategies. Here it makes one round, and the mean becomes one
reply, which the strategy reads like the reply of one client.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.common import FitIns, FitRes, parameters_to_ndarrays
from flwr.server.compat.legacy_context import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD
from flwr.server.workflow.constant import Key as RoundKey

from ...errors import DataError, counted, listed, quoted
from .client import ARRAYS, BOARDS, CONFIG, EXAMPLES, LOSS, METRICS, serialized
from .noting_grid import NotingGrid
from .secure_client import LEAST, LEAST_TO_OPEN, LINES, NAMES, SUMS, quiet
from .strategies import number

MOST_SHARES, THRESHOLD = 11, 0.6  # of a key, and the share of these that opens it


@dataclass(frozen=True)
class SecureMean:
    """Rounds by SecAgg+ with these options of SecAggPlusWorkflow."""

    options: Mapping[str, Any]

    @classmethod
    def of(cls, text: str, clients: int, most_samples: int | None = None) -> SecureMean:
        """`text`: KEY=VALUE,... `clients`: how many take part in a round; `most_samples`: of a client, if known. Raises
        DataError."""
        known = [name for name in inspect.signature(SecAggPlusWorkflow).parameters if name != "timeout"]
        options: dict[str, Any] = {"reconstruction_threshold": THRESHOLD}
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
                if not 0.0 < options[key] < math.inf:
                    raise DataError(f"--secagg {key}={options[key]:g}: expected a finite number above 0")
        _workflow(options, clients, "this run")
        return cls(options)

    def collect(
        self, grid: Any, number: int, messages: Sequence[Any], timeout: float
    ) -> tuple[list[Any], list[str]]:
        """The replies of a round as one, and the failures. Raises DataError where too few clients take part, or too few
        replied."""
        workflow = _workflow(self.options, len(messages), f"round {number}")
        workflow.timeout = timeout
        noting, content = NotingGrid(grid), messages[0].content
        strategy = _OneRound({m.metadata.dst_node_id for m in messages}, content[ARRAYS], content[CONFIG])
        state = RecordDict(
            {
                MAIN_CONFIGS_RECORD: ConfigRecord({RoundKey.CURRENT_ROUND: number}),
                MAIN_PARAMS_RECORD: content[ARRAYS],
            }
        )
        context = Context(run_id=1, node_id=1, node_config={}, state=state, run_config={})
        with quiet():
            workflow(
                noting, LegacyContext(context, strategy=strategy, client_manager=_Clients(len(messages)))
            )
        if strategy.results is None:
            if noting.failed == len(messages):
                return [], noting.failures
            raise DataError(
                f"round {number}: {noting.failed} of {len(messages)} clients failed, too many to open the sum of the "
                f"others: {noting.failures[0]}; --secagg reconstruction_threshold=X with a smaller X allows more, and "
                "with a smaller X fewer clients can open a client's key"
            )
        return [Message(_mean(content[ARRAYS], strategy.results), reply_to=messages[0])], noting.failures


class _Workflow(SecAggPlusWorkflow):  # type: ignore[misc]
    """SecAgg+ where clients may fail before they share their keys, too: such a client has no mask, so nobody needs its
    key. Flower asks the others for shares of it, which they do not have."""

    def share_keys_stage(self, grid: Any, context: Any, state: Any) -> bool:
        is_enough = bool(super().share_keys_stage(grid, context, state))
        there = set(state.active_node_ids)
        state.sampled_node_ids = there
        state.nid_to_neighbours = {node: state.nid_to_neighbours[node] & there for node in there}
        return is_enough


def _workflow(given: Mapping[str, Any], clients: int, where: str) -> Any:
    """SecAggPlusWorkflow with these options for so many clients. Raises DataError."""
    if clients < LEAST:
        raise DataError(
            f"--secagg hides a client among others: it needs {LEAST} at least, and {where} has "
            f"{counted(clients, 'client')}"
        )
    options = {"num_shares": min(clients, MOST_SHARES), **given}
    options["num_shares"] = _shares(options["num_shares"], clients, where)
    threshold = options["reconstruction_threshold"]
    if isinstance(threshold, int) and threshold != 1 and threshold < LEAST_TO_OPEN:
        raise DataError(
            f"--secagg reconstruction_threshold={threshold}: expected {LEAST_TO_OPEN} or more, or a share of "
            f"num_shares such as {THRESHOLD}"
        )
    try:
        with quiet():
            made = _Workflow(**options)
    except (TypeError, ValueError) as error:
        raise DataError(f"SecAgg+ rejects the options of --secagg: {str(error).replace('`', '')}") from None
    if clients * made.quantization_range >= made.modulus_range:
        raise DataError(
            f"--secagg: {clients:,} clients overflow modulus_range={made.modulus_range}: write quantization_range="
            f"{1 << ((made.modulus_range - 1) // clients).bit_length() - 1}, or less"
        )
    return made


def _shares(given: float, clients: int, where: str) -> int:
    """The number of shares of a key, for a number or a share of the clients. A client has as many neighbours on its
    left as on its right, so the number is odd unless all clients are neighbours. Raises DataError."""
    is_share = isinstance(given, float) or given == 1
    found = round(given * clients) if is_share and 0.0 < given <= 1.0 else given
    if is_share and isinstance(found, int):
        found = clients if found < LEAST - 1 else min(found | 1, clients)
    if not isinstance(found, int) or not LEAST <= found <= clients or (found % 2 == 0 and found != clients):
        raise DataError(
            f"--secagg num_shares={given}: expected an odd number of {LEAST} or more, one for each of the {clients:,} "
            f"clients of {where}, or a share of them such as 0.5"
        )
    return found


def _mean(before: Any, results: Sequence[FitRes]) -> Any:
    """The common reply of the clients. All results have the same parameters: the mean difference."""
    changes = parameters_to_ndarrays(results[0].parameters)
    arrays = {
        name: serialized((array.numpy() + change).astype(np.float32))
        for (name, array), change in zip(before.items(), changes, strict=True)
    }
    samples = sum(r.num_examples for r in results)
    loss = sum(r.num_examples * r.metrics[LOSS] for r in results) / samples
    said: dict[str, Any] = {key: sum(r.metrics[key] for r in results) for key in SUMS}
    for key in LINES:
        said[key] = [line for r in results for line in r.metrics[key].split("\n") if line]
    return RecordDict(
        {
            ARRAYS: ArrayRecord(arrays),
            METRICS: MetricRecord({EXAMPLES: samples, LOSS: loss}),
            BOARDS: ConfigRecord(said),
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
