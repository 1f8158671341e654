"""The host's C as the reference of a board, and how far rounding can move each of its numbers.

Tuned kernels add in another order than `ref`. Where a gradient is 0 except for rounding, such as the gradient of a bias
before BatchNorm, Adam divides it by its own magnitude: board and host move that bias by whole learning rates, in
different directions. So the tolerance is measured. Copies of the model train beside the reference, and before each step
every float of their state changes in its last bits (J. Vignes, "A stochastic arithmetic for reliable scientific
computation", Math. Comput. Simul. 35, 1993). A board may differ from the reference by TOLERANCE, and in addition by
SPREAD times the difference between the copies and the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..host.trainer import Trainer

Array = NDArray[Any]
TOLERANCE = 1e-5  # relative to the largest magnitude of the array, or to 1 if it is larger
COPIES = 3
CHANGE = 2.0**-22  # relative, the largest change of a float: some units in its last place
SPREAD = 8.0  # a board may be an outlier among the copies


class Reference:
    """`trainer` and its changed copies; `exact`: the board must be bit-equal, and there are no copies."""

    def __init__(self, make: Callable[[], Trainer], exact: bool) -> None:
        self.trainer, self.exact = make(), exact
        self.copies = [] if exact else [make() for _ in range(COPIES)]
        self._rng = np.random.default_rng(7)
        self._spread: dict[str, float] = {}
        self.moved: set[str] = (
            set()
        )  # arrays that rounding moved by more than TOLERANCE, on the board as in the copies

    @property
    def trainers(self) -> list[Trainer]:
        return [self.trainer, *self.copies]

    def init(self) -> None:
        """The initial weights; forgets the differences between the copies."""
        self._spread.clear()
        for t in self.trainers:
            t.init()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The same state in the reference and the copies."""
        for t in self.trainers:
            t.load_state_dict(state)

    def snapshot(self) -> list[dict[str, Array]]:
        """The states of the reference and the copies, for `restore`."""
        return [t.state_dict() for t in self.trainers]

    def restore(self, snapshot: Sequence[Mapping[str, Array]]) -> None:
        """The states of `snapshot`."""
        for t, state in zip(self.trainers, snapshot, strict=True):
            t.load_state_dict(state)

    def train_step(self, *arrays: Any) -> float:
        """One step of all; returns the reference's loss."""
        for t in self.copies:
            state = t.state_dict()
            t.load_state_dict({s.name: self._changed(state[s.name]) for s in t.program.slots})
        loss = self.trainer.train_step(*arrays)
        for t in self.copies:
            self._differ("loss", t.train_step(*arrays), loss)
        return loss

    def predict(self, *arrays: Any) -> dict[str, Array]:
        """The reference's outputs by name; `outputs` if there is one."""
        outs = _named(self.trainer.predict(*arrays))
        for t in self.copies:
            for name, array in _named(t.predict(*arrays)).items():
                self._differ(name, array, outs[name])
        return outs

    def state_dict(self) -> dict[str, Array]:
        """The reference's state."""
        state = self.trainer.state_dict()
        for t in self.copies:
            for name, array in t.state_dict().items():
                self._differ(name, array, state[name])
        return state

    def differs(self, name: str, board: Any, host: Any) -> str:
        """How far the board's array is off, if it is more than rounding explains; otherwise empty."""
        a, b = np.asarray(board), np.asarray(host)
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return ""
        scale = float(np.abs(b).max()) if b.size else 0.0
        off = _distance(a, b)
        usual = 0.0 if self.exact else TOLERANCE * max(1.0, scale)
        allowed = usual + SPREAD * self._spread.get(name, 0.0)
        if off <= allowed:
            self.moved |= {name} if off > usual else set()
            return ""
        return f"off by {off:.3g}, rounding explains {allowed:.3g} (largest value {scale:.3g})"

    def _differ(self, name: str, copy: Any, reference: Any) -> None:
        self._spread[name] = max(self._spread.get(name, 0.0), _distance(copy, reference))

    def _changed(self, array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        factor = 1.0 + self._rng.uniform(-CHANGE, CHANGE, array.shape)
        return (array * factor).astype(array.dtype)


def _named(outs: Any) -> dict[str, Array]:
    return outs if isinstance(outs, dict) else {"outputs": outs}


def _distance(a: Any, b: Any) -> float:
    """The largest difference of two arrays; infinity where only one is finite."""
    one, two = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.where((one == two) | (np.isnan(one) & np.isnan(two)), 0.0, np.abs(one - two))
    return float(np.nan_to_num(difference, nan=np.inf).max()) if difference.size else 0.0
