"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

from ..ir.build import apply, constant
from ..ir.node import Value
from ..ir.types import plain
from ..ops.support import as_s32
from .arguments import TensorLike, as_value, loss_function, shape_error
from .control_flow import scan
from .elementwise import detach, eq, exp, log, lt, maximum, ne, neg, to, where
from .index_limits import in_range
from .indexing import gather
from .joining import cat, pad, stack
from .losses import KNOWN, reduced
from .reductions import mean
from .shapes import broadcast_to, reshape, transpose, unsqueeze
from .slicing import whole

__all__ = ["ctc_loss"]

NEVER = -1e30  # the logarithm of probability 0: differences of it are finite


@loss_function
def ctc_loss(
    log_probs: TensorLike,
    targets: TensorLike,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Value:
    """Graves et al. 2006: the negative log-likelihood of label sequences, over all alignments.

    log_probs: f32[T, N, C], or [T, C] for one sequence. targets: integers [N, S], or [S] for one sequence, from 0 to
    C - 1 also after the end of a sequence; PyTorch's form with all targets concatenated is not supported. Lengths:
    integers [N], or one number. "mean" divides each loss by the target length (at least 1) first. The gradient with
    respect to log_probs is the derivative of the loss; PyTorch's agrees with it only after log_softmax. zero_infinity:
    0 instead of infinity for targets that are too long for their input.
    """
    x, name = as_value(log_probs), "ctc_loss"
    t, given, wanted = (
        v if isinstance(v, Value) else constant(v) for v in (targets, input_lengths, target_lengths)
    )
    if x.ndim == 2:
        loss = ctc_loss(
            unsqueeze(x, 1),
            unsqueeze(t, 0),
            reshape(given, (1,)),
            reshape(wanted, (1,)),
            blank,
            reduction,
            zero_infinity,
        )
        return reshape(loss, ())
    if x.ndim != 3 or t.ndim != 2 or not isinstance(x.shape[2], int) or not isinstance(t.shape[1], int):
        raise shape_error(name, [x, t], "needs log_probs [T, N, C] and targets [N, S]")
    _, n, classes = x.shape
    if t.shape[0] != n or given.shape != (n,) or wanted.shape != (n,):
        raise shape_error(name, [x, t, given, wanted], f"targets [N, S] and lengths [N] must have N = {n}")
    if not 0 <= whole(name, x, "blank", plain(blank)) < classes:
        raise shape_error(name, [x], f"blank={blank} is outside 0 to {classes - 1}")
    labels = as_s32(in_range(name, x, t, classes))
    lengths, ends = (reshape(as_s32(v), (n, 1)) for v in (given, wanted))
    last = _forward(x, labels, lengths, int(blank))
    # The probability of the last label or of the blank after it.
    after = gather(last, 1, ends * 2)
    before = where(eq(ends, 0), NEVER, gather(last, 1, where(eq(ends, 0), 0, ends * 2 - 1)))
    likelihood = reshape(_log_sum(after, before), (n,))
    impossible = 0.0 if zero_infinity else float("inf")
    losses = where(likelihood < 0.1 * NEVER, impossible, neg(likelihood))
    if reduction == "mean":
        return mean(losses / maximum(to(reshape(ends, (n,)), "f32"), 1.0))
    return reduced(name, losses, reduction, KNOWN)


def _log_sum(*values: Value) -> Value:
    """log(sum of exp(v)), elementwise, over values of one shape."""
    largest = values[0]
    for v in values[1:]:
        largest = maximum(largest, v)
    largest = detach(largest)
    total = exp(values[0] - largest)
    for v in values[1:]:
        total = total + exp(v - largest)
    return log(total) + largest


def _forward(x: Value, labels: Value, lengths: Value, blank: int) -> Value:
    """The log-probabilities, at the end of each input, of all prefixes of the labels with blanks around them:
    [N, 2 S + 1]."""
    times, n, _ = x.shape
    _, s = labels.shape
    assert isinstance(s, int)
    blanks = broadcast_to(constant(blank), (n, s))
    extended = cat([reshape(stack([blanks, labels], 2), (n, 2 * s)), blanks[:, :1]], 1)
    index = broadcast_to(reshape(extended, (n, 1, 2 * s + 1)), (n, times, 2 * s + 1))
    scores = transpose(apply("gather", transpose(x, 0, 1), index, dim=2), 0, 1)
    # A label may follow another one without a blank between them.
    never = broadcast_to(NEVER, (n, s))
    skips = where(ne(labels[:, 1:], labels[:, :-1]), 0.0, NEVER) if s > 1 else never
    skips = stack([never, pad(skips, (1, 0), value=NEVER) if s > 1 else skips], 2)
    skips = pad(reshape(skips, (n, 2 * s)), (0, 1), value=NEVER)
    start = broadcast_to(constant([0.0, *(NEVER,) * (2 * s)]), (n, 2 * s + 1))

    def step(alpha: Value, xs: tuple[Value, Value]) -> tuple[Value, None]:
        score, time = xs
        one, two = (pad(alpha[:, :-k], (k, 0), value=NEVER) for k in (1, 2))
        new = _log_sum(alpha, one, two + skips) + score
        return where(lt(time, lengths), new, alpha), None

    last, _ = scan(step, start, (scores, apply("iota", size=times)))
    result: Value = last
    return result
