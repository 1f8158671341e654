"""Generated C on the host: the code that the board runs, compiled by the host's compiler and called through ctypes."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen.compiler import compile_function, compile_model
from ..codegen.files import emit
from ..codegen.program import Entry, Program, RegionStruct, Slot
from ..codegen.program_regions import Ram
from ..codegen.specification import FunctionSpec, ModelSpec
from ..codegen.state_dict import check_state, given, state_dict
from ..errors import AutodiffError, DataError, ModelError, ShapeError, listed
from ..ir.identifiers import is_identifier
from ..ir.types import DType
from ..kernels import registry as _backends
from ..reading.limits import MEMORY
from ..reading.regular import read_bytes
from .arguments import Batch, checked, out_array
from .compiler import Compiler, find_compiler
from .wrong_indices import reject_wrong_indices

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


class _Compiled:
    """A program as a loaded library, with one instance of its struct, and one of the struct of each region of
    memory."""

    def __init__(self, program: Program, compiler: Compiler, poison: bool) -> None:
        self.program = program
        self.source = emit(program, poison=poison)
        self.library = compiler.library(self.source, program.backends, program.kernels)
        self.nbytes = program.struct_bytes
        self.memory = _struct(program)()
        self.regions = {r.pointer: _region_struct(r)() for r in program.regions}
        structs = list(self.regions.values()) or [self.memory]
        sizes = [r.bytes for r in program.regions] or [program.struct_bytes]
        assert [ctypes.sizeof(s) for s in structs] == sizes, (sizes, [ctypes.sizeof(s) for s in structs])
        # As on a board, memory is not zero at first. Floats with all bits set are NaN, which exposes reads before
        # writes.
        for struct in (*structs, self.memory):
            ctypes.memset(ctypes.byref(struct), 0xFF, ctypes.sizeof(struct))
        self._strstatus = self.library[f"{program.name}_strstatus"]
        self._strstatus.argtypes, self._strstatus.restype = [ctypes.c_int], ctypes.c_char_p

    def init(self, seed: int) -> None:
        """Call the program's init."""
        regions = [ctypes.byref(r) for r in self.regions.values()]
        self.call(f"{self.program.name}_init", *regions, ctypes.c_uint32(seed))

    def call(self, symbol: str, *args: Any) -> None:
        """Call `symbol(&memory, *args)`; raises AutodiffError for a negative status."""
        status = self.library[symbol](ctypes.byref(self.memory), *args)
        if status != 0:
            raise AutodiffError(f"{symbol}: {self._strstatus(status).decode()} (status {status})")

    def run(self, entry: Entry, given: Sequence[Any], lr: float | None = None) -> list[Any]:
        """Call an entry with arrays in the order of its inputs; returns its outputs in order."""
        if lr is not None and not any(entry.is_lr(a) for a in entry.args):
            raise ModelError(f"{entry.name} takes no lr: the model's schedule computes it")
        order = {v: i for i, v in enumerate(entry.plan.graph.inputs)}
        inputs = [a for a in entry.args if a.value is not None and not entry.is_lr(a)]
        # C takes arrays before scalars, Python takes the model's order.
        inputs.sort(key=lambda a: order[a.value] if a.value is not None else 0)
        if len(given) != len(inputs):
            expected = listed(f"{a.name}: {a.type}" for a in inputs) if inputs else "nothing"
            raise ShapeError(f"{entry.name} takes {len(inputs)} arrays ({expected}), got {len(given)}")
        batch = Batch(self.program.batch, entry.least_n)
        arrays = {a.c_name: checked(a, value, batch) for a, value in zip(inputs, given, strict=True)}
        reject_wrong_indices(
            entry.plan.graph.checks, {a.value: arrays[a.c_name] for a in inputs if a.value is not None}
        )
        outs = {a.c_name: out_array(a, batch) for a in entry.args if a.role == "output"}
        args: list[Any] = []
        for arg in entry.parameters:
            if arg is None:
                args.append(ctypes.c_int32(batch.rows))
            elif entry.is_lr(arg):
                args.append(ctypes.c_float(lr if lr is not None else self._default_lr()))
            elif arg.by_value:
                args.append(_c_type(arg.type.dtype)(arrays[arg.c_name].item()))
            else:
                array = arrays[arg.c_name] if arg.c_name in arrays else outs[arg.c_name]
                args.append(ctypes.c_void_p(array.ctypes.data))
        self.call(entry.c_name, *args)
        return [outs[a.c_name] for a in entry.args if a.role == "output"]

    def _default_lr(self) -> float:
        if self.program.default_lr is None:
            raise ModelError(f"{self.program.name} has no default learning rate; give lr=")
        return self.program.default_lr


def _c_type(dtype: DType) -> Any:
    """The ctypes type of an element: bool as a byte, as in the C."""
    return np.ctypeslib.as_ctypes_type(np.uint8 if dtype.kind == "b" else dtype.numpy)


def _struct(program: Program) -> type[ctypes.Structure]:
    """The trainer's C struct: the states, the arena of floats and the arena of integers, or pointers to the structs of
    its regions of memory; then the number of the part, for a program whose steps are split."""
    if program.regions:
        fields: list[tuple[str, Any]] = [(r.member, ctypes.c_void_p) for r in program.regions]
    else:
        words = (program.padding_words, max(program.arena_words, 1), program.int_words)
        fields = _members(program.slots, *words)
    if program.split:
        fields.append(("part", ctypes.c_uint32))
    return type(program.struct, (ctypes.Structure,), {"_fields_": fields})


def _region_struct(region: RegionStruct) -> type[ctypes.Structure]:
    fields = _members(region.slots, region.padding_words, region.arena_words, region.int_words)
    return type(region.struct, (ctypes.Structure,), {"_fields_": fields})


def _members(slots: Sequence[Slot], padding: int, floats: int, integers: int) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = [(s.c_name, _c_type(s.type.dtype) * s.count) for s in slots]
    arenas: list[tuple[str, Any]] = [
        ("before_arena", ctypes.c_float * padding),
        ("arena", ctypes.c_float * floats),
        ("int_arena", ctypes.c_int32 * integers),
    ]
    return [*fields, *((name, kind) for name, kind in arenas if ctypes.sizeof(kind))]


def _kernel_list(kernels: str | Sequence[str]) -> list[str]:
    return _backends.parse_list(kernels) if isinstance(kernels, str) else list(kernels)


class HostFunction:
    """A function of graph values as a callable; `source` has the generated files (name -> text). `poison`: as in
    `emit`."""

    def __init__(self, program: Program, compiler: Compiler, poison: bool = False) -> None:
        self._compiled = _Compiled(program, compiler, poison)
        self.program, self.source = program, self._compiled.source

    def __call__(self, *arrays: Any) -> list[Any]:
        """Call with arrays in the order of the function's inputs (parameters included); returns a list of outputs."""
        return self._compiled.run(self.program.entries[0], arrays)


def host_function(
    function: FunctionSpec, kernels: str | Sequence[str] = "ref", opt: str = ""
) -> HostFunction:
    """The function compiled for the host. `kernels`: backends by priority; `opt`: -O level, chosen by `Compiler` if
    empty."""
    program = compile_function(function, "function", _kernel_list(kernels))
    return HostFunction(program, Compiler(find_compiler(), opt))


def host_trainer(
    model: ModelSpec,
    kernels: str | Sequence[str] = "ref",
    opt: str = "",
    cc: str | None = None,
    ram: Ram = None,
) -> Trainer:
    """The model compiled for the host and initialised with seed 0. ram: the bytes that parameters, optimizer state and
    arena may take together, or a dict with the bytes of each region of memory by name, the main region first. cc: the
    compiler, as in find_compiler; other arguments as in `host_function`. Raises PlanError if more bytes are needed."""
    sizes = list(ram.values()) if isinstance(ram, Mapping) else [] if ram is None else [ram]
    named = not isinstance(ram, Mapping) or (ram and all(is_identifier(name) for name in ram))
    if not named or any(not isinstance(n, int) or isinstance(n, bool) or n < 1 for n in sizes):
        raise ModelError(
            f"ram={ram!r}: must be a number of bytes, such as {96 << 10}, or one for each region by its name"
        )
    program = compile_model(model, "model", _kernel_list(kernels), ram=ram)
    return Trainer(program, Compiler(find_compiler(cc), opt))


class Trainer:
    """A trainer of one model: its parameters, optimizer state and arena in one struct, as on the board.

    `source`: the generated files (name -> text); `program`: the compiled program; `nbytes`: sizeof the struct;
    `poison`: as in `emit`.
    """

    def __init__(self, program: Program, compiler: Compiler, poison: bool = False) -> None:
        self._compiled = _Compiled(program, compiler, poison)
        self._entries = {e.name: e for e in program.entries}
        self.program, self.source, self.nbytes = program, self._compiled.source, self._compiled.nbytes
        self.init()

    @property
    def library(self) -> ctypes.CDLL:
        """The loaded library; its functions take `memory` by reference."""
        return self._compiled.library

    @property
    def memory(self) -> ctypes.Structure:
        """The trainer's struct."""
        return self._compiled.memory

    def init(self, seed: int = 0) -> None:
        """Set the initial weights: the model's for seed 0, otherwise new random ones. `seed`: 32 bits."""
        if not 0 <= seed < 1 << 32:
            raise ShapeError(f"seed {seed} is outside 0 to 2^32 - 1")
        self._compiled.init(seed)

    def train_step(self, *arrays: Any, lr: float | None = None) -> float:
        """One step on one batch: inputs, then targets, in the model's order. Returns the loss before the update.

        Axis 0 may have any number of rows up to the model's batch. `lr` defaults to the optimizer's; a model with a
        schedule has no `lr` argument. Raises ShapeError, and AutodiffError when the step is rejected.
        """
        outs = self._compiled.run(self._entries["train_step"], arrays, lr)
        return float(outs[0])

    def abort(self) -> None:
        """Abandon a step in parts: the weights are as before the step. Raises AutodiffError if its updates have begun,
        ModelError for models without split=True."""
        if not self.program.split:
            raise ModelError("abort: no step is made in parts; build the model with split=True")
        self._compiled.call(f"{self.program.name}_abort")

    def accumulate(self, *arrays: Any) -> float:
        """Add the gradients of one micro-batch to the accumulated ones; returns its loss. For models with
        accumulate=."""
        outs = self._compiled.run(self._entry("accumulate", "accumulate="), arrays)
        return float(outs[0])

    def apply(self, lr: float | None = None) -> None:
        """One optimizer step with the accumulated gradients, as if their micro-batches were one batch; clears them."""
        self._compiled.run(self._entry("apply", "accumulate="), (), lr)

    def predict_averaged(self, *arrays: Any) -> Any:
        """`predict` with the averaged weights. For models with ema=."""
        return self._predicted(self._entry("predict_averaged", "ema="), arrays)

    def predict(self, *arrays: Any) -> Any:
        """The model's outputs for its inputs, in evaluation mode: an array, or a dict by name if there are
        several.
        """
        return self._predicted(self._entries["predict"], arrays)

    def _entry(self, name: str, option: str) -> Entry:
        if name not in self._entries:
            raise ModelError(f"{self.program.name} has no {name}: the model was created without {option}")
        return self._entries[name]

    def _predicted(self, entry: Entry, arrays: Sequence[Any]) -> Any:
        outs = self._compiled.run(entry, arrays)
        names = [a.name for a in entry.args if a.role == "output"]
        return outs[0] if len(outs) == 1 else dict(zip(names, outs, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Copies of all parameters and buffers in PyTorch's order, then of the optimizer's state, by name, in the
        model's shapes.
        """
        own = {s.name: s.state.restored(self.view(s)).copy() for s in self.program.slots}
        return state_dict(self.program, own)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Set parameters and optimizer state from arrays (or PyTorch tensors) by name.

        strict: missing and unexpected names are errors; otherwise the trainer keeps its values for missing names. The
        optimizer's state may be left out as a whole, and frozen parameters and buffers too. Raises ModelError for wrong
        names and for other values of frozen parameters, ShapeError for shapes and dtypes; on an error nothing changes.
        """
        check_state(self.program, "load_state_dict", state, strict)
        slots = {s.name: s for s in self.program.slots}
        arrays = {
            name: given(slots[name], "load_state_dict", value)
            for name, value in state.items()
            if name in slots
        }
        for name, array in arrays.items():
            self.view(slots[name])[...] = slots[name].state.stored(array)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint with the generated code's `save`, in the format that the board reads and writes. Raises
        DataError if the file cannot be written."""
        data = bytearray()

        def write(_: Any, offset: int, source: int, count: int) -> int:
            data.extend(bytes(max(0, offset + count - len(data))))
            data[offset : offset + count] = ctypes.string_at(source, count)
            return 0

        self._compiled.call(f"{self.program.name}_save", _CALLBACK(write), None)
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, target)
        except OSError as error:
            raise DataError(f"checkpoint {path}: cannot be written: {error.strerror}") from None

    def load(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Read a checkpoint with the generated code's `load`. Raises DataError, and changes nothing, if it is damaged
        or belongs to another model. Unless strict=False, this includes a program with the same parameters whose
        operations, loss or optimizer differ.
        """
        data = read_bytes(Path(path), DataError, what="checkpoint ", limit=MEMORY)

        def read(_: Any, offset: int, target: int, count: int) -> int:
            if offset + count > len(data):
                return -1
            ctypes.memmove(target, data[offset : offset + count], count)
            return 0

        symbol = f"{self.program.name}_load" if strict else f"{self.program.name}_load_any"
        try:
            self._compiled.call(symbol, _CALLBACK(read), None)
        except AutodiffError as error:
            fix = "; load(path, strict=False) takes it" if "another program" in str(error) else ""
            raise DataError(f"checkpoint {path} ({len(data)} bytes) cannot be loaded: {error}{fix}") from None

    def view(self, slot: Slot) -> Any:
        """The memory of one of the program's states as an array, as it is stored."""
        struct = self._compiled.regions.get(slot.owner, self.memory)
        shape = tuple(int(d) for d in slot.type.shape)  # type: ignore[arg-type]
        elements = np.ctypeslib.as_array(getattr(struct, slot.c_name))
        return elements[: math.prod(shape)].reshape(shape)
