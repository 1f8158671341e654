"""Figures for `pio test`: what the kernels of the contract and the functions of a model give in float64, as C headers.

Inputs are ag_rng.h's numbers, drawn on the board as here. A model's steps are PyTorch's: gradients by its autograd, the
update by torch.optim. Both headers are written by `pytest tests/test_pio_figures.py --update-golden`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from op_cases import case
from test_kernels import product_of, shapes_of

from autodiff_gen import rng
from autodiff_gen.check_torch import torch_gradients, torch_values
from autodiff_gen.compiler import compile_file
from autodiff_gen.dtypes import Dim, Type, dtype
from autodiff_gen.ir import STATE, Value, topological
from autodiff_gen.kernel_calls import Operand
from autodiff_gen.kernel_contract import CONTRACT, STRUCTS
from autodiff_gen.layout import Strided, row_major
from autodiff_gen.loader import load_file
from autodiff_gen.model import Functions, Model
from autodiff_gen.op import OPS, Call
from autodiff_gen.passes.specialise import specialise
from autodiff_gen.program import Arg, Entry, Program

ROOT = Path(__file__).resolve().parents[1]
STEPS = (2, 5)  # of training: at least, at most
ELEMENTS = 16  # of an output, at most
TOLERANCE = 1e-5  # of the largest figure of an array: float32 on the board against float64 here
RANGES = ((-1.0, 2.0), (0.1, 0.8))  # (low, span) of inputs: the first for which all figures are finite
TARGETS = (0.1, 0.8)
ROUNDING = 2.0**-20  # of a gradient's largest element: what a sum of some hundred float32 products may be off


def formatted(text: str) -> str:
    """In the repository's C style; repeated, as the program finds more to do in what it has made of very long lines."""
    words = [Path(sys.executable).with_name("clang-format"), "--assume-filename=figures.h"]
    before = ""
    while text != before:
        done = subprocess.run(words, input=text, cwd=ROOT, capture_output=True, text=True, check=True)
        before, text = text, done.stdout
    return text


def floats(values: Any) -> str:
    """float32 literals, 9 digits."""
    words = (f"{float(np.float32(v)):.9g}" for v in np.asarray(values, np.float64).reshape(-1))
    return ", ".join(f"{w if any(c in w for c in '.en') else w + '.0'}f" for w in words)


def bound(values: Any) -> str:
    return floats([TOLERANCE * max(float(np.abs(values).max()), 1e-3)])


# ---- kernels


@dataclass(frozen=True)
class KernelCase:
    """One call of a kernel: arrays of its inputs by parameter, with key and step of those that are drawn; its arguments
    as C words; what it must write."""

    kernel: str
    inputs: Mapping[str, tuple[Any, int, int]]
    struct: Mapping[str, int]
    words: Mapping[str, str]
    outputs: Mapping[str, Any]


def drawn(shape: Sequence[int], key: int, step: int, low: float = -1.0, span: float = 2.0) -> Any:
    """What figures_draw_f32 draws, float64."""
    unit = rng.unit(key, step, np.arange(int(np.prod(shape, dtype=int))))
    return (np.float32(low) + unit * np.float32(span)).astype(np.float64).reshape(shape)


def kernel_cases() -> list[KernelCase]:
    """One of every kernel in the contract that an op calls or that is a product."""
    cases = [product_case(name) for name in CONTRACT if name.startswith("ge")]
    done = {c.kernel for c in cases}
    for name, op in OPS.items():
        if isinstance(op.lower, Call) and op.lower.into is None:
            made = next(filter(None, (call_case(name, i) for i in range(len(op.samples)))), None)
            if made is not None and made.kernel not in done:
                cases.append(made)
                done.add(made.kernel)
    return cases


def product_case(name: str) -> KernelCase:
    m, n, k, alpha, beta = 3, 5, 4, 0.5, 2.0
    spec, key = CONTRACT[name], list(CONTRACT).index(name)
    arrays = {p: drawn(s, key, i) for i, (p, s) in enumerate(shapes_of(name, m, n, k).items())}
    total = product_of(name, arrays)[0]
    words = {"m": "3", "n": "5", "k": "4", "alpha": "0.5f", "beta": "2.0f"}
    words |= {f"ld{p}": str(a.shape[1]) for p, a in arrays.items()} | {p: p for p in arrays}
    want = alpha * total + beta * arrays[spec.output]
    inputs = {p: (a, key, i) for i, (p, a) in enumerate(arrays.items())}
    return KernelCase(name, inputs, {}, words, {spec.output: want})


def call_case(name: str, index: int) -> KernelCase | None:
    """The kernel call of an op's sample on dense operands; None where it is repeated along an axis."""
    op, made = OPS[name], case(name, index)
    assert isinstance(op.lower, Call)
    key = 1000 + sum(map(ord, name))
    arrays = [drawn(a.shape, key, i) if a.dtype.kind == "f" else a for i, a in enumerate(made.arrays)]
    attrs = made.sample.attrs
    types = op.infer(*(Type(_dtype_of(a), a.shape) for a in arrays), **attrs)
    types = types if isinstance(types, tuple) else (types,)
    call = op.lower.choose([Strided(a.shape, row_major(a.shape)) for a in arrays], types, attrs)
    if call.over or op.lower.scalars:
        return None
    want = op.ref(*arrays, **attrs)
    want = want if isinstance(want, tuple) else (want,)
    spec = CONTRACT[call.kernel]
    words = {p.name: f"&{p.name}" for p in spec.params if p.struct}
    words |= {n: str(v) for n, v in call.sizes.items()} | {n: floats([v]) for n, v in call.factors.items()}
    inputs: dict[str, tuple[Any, int, int]] = {}
    outputs: dict[str, Any] = {}
    for p, place in call.pointers.items():
        words[p] = p
        if isinstance(place, Operand):
            inputs[p] = arrays[place.index], key, place.index
        else:
            outputs[p] = want[place.index]
    return KernelCase(call.kernel, inputs, dict(call.shape), words, outputs)


def _dtype_of(array: Any) -> Any:
    return dtype(
        {"float64": "f32", "uint8": "u8", "int32": "s32", "uint32": "u32", "int8": "s8"}[array.dtype.name]
    )


def kernel_header() -> str:
    cases = kernel_cases()
    parts = [kernel_text(c) for c in cases]
    rows = " ".join(f"X({c.kernel})" for c in cases)
    return formatted(
        "/* Every kernel of the contract against figures in float64. Written by tests/board_figures.py. */\n"
        '#include "ag_kernels.h"\n#include "figures.h"\n\n'
        + "\n".join(parts)
        + f"\n#define KERNEL_FIGURES(X) {rows}\n"
    )


def kernel_text(c: KernelCase) -> str:
    spec = CONTRACT[c.kernel]
    c_types = {p.name: p.ctype.removeprefix("const ").removesuffix(" *") for p in spec.params}
    lines = [f"static void {c.kernel}(void) {{"]
    for p in spec.params:
        if p.struct:
            fields = ", ".join(str(c.struct[f]) for f in STRUCTS[p.struct])
            lines.append(f"static const ag_{p.struct} {p.name} = {{{fields}}};")
    for p, (a, _, _) in c.inputs.items():
        if a.dtype.kind == "f":
            lines.append(f"float {p}[{a.size}];")
        else:
            lines.append(f"static const {c_types[p]} {p}[] = {{{', '.join(map(str, a.reshape(-1)))}}};")
    for p, a in c.outputs.items():
        if p not in c.inputs:
            lines.append(f"{c_types[p]} {p}[{a.size}];")
        element = "float" if a.dtype.kind == "f" else c_types[p]
        values = floats(a) if a.dtype.kind == "f" else ", ".join(map(str, a.reshape(-1)))
        lines.append(f"static const {element} want_{p}[] = {{{values}}};")
    for p, (a, key, step) in c.inputs.items():
        if a.dtype.kind == "f":
            lines.append(f"figures_draw_f32({p}, {a.size}, {key}u, {step}u, -1.0f, 2.0f);")
    lines += [f"figures_spoil({p}, sizeof {p});" for p in c.outputs if p not in c.inputs]
    call = ", ".join(c.words[p.name] for p in spec.params)
    lines.append(f"ag_{c.kernel}_ref({call});")
    for p, a in c.outputs.items():
        if a.dtype.kind == "f":
            lines.append(f'figures_compare("{c.kernel}", {p}, want_{p}, {a.size}, {bound(a)});')
        else:
            lines.append(f'figures_equal("{c.kernel}", {p}, want_{p}, sizeof want_{p});')
    return "\n".join([*lines, "}", ""])


# ---- models and functions


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
        words = rng.rand_u32(self.key(arg), step, np.arange(self.size(arg)))
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
                lines.append(f"figures_spoil({name}, sizeof {name});")
            elif arg.type.dtype.kind == "f":
                lines.append(
                    f"figures_draw_f32({where}, {floats([self.range(arg)[0]])}, {floats([self.range(arg)[1]])});"
                )
            else:
                lines.append(f"figures_draw_{arg.type.dtype.name}({where}, {self.high(arg)}u);")
        return lines

    def words(self, entry: Entry) -> list[str]:
        """Arguments of the C function in order, `t` first."""
        words, rows = ["&t"], not entry.takes_n
        for arg in entry.args:
            if not rows and (arg.by_value or arg.role == "output"):
                words.append(str(self.program.batch))
                rows = True
            words.append(self.word(arg))
        return words

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
    """figures of an example: `steps_are_pytorchs` and `bad_arguments_are_refused`."""
    made, compiled = (load_file(str(ROOT / "examples" / name / "model.py")).made for _ in range(2))
    program = compile_file(compiled, name, ("ref",))  # which may store parameters in another order
    for low, span in RANGES:
        calls = Calls(program, low, span)
        lines = steps_of_model(made, calls) if isinstance(made, Model) else steps_of_functions(made, calls)
        if lines is not None:
            return formatted(header_text(name, calls, lines))
    raise AssertionError(f"{name}: PyTorch's figures are not finite")


def header_text(name: str, calls: Calls, steps: list[str]) -> str:
    program, upper = calls.program, calls.program.name.upper()
    state = f"{name}_init(&t, 0)" if program.is_model else f"{upper}_OK"
    refusals = [
        f'figures_status("{call}", {call}, {status});'
        for e in program.entries
        for call, status in calls.bad(e)
    ]
    for entry in program.entries:
        for arg in entry.args:
            if (
                arg.classes is not None
                and arg.ignored is None
                and not (arg.type.dtype.name == "u8" and arg.classes > 255)
            ):
                call = f"{entry.c_name}({', '.join(calls.words(entry))})"
                refusals += [f"{arg.c_name}[{calls.size(arg) - 1}] = {arg.classes};",
                             f'figures_status("{call}, {arg.c_name} out of range", {call}, {upper}_ERR_LABEL);',
                             f"{arg.c_name}[{calls.size(arg) - 1}] = 0;"]  # fmt: skip
    unchanged = []
    if program.is_model:
        refusals = [f"const uint32_t before = crc();\n{refusals[0]}", *refusals[1:]]
        unchanged = ['figures_status("the state afterwards", crc() == before, 1);']
    return "\n".join([
        f"/* {name}: calls of the generated C, and what PyTorch computes for the same numbers. Written by",
        " * tests/board_figures.py. */",
        f'#include "{name}.h"', '#include "ag_crc32.h"', '#include "figures.h"', "", "#include <stddef.h>", "",
        f"static {program.struct} t;", *calls.declarations(), "",
        "static void draw(uint32_t step) {", *calls.draw(), "}", "",
        *(crc_text(name) if program.is_model else []),
        "static void steps_are_pytorchs(void) {",
        "figures_spoil(&t, sizeof t);",
        f'figures_status("init", {state}, {upper}_OK);', *steps, "}", "",
        "static void bad_arguments_are_refused(void) {", "draw(0);", *refusals, *unchanged, "}", "",
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
    call = f'figures_compare("{arg.name}", {arg.c_name}, want, {some.size}, {bound(values)});'
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
                f'figures_status("{entry.c_name}", {call}, {calls.program.name.upper()}_OK);',
            ]
            outputs = [a for a in entry.args if a.role == "output"]
            lines += [
                compared(a, v) for a, v in zip(outputs, values, strict=True) if a.type.dtype.kind == "f"
            ]
    return lines


def steps_of_model(made: Model, calls: Calls) -> list[str] | None:
    """Steps of training, then a prediction, by PyTorch in float64: as many steps as say something in float32. Where a
    gradient is zero but for rounding, Adam makes whole steps of it: a second trainer with such gradients tells when."""
    train, predict = (
        next(e for e in calls.program.entries if e.name == n) for n in ("train_step", "predict")
    )
    fewest, most = STEPS
    trainer, rounded, losses = TorchTrainer(made), TorchTrainer(made, ROUNDING), []
    for step in range(most):
        given = calls.feeds(train, step)
        before = dict(trainer.values)
        loss = trainer.step(given)
        if not abs(rounded.step(given) - loss) <= TOLERANCE / 4 * abs(loss) and np.isfinite(loss):
            assert step >= fewest, f"rounded gradients change the loss after {step} steps"
            trainer.values = before
            break
        losses.append(loss)
    scores = trainer.predict(calls.feeds(predict, len(losses)))
    if not all(np.isfinite(v).all() for v in (losses, *scores.values())):
        return None
    ok = f"{calls.program.name.upper()}_OK"
    step_call = f"{train.c_name}({', '.join(calls.words(train))})"
    predict_call = f"{predict.c_name}({', '.join(calls.words(predict))})"
    lines = [
        f"static const float losses[] = {{{floats(losses)}}};",
        f"for (uint32_t step = 0; step < {len(losses)}; step++) {{", "draw(step);",
        f'figures_status("{train.c_name}", {step_call}, {ok});',
        f'figures_compare("loss", loss, &losses[step], 1, {bound(losses)});', "}",
        f"draw({len(losses)});", f'figures_status("{predict.c_name}", {predict_call}, {ok});',
    ]  # fmt: skip
    return lines + [
        compared(a, scores[a.name]) for a in predict.args if a.role == "output" and a.type.dtype.kind == "f"
    ]


class TorchTrainer:
    """A model trained by PyTorch in float64: its graph's loss differentiated by autograd, the update by torch.optim.
    `rounding`: how far gradients are moved at random, relative to their largest element."""

    def __init__(self, model: Model, rounding: float = 0.0) -> None:
        import torch

        self.rounding, self.noise = rounding, np.random.default_rng(1)

        self.model, (self.train, self.eval) = model, map(specialise, model.entries()[:2])
        self.loss = self.train.outputs["loss"]
        leaves = [
            n.results[0] for n in topological([self.loss, *self.eval.outputs.values()]) if n.op is STATE
        ]
        states = {v.node.attrs["state"]: _exact(v) for v in leaves}
        self.values = {s: s.stored(s.init.array()).astype(kind) for s, kind in states.items()}
        groups = model.optimizer.groups(list(self.values))
        trained = {s for g in groups for s in g.states if s.trainable}
        self.parameters = {
            s: torch.tensor(self.values[s], requires_grad=True) for s in self.values if s in trained
        }
        rule = getattr(torch.optim, type(model.optimizer).__name__)
        self.optimizer = rule(
            [{"params": [self.parameters[s] for s in g.states if s in trained], **g.options} for g in groups]
        )
        self.schedule = None
        if model.schedule is not None:
            scheduler = getattr(torch.optim.lr_scheduler, type(model.schedule).__name__)
            self.schedule = scheduler(self.optimizer, **vars(model.schedule))

    def feeds(self, roots: Sequence[Value], given: Mapping[str, Any]) -> dict[Value, Any]:
        found = {}
        for node in topological(roots):
            v = node.results[0]
            if node.op is STATE:
                found[v] = self.values[node.attrs["state"]]
            elif v.name in given and not node.operands:
                found[v] = given[v.name]
        return found

    def step(self, given: Mapping[str, Any]) -> float:
        """One step; the loss before it."""
        import torch

        buffers = {
            s: v for s, v in self.train.updates.items() if s in self.values and s not in self.parameters
        }
        feeds = self.feeds([self.loss, *buffers.values()], given)
        variables = [v for v in feeds if v.node.op is STATE and v.node.attrs["state"] in self.parameters]
        loss, *news = torch_values([self.loss, *buffers.values()], feeds, self.model.batch)
        for v, g in zip(
            variables, torch_gradients(self.loss, variables, feeds, self.model.batch), strict=True
        ):
            self.parameters[v.node.attrs["state"]].grad = torch.from_numpy(
                g + self.rounding * np.abs(g).max() * self.noise.uniform(-1, 1, g.shape)
            )
        if self.model.clip_grad_value is not None:
            torch.nn.utils.clip_grad_value_(self.parameters.values(), self.model.clip_grad_value)
        if self.model.clip_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.model.clip_grad_norm)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.values |= dict(zip(buffers, news, strict=True))
        self.values |= {s: p.detach().numpy().copy() for s, p in self.parameters.items()}
        return float(loss)

    def predict(self, given: Mapping[str, Any]) -> dict[str, Any]:
        roots = list(self.eval.outputs.values())
        return dict(
            zip(
                self.eval.outputs,
                torch_values(roots, self.feeds(roots, given), self.model.batch),
                strict=True,
            )
        )


def _exact(v: Value) -> Any:
    return "float64" if v.type.dtype.kind == "f" else v.type.dtype.numpy
