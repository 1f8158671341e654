"""Strategies of Flower by name, as `--strategy FedAdam,eta=0.03` asks for them."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import Any

from flwr.serverapp import strategy as flower
from flwr.serverapp.strategy import Strategy

from ...errors import DataError, listed, quoted

# These read the weighted mean of all clients only, so a client may be the mean of many boards.
OF_MEANS = ("FedAvg", "FedAvgM", "FedProx", "FedAdagrad", "FedAdam", "FedYogi")


def strategy_of(text: str, nodes: int, drawn: int, known: Mapping[str, Any]) -> Any:
    """A strategy that trains on `drawn` of so many nodes. `known`: values of parameters that the run knows, unless the
    text has them. Raises DataError."""
    name, *words = text.split(",")
    made = getattr(flower, name, None) if name in flower.__all__ else None
    if not (inspect.isclass(made) and issubclass(made, Strategy)) or made is Strategy:
        names = [n for n in flower.__all__ if n not in ("Result", "Strategy")]
        similar = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {similar[0]}?" if similar else f"it is one of {listed(names, 500)}"
        raise DataError(f"--strategy {name} is unknown; {hint}")
    parameters = inspect.signature(made).parameters
    options: dict[str, Any] = {
        **known,
        "fraction_train": drawn / nodes,
        "min_train_nodes": drawn,
        "min_available_nodes": drawn,
        "num_sampled_clients": drawn,
    }
    options = {key: value for key, value in options.items() if key in parameters}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise DataError(f"--strategy: expected {name},KEY=VALUE,..., got {quoted(text)}")
        if key not in parameters:
            raise DataError(f"--strategy {name} has no {key}; it has {listed(parameters, 400)}")
        options[key] = (
            strategy_of(value, nodes, drawn, known) if key == "strategy" else number("--strategy", key, value)
        )
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in options:
            raise DataError(f"--strategy {name} needs {key}: write --strategy {name},{key}=VALUE")
    try:
        return made(**options)
    except (TypeError, ValueError) as error:
        raise DataError(f"the strategy {name} rejects {text}: {error}") from None


def number(option: str, key: str, text: str) -> Any:
    """The number of KEY=NUMBER in an option, an integer if it is written as one. Raises DataError."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise DataError(f"{option}: expected {key}=NUMBER, got {key}={text}")
