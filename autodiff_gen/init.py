"""Initialisers of parameters: functions of (seed, logical index) that give the same numbers on the host and on the
device.

Random numbers are `rand_u32(key, 0, index)` of runtime/ag_rng.h. The key is the initialiser's seed if the seed given to
`<m>_init` is 0, otherwise `rand_u32(run-time seed, 0, own seed)`; so 0 selects the host's default weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import ModelError

Array: TypeAlias = npt.NDArray[np.float32]


def _checked_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    for d in extents:
        if not isinstance(d, int | np.integer) or d < 1:
            raise ModelError(f"init: shape {list(extents)} must be made of integers of at least 1")
    return tuple(int(d) for d in extents)


def _finite(name: str, value: float) -> float:
    if not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise ModelError(f"init.{name}: {value!r} is no finite number")
    return float(value)


def _key(own: int | None, seed: int) -> int:
    """The key of the random numbers, as the docstring of the module says."""
    from .ir.counter_rng import rand_u32

    return (own or 0) if seed == 0 else int(rand_u32(seed, 0, own or 0))


@dataclass(frozen=True)
class Uniform:
    """Uniform numbers: (2u - 1) * bound in [-bound, bound), or, if `bound` is None, low + u * (high - low) in
    [low, high); u = (rand_u32 >> 8) / 2^24.

    Each operation is rounded to float32. `seed` is None until it is derived from the parameter's name or position.
    """

    shape: tuple[int, ...]
    low: float
    high: float
    bound: float | None
    seed: int | None
    kind: str = field(default="uniform", init=False)

    def array(self, seed: int = 0) -> Array:
        """The values, f32 of `shape`; `seed` is the one given to `<m>_init` on the device."""
        from .ir.counter_rng import rand_u32

        key = _key(self.seed, seed)
        bits = np.asarray(
            rand_u32(key, 0, np.arange(math.prod(self.shape), dtype=np.uint32)), dtype=np.uint32
        )
        u = (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
        if self.bound is not None:
            values = (np.float32(2.0) * u - np.float32(1.0)) * np.float32(self.bound)
        else:
            values = np.float32(self.low) + u * (np.float32(self.high) - np.float32(self.low))
        return values.reshape(self.shape)


@dataclass(frozen=True)
class Normal:
    """Normally distributed numbers, mean + z * std, each operation rounded to float32. z is a sum of twelve uniform
    numbers minus the mean of the sum (Irwin-Hall). The distribution function of z differs from the normal one by less
    than 0.003, and |z| <= 6.

    The elements whose logical indices are in `zeros` are 0. `seed` as in Uniform.
    """

    shape: tuple[int, ...]
    mean: float
    std: float
    seed: int | None
    zeros: range = range(0)
    kind: str = field(default="normal", init=False)

    def array(self, seed: int = 0) -> Array:
        """The values, f32 of `shape`; `seed` is the one given to `<m>_init` on the device."""
        from .ir.counter_rng import normal as standard_normal

        z = standard_normal(_key(self.seed, seed), 0, np.arange(math.prod(self.shape), dtype=np.uint32))
        values = np.float32(self.mean) + z * np.float32(self.std)
        values[self.zeros.start : self.zeros.stop] = 0.0
        return values.reshape(self.shape)


@dataclass(frozen=True)
class Constant:
    """All elements are `value`."""

    shape: tuple[int, ...]
    value: float
    kind: str = field(default="constant", init=False)

    def array(self, seed: int = 0) -> Array:
        return np.full(self.shape, self.value, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Given:
    """The values of an array, stored in flash."""

    values: Array
    kind: str = field(default="array", init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def array(self, seed: int = 0) -> Array:
        return self.values.copy()


@dataclass(frozen=True, eq=False)
class Drawn:
    """Numbers that `draw`, a function of the shape and a NumPy generator, draws on the host as soon as the parameter's
    seed is known; `initialiser` replaces them by an array (Given)."""

    shape: tuple[int, ...]
    draw: Callable[[tuple[int, ...], np.random.Generator], Any]


Initialiser: TypeAlias = Uniform | Normal | Constant | Given


def uniform(
    shape: int | Sequence[int],
    bound: float | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    seed: int | None = None,
) -> Uniform:
    """Uniform in [-bound, bound), or in [low, high) (0 and 1 by default). Without `seed`, the seed is derived from the
    parameter's name or position."""
    _check_seed("uniform", seed)
    if bound is not None:
        if low is not None or high is not None:
            raise ModelError("init.uniform: give either bound, or low and high")
        b = _finite("uniform", bound)
        return Uniform(_checked_shape(shape), -b, b, b, seed)
    a, b = _finite("uniform", 0.0 if low is None else low), _finite("uniform", 1.0 if high is None else high)
    return Uniform(_checked_shape(shape), a, b, None, seed)


def normal(
    shape: int | Sequence[int], mean: float = 0.0, std: float = 1.0, *, seed: int | None = None
) -> Normal:
    """Normal with this mean and standard deviation. Without `seed`, the seed is derived from the parameter's name or
    position."""
    _check_seed("normal", seed)
    deviation = _finite("normal", std)
    if deviation < 0:
        raise ModelError(f"init.normal: std={std} is negative")
    return Normal(_checked_shape(shape), _finite("normal", mean), deviation, seed)


def _check_seed(name: str, seed: int | None) -> None:
    if seed is not None and not (isinstance(seed, int | np.integer) and 0 <= seed < 2**32):
        raise ModelError(f"init.{name}: seed {seed!r} is no integer in 0 ... 2^32 - 1")


def constant(shape: int | Sequence[int], value: float) -> Constant:
    """All elements are `value`."""
    return Constant(_checked_shape(shape), _finite("constant", value))


def zeros(shape: int | Sequence[int]) -> Constant:
    """All elements are 0."""
    return constant(shape, 0.0)


def ones(shape: int | Sequence[int]) -> Constant:
    """All elements are 1."""
    return constant(shape, 1.0)


def _fans(name: str, shape: int | Sequence[int]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight [out, in, ...], as in torch.nn.init."""
    extents = _checked_shape(shape)
    if len(extents) < 2:
        raise ModelError(f"init.{name}: shape {list(extents)} needs at least two axes [out, in, ...]")
    field_ = math.prod(extents[2:])
    return extents[1] * field_, extents[0] * field_


_GAINS = {
    **dict.fromkeys(("linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "sigmoid"), 1.0),
    "tanh": 5.0 / 3.0,
    "relu": math.sqrt(2.0),
    "selu": 0.75,
}


def gain(nonlinearity: str, a: float = 0.0) -> float:
    """The gain of a nonlinearity, as torch.nn.init.calculate_gain, except that `a`, the negative slope of "leaky_relu",
    is 0 by default."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1.0 + a * a))
    if nonlinearity not in _GAINS:
        raise ModelError(
            f"init: unknown nonlinearity {nonlinearity!r}; known: {', '.join([*_GAINS, 'leaky_relu'])}"
        )
    return _GAINS[nonlinearity]


def kaiming_uniform(
    shape: int | Sequence[int],
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    seed: int | None = None,
) -> Uniform:
    """He et al. 2015, as torch.nn.init.kaiming_uniform_: bound = gain * sqrt(3 / fan)."""
    fan = _fan("kaiming_uniform", shape, mode)
    return uniform(shape, gain(nonlinearity, a) * math.sqrt(3.0 / fan), seed=seed)


def _fan(name: str, shape: int | Sequence[int], mode: str) -> int:
    fans = dict(zip(("fan_in", "fan_out"), _fans(name, shape), strict=True))
    if mode not in fans:
        raise ModelError(f'init.{name}: mode={mode!r}; known: "fan_in", "fan_out"')
    return fans[mode]


def kaiming_normal(
    shape: int | Sequence[int],
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    *,
    seed: int | None = None,
) -> Normal:
    """He et al. 2015, as torch.nn.init.kaiming_normal_: std = gain / sqrt(fan)."""
    fan = _fan("kaiming_normal", shape, mode)
    return normal(shape, std=gain(nonlinearity, a) / math.sqrt(fan), seed=seed)


def xavier_normal(shape: int | Sequence[int], gain: float = 1.0, *, seed: int | None = None) -> Normal:
    """Glorot and Bengio 2010, as torch.nn.init.xavier_normal_: std = gain * sqrt(2 / (fan_in + fan_out))."""
    return normal(shape, std=gain * math.sqrt(2.0 / sum(_fans("xavier_normal", shape))), seed=seed)


def xavier_uniform(shape: int | Sequence[int], gain: float = 1.0, *, seed: int | None = None) -> Uniform:
    """Glorot and Bengio 2010, as torch.nn.init.xavier_uniform_: bound = gain * sqrt(6 / (fan_in +
    fan_out))."""
    return uniform(shape, gain * math.sqrt(6.0 / sum(_fans("xavier_uniform", shape))), seed=seed)


def initialiser(name: str, values: Any, seed: int) -> Initialiser:
    """The user's `values` of parameter `name` as an initialiser. `values`: an initialiser, which gets `seed` if it has
    none, an array or a number.

    Raises ModelError, which names the parameter, if `values` are not numbers, are empty, or are not finite in float32.
    """
    if isinstance(values, Uniform | Normal):
        return values if values.seed is not None else replace(values, seed=seed)
    if isinstance(values, Constant | Given):
        return values
    if isinstance(values, Drawn):
        values = values.draw(values.shape, np.random.default_rng(seed))
    try:
        array = np.array(values, dtype=np.float64) if np.isrealobj(values) else None
    except (TypeError, ValueError):
        array = None
    if array is None:
        kind = getattr(values, "dtype", type(values).__name__)
        raise ModelError(
            f"parameter {name!r}: expected an initialiser (ag.init) or an array of numbers, not {kind}"
        )
    if array.size == 0:
        raise ModelError(f"parameter {name!r}: shape {list(array.shape)} holds no elements")
    with np.errstate(over="ignore"):
        values32 = array.astype(np.float32)
    if not np.isfinite(values32).all():
        index = [int(i) for i in np.argwhere(~np.isfinite(values32))[0]]
        raise ModelError(
            f"parameter {name!r}: the initial value at {index} is {values32[tuple(index)]}, not finite in float32"
        )
    values32.flags.writeable = False
    return Given(values32)
