"""Values with custom gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from ..ir.build import apply, apply_node
from ..ir.node import Value
from ..ir.origin import BACKWARD, building
from .arguments import as_value

__all__ = ["custom_gradient", "gradient_of"]


def gradient_of(input: Any) -> Value:
    """A placeholder for the gradient of `input` in arguments of `custom_gradient`."""
    return apply("gradient_of", as_value(input))


@overload
def custom_gradient(
    result: Value, gradient: Value, inputs: Sequence[Any], input_gradients: Sequence[Any]
) -> Value: ...
@overload
def custom_gradient(
    result: Sequence[Any], gradient: Sequence[Any], inputs: Sequence[Any], input_gradients: Sequence[Any]
) -> tuple[Value, ...]: ...
def custom_gradient(
    result: Any, gradient: Any, inputs: Sequence[Any], input_gradients: Sequence[Any]
) -> Value | tuple[Value, ...]:
    """`result`, with a gradient that you define: it does not propagate through the computation of the result, but
    contributes `input_gradients` to the gradients of `inputs`.

    gradient: `gradient_of(result)`, from which input_gradients are computed; they have the shapes of the inputs. For
    several results, give tuples of results and gradients; the function then returns a tuple.

        g = F.gradient_of(y)
        y = F.custom_gradient(y, g, [y], [F.clamp(g, -1.0, 1.0)])  # as y.register_hook(lambda g: g.clamp(-1, 1))
    """
    single = not isinstance(result, list | tuple)
    results, gradients = ([result], [gradient]) if single else (result, gradient)
    values = [as_value(v) for v in (*results, *gradients, *inputs, *input_gradients)]
    made = apply_node("custom_gradient", *values, count=len(results)).results
    return made[0] if single else made


def with_derivative(result: Value, x: Value, derivative: Callable[[Value], Value]) -> Value:
    """`result`, with its gradient with respect to x in closed form: `derivative` computes the gradient of x from the
    gradient of the result. Differentiating the computation of the result would give the same with more operations."""
    gradient = gradient_of(result)
    with building(phase=BACKWARD):
        dx = derivative(gradient)
    return apply("custom_gradient", result, gradient, x, dx, count=1, exact=True)
