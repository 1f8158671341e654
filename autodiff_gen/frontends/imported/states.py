"""Parameters and buffers that a forward pass changes become states, whose new values training steps store.

self.steps += 1; return y    ->    return F.with_updates(y, {self.steps: z})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import quoted
from .problems import Rejected
from .program import BUFFER, PARAMETER, ImportedProgram, ProgramCall, ValueRef, WeightRef

STORED = "F.with_updates("  # the call that stores them


def with_states(program: ImportedProgram, updates: Mapping[str, Any], name: str) -> ImportedProgram:
    """The program whose results store these new values. Raises Rejected for a parameter that is trained."""
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
    function = STORED + "{}, {{" + ", ".join(["{}: {}"] * len(updates)) + "}})"
    calls, shapes, done = list(program.calls), dict(program.shapes), set()

    def stored(result: Any) -> Any:
        if isinstance(result, tuple):
            return tuple(map(stored, result))
        if not isinstance(result, ValueRef):
            return result
        made = f"{result.name}.stored"
        if made not in done:
            done.add(made)
            calls.append(ProgramCall(function, (result, *pairs), results=(made,)))
            shapes[made] = shapes[result.name]
        return ValueRef(made)

    outputs = stored(program.outputs)
    return replace(program, calls=calls, outputs=outputs, shapes=shapes, weights=weights, updates=updates)


def without_states(program: ImportedProgram) -> ImportedProgram:
    """The program before `with_states`."""
    of = {ValueRef(c.results[0]): c.args[0] for c in program.calls if c.function.startswith(STORED)}

    def read(given: Any) -> Any:
        return tuple(map(read, given)) if isinstance(given, tuple) else of.get(given, given)

    calls = [call for call in program.calls if not call.function.startswith(STORED)]
    return replace(program, calls=calls, outputs=read(program.outputs), updates={})
