"""Where everything is stored in the memory that a board offers over the link, for the generated C and the host."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import DataError, listed
from ..ir.identifiers import Scope
from ..ir.types import Type, bound, varies
from .program import Arg, Entry, Program


@dataclass(frozen=True)
class LinkArray:
    """One array of the link's memory: `offset` in bytes from the first input or the first output."""

    arg: Arg
    member: str  # of the generated struct
    offset: int
    is_target: bool
    batch: int

    @property
    def name(self) -> str:
        """The name of the argument in the model."""
        return self.arg.name

    @property
    def type(self) -> Type:
        return self.arg.type

    def bytes(self, n: int) -> int:
        """Bytes of its first n rows."""
        size = self.type.dtype.size
        for d in bound(self.type.shape, n):
            size *= d
        return size

    @property
    def row(self) -> int:
        """Bytes of one row; 0 where its size does not depend on n."""
        follows = varies(self.type.shape)
        return self.bytes(self.batch) // self.batch if follows else 0

    @property
    def fixed(self) -> int:
        return 0 if self.row else self.bytes(self.batch)

    @property
    def count(self) -> int:
        """Elements of the member, which fills whole words."""
        return (self.bytes(self.batch) + 3) // 4 * 4 // self.type.dtype.size


@dataclass(frozen=True)
class LinkLayout:
    """Inputs, then targets; outputs; and how long each part is in bytes."""

    inputs: tuple[LinkArray, ...]
    outputs: tuple[LinkArray, ...]

    @property
    def input_bytes(self) -> int:
        return _end(self.inputs)

    @property
    def output_bytes(self) -> int:
        return _end(self.outputs)

    @property
    def records(self) -> int:
        """The most records that a local step takes: the batch. 1 if an array has no row for each sample, as where the
        batch is fixed: one record then has the whole array."""
        return min(a.batch if a.row else 1 for a in self.inputs)

    @property
    def output_row(self) -> int:
        """Bytes of one row of a single output; 0 where all outputs are moved as a whole."""
        return self.outputs[0].row if len(self.outputs) == 1 else 0


def _end(arrays: tuple[LinkArray, ...]) -> int:
    last = arrays[-1]
    return last.offset + last.count * last.type.dtype.size


def entry(program: Program, name: str) -> Entry:
    return next(e for e in program.entries if e.name == name)


def step_sizes(program: Program, name: str = "train_step") -> range:
    """The numbers of samples that a function of the program takes. Raises DataError if its arrays disagree."""
    called, most = entry(program, name), rows_per_step(link_layout(program).inputs)
    return range(called.least_n if called.takes_n else most, most + 1)


def rows_per_step(inputs: tuple[LinkArray, ...]) -> int:
    """Samples of a full batch, along axis 0 of every array. Raises DataError if the arrays disagree."""
    rows = {bound(a.type.shape, a.batch)[0] if a.type.shape else 0 for a in inputs}
    if len(rows) != 1 or 0 in rows:
        types = listed(f"{a.name}: {a.type!r}" for a in inputs)
        raise DataError(f"a data set cannot be split into steps: the first axes of {types} differ")
    return rows.pop()


def link_layout(program: Program) -> LinkLayout:
    """Inputs of predict, then the targets that train_step takes in addition, each in the order of C's arguments."""
    train, predict = entry(program, "train_step"), entry(program, "predict")
    scope = Scope(["trainer"])
    inputs_of_predict = [a for a in predict.args if a.role == "input"]
    known = {a.name for a in inputs_of_predict}
    targets = [a for a in train.args if a.role == "input" and a.name not in known and not train.is_lr(a)]
    inputs = _placed(inputs_of_predict + targets, known, scope, program.batch)
    outputs = _placed([a for a in predict.args if a.role == "output"], None, scope, program.batch)
    return LinkLayout(inputs, outputs)


def _placed(args: list[Arg], known: set[str] | None, scope: Scope, batch: int) -> tuple[LinkArray, ...]:
    made: list[LinkArray] = []
    for a in args:
        offset = _end(tuple(made)) if made else 0
        is_target = known is not None and a.name not in known
        made.append(LinkArray(a, scope.fresh(a.c_name), offset, is_target, batch))
    return tuple(made)


def label_and_scores(layout: LinkLayout) -> tuple[LinkArray, LinkArray] | None:
    """The classes and their scores, [n, ...] and [n, classes, ...]; None unless the model has one integer
    label and one output of these shapes."""
    targets = [a for a in layout.inputs if a.is_target]
    if len(targets) != 1 or targets[0].type.dtype.kind == "f" or len(layout.outputs) != 1:
        return None
    label, scores = targets[0], layout.outputs[0]
    shape = scores.type.shape
    if len(shape) < 2 or label.type.shape != (shape[0], *shape[2:]):
        return None
    return label, scores


def compared_classes(layout: LinkLayout) -> tuple[LinkArray, LinkArray] | None:
    """`label_and_scores` of a model that a board can evaluate (runtime/ag_round_samples.c): its scores are floats."""
    found = label_and_scores(layout)
    return found if found is not None and found[1].type.dtype.name == "f32" else None
