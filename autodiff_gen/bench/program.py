"""The sources of a benchmark: generated C with probes, a main program that calls it on data, and the list of probes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.c_printer import PRINTER
from ..codegen.constants import ConstantArray, table
from ..codegen.files import emit, templates
from ..codegen.program import Arg, Entry, Program
from ..errors import ShapeError
from ..ir.types import planned, planned_size
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..model.loader import LoadedFile
from ..model.model import Model
from ..targets.installation import __version__
from .probes import ProbeRecord, entry_probes, ids, probes

DATA_BYTES = 1 << 17  # the most bytes of inputs and targets in flash; later steps use the first data again
Data = Mapping[str, NDArray[Any]]


def bench_texts(program: Program, file: LoadedFile, steps: int) -> dict[str, str]:
    """File name -> text: NAME.h, NAME.c with probes, NAME_params.c, NAME_bench.c with main, NAME_probes.json. Raises
    ShapeError where the file's data do not have the shapes of the inputs."""
    listed = probes(program)
    name = program.name
    return {
        **emit(program, ids(listed)),
        f"{name}_bench.c": _main(program, listed, data(program, file, steps), steps),
        f"{name}_probes.json": probes_json(program, listed, steps),
    }


def counted_texts(program: Program, file: LoadedFile, steps: int) -> dict[str, str]:
    """File name -> text: the generated C, and NAME_bench.c, which has a probe for each entry."""
    main = _main(program, entry_probes(program), data(program, file, steps), steps)
    return {**emit(program), f"{program.name}_bench.c": main}


def probes_json(program: Program, listed: Sequence[ProbeRecord], steps: int) -> str:
    """The list of probes, for the command that counts."""
    head = {"schema": 1, "model": program.name, "batch": program.samples, "steps": steps}
    head["bytes"] = program.struct_bytes
    return json.dumps({**head, "probes": [asdict(p) for p in listed]}, indent=1) + "\n"


# Data


def data(program: Program, file: LoadedFile, steps: int) -> list[Data]:
    """Arrays by input for the first steps, as many steps as fit in DATA_BYTES: from the file's `batch`, otherwise from
    its `samples`, otherwise pseudorandom floats in [0.1, 0.9) and class indices from a fixed seed."""
    inputs = _inputs(program)
    size = sum(planned_size(a.type.shape) * a.type.dtype.size for a in inputs.values())
    count = max(1, min(steps, DATA_BYTES // max(size, 1)))
    generator = np.random.default_rng(0)
    return [{k: _array(a, file, step, generator) for k, a in inputs.items()} for step in range(count)]


def _inputs(program: Program) -> dict[str, Arg]:
    """The inputs of all entries; inputs with the same name and type are shared."""
    return {_key(a): a for e in program.entries for a in e.args if a.role != "output" and not e.is_lr(a)}


def _key(arg: Arg) -> str:
    return f"{arg.name}: {arg.type!r}"


def _array(arg: Arg, file: LoadedFile, step: int, generator: np.random.Generator) -> NDArray[Any]:
    shape = planned(arg.type.shape)
    given = _given(arg, file, step)
    if given is not None:
        if given.shape[1:] != shape[1:] or given.size == 0:
            raise ShapeError(f"{file.name}: {arg.name} must have the shape {shape}, not {given.shape}")
        return np.resize(given, shape).astype(arg.type.dtype.numpy)
    if arg.type.dtype.kind == "f":
        return generator.uniform(0.1, 0.9, shape).astype(np.float32)
    return generator.integers(0, arg.classes or 2, shape).astype(arg.type.dtype.numpy)


def _given(arg: Arg, file: LoadedFile, step: int) -> NDArray[Any] | None:
    if file.batch is not None and isinstance(file.made, Model):
        names = [v.name for v in (*file.made.inputs, *file.made.targets)]
        return np.asarray(file.batch(step)[names.index(arg.name)]) if arg.name in names else None
    return np.asarray(file.samples[arg.name]) if arg.name in file.samples else None


# The main program


def _main(program: Program, listed: Sequence[ProbeRecord], given: Sequence[Data], steps: int) -> str:
    tables = _tables(program, given)
    overhead = {p.entry: p.id for p in listed if not p.step}
    outputs = [
        {"c_type": a.type.dtype.c, "name": _output(e, a), "count": max(1, planned_size(a.type.shape))}
        for e in program.entries
        for a in e.args
        if a.role == "output" and not _is_loss(e, a)
    ]
    calls = [
        {"name": e.name, "probe": overhead[e.name], "text": _call(e, program, len(given))}
        for e in program.entries
    ]
    return (
        templates()
        .get_template("bench.c.j2")
        .render(
            p=program,
            version=__version__,
            steps=steps,
            records=len(given),
            probes=len(listed) + 1,
            tables=tables,
            outputs=outputs,
            calls=calls,
            losses=any(_is_loss(e, a) for e in program.entries for a in e.args),
        )
    )


def _tables(program: Program, given: Sequence[Data]) -> list[ConstantArray]:
    return [
        table(f"data_{k}", np.concatenate([d[key].reshape(-1) for d in given]), arg.type.dtype)
        for k, (key, arg) in enumerate(_inputs(program).items())
    ]


def _is_loss(e: Entry, a: Arg) -> bool:
    return a.role == "output" and a.name == "loss" and e.name in ("train_step", "accumulate")


def _output(e: Entry, a: Arg) -> str:
    return f"{e.name}_{a.c_name}"


def _call(e: Entry, program: Program, records: int) -> str:
    """The call of an entry with the data of record `at`, an index in the C code, and a full batch."""
    keys = list(_inputs(program))
    arguments: list[c.Expr] = [c.Unary("&", c.Name("trainer"))]
    for a in e.parameters:
        if a is None:
            arguments.append(c.number(program.batch))
        elif _is_loss(e, a):
            arguments.append(c.Unary("&", c.Element(c.Name("losses"), c.Name("step"))))
        elif a.role == "output":
            arguments.append(c.Name(_output(e, a)))
        elif e.is_lr(a):
            arguments.append(c.Literal(c_syntax.float_literal(program.default_lr or 0.0)))
        else:
            place, at = c.Name(f"data_{keys.index(_key(a))}"), c.Name("at")
            if a.by_value:
                arguments.append(c.Element(place, at if records > 1 else c.number(0)))
            else:
                start = c.Binary("*", c.number(size), at) if (size := planned_size(a.type.shape)) > 1 else at
                arguments.append(c.plus(place, [start] if records > 1 else []))
    return PRINTER.expression(c.Call(e.c_name, tuple(arguments)))
