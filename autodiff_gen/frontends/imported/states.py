"""Parameters and buffers that a forward pass changes: states, whose new values training steps store.

self.steps += 1; return y    ->    return F.with_updates(y, {self.steps: z})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...errors import quoted
from .problems import Rejected
from .program import BUFFER, PARAMETER, Call, Program, ValueRef, WeightRef, names


def with_states(
    program: Program, updates: Mapping[str, Any], earlier: Mapping[str, tuple[Any, ...]], name: str
) -> Program:
    """The program whose results store these new values; earlier: as in Program. Raises Rejected for a parameter that is
    trained."""
    if not updates:
        return program
    weights = dict(program.weights)
    for weight in updates:
        own = weights[weight]
        if own.role == PARAMETER and own.trained:
            raise Rejected(
                f"{name} cannot be imported: it changes {quoted(weight)} in place, which the optimizer trains; compute "
                "with a new tensor of it, or give it requires_grad_(False)"
            )
        weights[weight] = replace(own, role=BUFFER)
    pairs = [part for weight, new in updates.items() for part in (WeightRef(weight), new)]
    function = "F.with_updates({}, {{" + ", ".join(["{}: {}"] * len(updates)) + "}})"
    calls, shapes = list(program.calls), dict(program.shapes)

    def stored(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(stored, result))
        if not isinstance(result, ValueRef):
            return result
        made = f"{result.name}.stored"
        if made not in shapes:
            calls.append(Call(function, (result, *pairs), results=(made,)))
            shapes[made] = shapes[result.name]
        return ValueRef(made)

    outputs = stored(program.outputs)
    return replace(
        program,
        calls=calls,
        outputs=outputs,
        shapes=shapes,
        weights=weights,
        updates=updates,
        earlier=earlier,
    )


def unchanged_in_evaluation(program: Program, weights: Iterable[str]) -> Program:
    """The program in which these buffers have their stored values in evaluation mode, in place of new ones."""
    new = {
        value.name: n
        for n in weights
        for value in (*program.earlier.get(n, ()), program.updates[n])
        if isinstance(value, ValueRef)
    }
    calls: list[Call] = []
    chosen: dict[str, str] = {}

    def read(given: Any) -> Any:
        if isinstance(given, ValueRef):
            return ValueRef(chosen.get(given.name, given.name))
        return tuple(map(read, given)) if type(given) in (tuple, list) else given

    for call in program.calls:
        options = {k: read(v) for k, v in call.options.items()}
        calls.append(replace(call, args=read(call.args), options=options))
        for result in names(call.results):
            if result in new:
                chosen[result] = f"{result}.chosen"
                args = ValueRef(result), WeightRef(new[result])
                calls.append(Call("by_mode", args, results=(chosen[result],), frames=call.frames))
    return replace(program, calls=calls, outputs=read(program.outputs))
