"""Test vectors for `pio test`: the results of a model's functions in PyTorch, as a C header.

Inputs are ag_rng.h's numbers, drawn on the board as here. write_vectors.py writes the header.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from checkout import ROOT
from interpreted_training import InterpretedTrainer
from kernel_vectors import TOLERANCE, bound, drawn, floats
from torch_autograd import TorchTrainer

from autodiff_gen.check.torch_oracle import torch_values
from autodiff_gen.codegen.program import Arg, Entry, Program
from autodiff_gen.ir import counter_rng
from autodiff_gen.ir.types import Dim
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.function import Functions
from autodiff_gen.model.loader import load_file
from autodiff_gen.model.model import Model

STEPS = (2, 5)  # of training: at least, at most
ELEMENTS = 16  # of an output, at most
RANGES = ((-1.0, 2.0), (0.1, 0.8))  # (low, span) of inputs: the first for which all results are finite
TARGETS = (0.1, 0.8)


class Calls:
    """The entries of a program called with drawn inputs: values for PyTorch, and the C that makes the same calls."""

    def __init__(self, program: Program, low: float, span: float) -> None:
        self.program, self.low, self.span = program, low, span
        self.args: dict[str, Arg] = {}
        self.sizes: dict[
            str, int
        ] = {}  # of the largest argument of the name, for functions of several shapes
        for entry in program.entries:
            for arg in entry.args:
                if arg.name != "lr":
                    assert self.args.setdefault(arg.c_name, arg).type.dtype is arg.type.dtype
                    self.sizes[arg.c_name] = max(self.sizes.get(arg.c_name, 1), self.size(arg))

    def size(self, arg: Arg) -> int:
        batch = self.program.batch
        return int(np.prod([d.coef * batch if isinstance(d, Dim) else d for d in arg.type.shape], dtype=int))

    def shape(self, arg: Arg) -> tuple[int, ...]:
        return tuple(d.coef * self.program.batch if isinstance(d, Dim) else d for d in arg.type.shape)

    def key(self, arg: Arg) -> int:
        return 100 + list(self.args).index(arg.c_name)

    def high(self, arg: Arg) -> int:
        return arg.classes or (256 if arg.type.dtype.name == "u8" else 1 << 16)

    def range(self, arg: Arg) -> tuple[float, float]:
        return TARGETS if arg.name == "target" else (self.low, self.span)

    def value(self, arg: Arg, step: int) -> Any:
        """The input's array at a step, as PyTorch gets it."""
        if arg.type.dtype.kind == "f":
            return drawn(self.shape(arg), self.key(arg), step, *self.range(arg))
        words = counter_rng.rand_u32(self.key(arg), step, np.arange(self.size(arg)))
        return (words % self.high(arg)).astype(arg.type.dtype.numpy).reshape(self.shape(arg))

    def feeds(self, entry: Entry, step: int) -> dict[str, Any]:
        return {a.name: self.value(a, step) for a in entry.args if a.role != "output" and a.name != "lr"}

    def declarations(self) -> list[str]:
        return [f"static {a.type.dtype.c} {name}[{self.sizes[name]}];" for name, a in self.args.items()]

    def draw(self) -> list[str]:
        """C that draws all inputs of `step`, and spoils the outputs."""
        lines = []
        for name, arg in self.args.items():
            where = f"{name}, {self.sizes[name]}, {self.key(arg)}u, step"
            if arg.role == "output":
                lines.append(f"vectors_spoil({name}, sizeof {name});")
            elif arg.type.dtype.kind == "f":
                lines.append(
                    f"vectors_draw_f32({where}, {floats([self.range(arg)[0]])}, {floats([self.range(arg)[1]])});"
                )
            else:
                lines.append(f"vectors_draw_{arg.type.dtype.name}({where}, {self.high(arg)}u);")
        return lines

    def words(self, entry: Entry) -> list[str]:
        """Arguments of the C function in order, `t` first."""
        arguments = (str(self.program.batch) if a is None else self.word(a) for a in entry.parameters)
        return ["&t", *arguments]

    def word(self, arg: Arg) -> str:
        if arg.name == "lr":
            return f"{self.program.name.upper()}_DEFAULT_LR"
        return f"{arg.c_name}[0]" if arg.by_value else arg.c_name

    def bad(self, entry: Entry) -> list[tuple[str, str]]:
        """(call, status) for every argument that can be wrong."""
        prefix, words = self.program.name.upper(), self.words(entry)
        found = []

        def call(index: int, word: str, status: str) -> None:
            wrong = [*words[:index], word, *words[index + 1 :]]
            found.append((f"{entry.c_name}({', '.join(wrong)})", f"{prefix}_ERR_{status}"))

        call(0, "NULL", "NULL")
        by_word = {self.word(a): a for a in entry.args}
        for index, word in enumerate(words[1:], 1):
            arg = by_word.get(word)
            if arg is None:
                for rows in ("0", "-1", str(self.program.batch + 1)):
                    call(index, rows, "BATCH")
            elif not arg.by_value:
                call(index, "NULL", "NULL")
        return found


def model_header(name: str) -> str:
    """Test vectors of an example: `steps_are_pytorchs` and `bad_arguments_are_rejected`."""
    made, compiled = (load_file(str(ROOT / "examples" / name / "model.py")).made for _ in range(2))
    program = compile_file(compiled, name, ("ref",))  # which may store parameters in another order
    for low, span in RANGES:
        calls = Calls(program, low, span)
        lines = steps_of_model(made, calls) if isinstance(made, Model) else steps_of_functions(made, calls)
        if lines is not None:
            return header_text(name, calls, lines)
    raise AssertionError(f"{name}: PyTorch's results are not finite")


def header_text(name: str, calls: Calls, steps: list[str]) -> str:
    program, upper = calls.program, calls.program.name.upper()
    state = f"{name}_init(&t, 0)" if program.is_model else f"{upper}_OK"
    rejections = [
        f'vectors_status("{call}", {call}, {status});'
        for e in program.entries
        for call, status in calls.bad(e)
    ]
    for entry in program.entries:
        for arg in entry.args:
            if arg.classes is not None and not (arg.type.dtype.name == "u8" and arg.classes > 255):
                call = f"{entry.c_name}({', '.join(calls.words(entry))})"
                rejections += [f"{arg.c_name}[{calls.size(arg) - 1}] = {arg.classes};",
                             f'vectors_status("{call}, {arg.c_name} out of range", {call}, {upper}_ERR_LABEL);',
                             f"{arg.c_name}[{calls.size(arg) - 1}] = 0;"]  # fmt: skip
    unchanged = []
    if program.is_model:
        rejections = [f"const uint32_t before = crc();\n{rejections[0]}", *rejections[1:]]
        unchanged = ['vectors_status("the state afterwards", crc() == before, 1);']
    return "\n".join([
        f"/* {name}: calls of the generated C, and what PyTorch computes for the same numbers. Written by",
        " * tests/support/model_vectors.py. */",
        f'#include "{name}.h"', '#include "ag_crc32.h"', '#include "vectors.h"', "", "#include <stddef.h>", "",
        f"static {program.struct} t;", *calls.declarations(), "",
        "static void draw(uint32_t step) {", *calls.draw(), "}", "",
        *(crc_text(name) if program.is_model else []),
        "static void steps_are_pytorchs(void) {",
        "vectors_spoil(&t, sizeof t);",
        f'vectors_status("init", {state}, {upper}_OK);', *steps, "}", "",
        "static void bad_arguments_are_rejected(void) {", "draw(0);", *rejections, *unchanged, "}", "",
    ])  # fmt: skip


def crc_text(name: str) -> list[str]:
    return [
        "static int add_to_crc(void *ctx, uint32_t offset, const void *data, uint32_t bytes) {",
        "uint32_t *sum = (uint32_t *)ctx;",
        "*sum = ag_crc32(offset == 0 ? 0 : *sum, data, bytes);", "return 0;", "}", "",
        "static uint32_t crc(void) {", "uint32_t sum = 0;",
        f"(void){name}_save(&t, add_to_crc, &sum);", "return sum;", "}", "",
    ]  # fmt: skip


def compared(arg: Arg, values: Any) -> str:
    some = np.asarray(values, np.float64).reshape(-1)[:ELEMENTS]
    call = f'vectors_compare("{arg.name}", {arg.c_name}, want, {some.size}, {bound(values)});'
    return f"{{static const float want[] = {{{floats(some)}}};\n{call}}}"


def steps_of_functions(made: Functions, calls: Calls) -> list[str] | None:
    lines = []
    for function, entry in zip(made, calls.program.entries, strict=True):
        for step in range(2):
            given = calls.feeds(entry, step)
            feeds = {v: given[v.name] for v in function.graph.inputs if v.name is not None}
            values = torch_values(list(function.graph.outputs.values()), feeds, made.batch)
            if not all(np.isfinite(v).all() for v in values):
                return None
            call = f"{entry.c_name}({', '.join(calls.words(entry))})"
            lines += [
                f"draw({step});",
                f'vectors_status("{entry.c_name}", {call}, {calls.program.name.upper()}_OK);',
            ]
            outputs = [a for a in entry.args if a.role == "output"]
            lines += [
                compared(a, v) for a, v in zip(outputs, values, strict=True) if a.type.dtype.kind == "f"
            ]
    return lines


def _agree(values: Any, others: Any) -> bool:
    """Whether the effect of rounding is far below what tests of the board tolerate."""
    return bool(np.abs(np.subtract(others, values)).max() <= TOLERANCE / 4 * np.abs(values).max())


def steps_of_model(made: Model, calls: Calls) -> list[str] | None:
    """Steps of training, and a prediction after the last of them that says something, by PyTorch in float64, or by the
    interpreter where integers train. Where a gradient is zero but for rounding, Adam makes whole steps of it: a second
    trainer, in float32, tells when."""
    train, predict = (
        next(e for e in calls.program.entries if e.name == n) for n in ("train_step", "predict")
    )
    fewest, most = STEPS
    trains_integers = any(s.type.quantization is not None for s in made.states)
    kind = InterpretedTrainer if trains_integers else TorchTrainer
    trainer, rounded = kind(made), kind(made, "float32")
    steps: list[list[str]] = []
    after, prediction = 0, prediction_of(calls, predict, trainer, 0)
    for step in range(most):
        inputs, later = calls.feeds(train, step), calls.feeds(predict, step + 1)
        loss, other = trainer.step(inputs), rounded.step(inputs)
        found, others = trainer.predict(later), rounded.predict(later)
        if not np.isfinite(loss) or not all(np.isfinite(v).all() for v in found.values()):
            return None
        if not _agree(loss, other):
            break
        steps.append(step_of(calls, train, step, loss))
        if all(_agree(v, others[name]) for name, v in found.items()):
            after, prediction = step + 1, prediction_of(calls, predict, trainer, step + 1)
    assert len(steps) >= fewest, f"rounding changes the loss after {len(steps)} steps"
    return [*chain.from_iterable(steps[:after]), *prediction, *chain.from_iterable(steps[after:])]


def step_of(calls: Calls, train: Entry, step: int, loss: float) -> list[str]:
    call = f"{train.c_name}({', '.join(calls.words(train))})"
    return [
        f"draw({step});",
        f'vectors_status("{train.c_name}", {call}, {calls.program.name.upper()}_OK);',
        f'{{static const float want[] = {{{floats(loss)}}};\nvectors_compare("loss", loss, want, 1, {bound(loss)});}}',
    ]


def prediction_of(
    calls: Calls, predict: Entry, trainer: TorchTrainer | InterpretedTrainer, step: int
) -> list[str]:
    scores = trainer.predict(calls.feeds(predict, step))
    call = f"{predict.c_name}({', '.join(calls.words(predict))})"
    return [
        f"draw({step});",
        f'vectors_status("{predict.c_name}", {call}, {calls.program.name.upper()}_OK);',
        *(
            compared(a, scores[a.name])
            for a in predict.args
            if a.role == "output" and a.type.dtype.kind == "f"
        ),
    ]
