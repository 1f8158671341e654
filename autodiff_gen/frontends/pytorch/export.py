"""`from_torch`: a module of PyTorch as one of ours, by torch.export."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ... import nn
from ...errors import ModelError, ToolError, pip_install
from ..imported.network import network
from ..imported.problems import Rejected
from ..imported.program import ImportedProgram
from ..imported.two_modes import Different, in_two_modes
from .assigned_buffers import assigned_buffers
from .convert import convert, is_known
from .custom_operators import exported_operators
from .evaluation import follows_flags, in_evaluation
from .export_errors import NOT_RECORDED, reason_of
from .foreach_operators import each_tensor
from .functions import exported_functions
from .hooks import exported_hooks
from .in_place import CHANGED_VIEW
from .known_values import known_values
from .pt2 import read
from .python_state import check_repeatable, state_kept
from .recurrent import shapes_without_steps
from .torch_versions import (
    OLDEST,
    decompositions,
    exporter,
    free_axis,
    keeps_layers,
    modes_in_force,
    run_decompositions,
    version_of,
)
from .training import remember
from .untraceable import rejected_calls
from .user_lines import all_lines
from .weight_aliases import shown_weights


@dataclass(frozen=True)
class ImportedModule:
    """A module that from_torch has imported: the name of its class, the program, the module, and the file of
    torch.export."""

    name: str
    program: ImportedProgram
    module: Any
    file: io.BytesIO


originals: list[ImportedModule] = []  # of this process, for `check`


def from_torch(module: Any, input: Any) -> nn.Module:
    """A torch.nn.Module as a Module with the same module tree, parameter names and values.

    input: the shape of the input, batch first, as (1, 3, 96, 96); or example tensors, one or a tuple of them. The batch
    is free if the network accepts any batch, otherwise it is the batch of `input`. Modes and requires_grad are taken
    from each module and parameter: a network that trains is given in training mode, as in PyTorch. Raises ModelError
    with everything that cannot be imported in one message; ToolError without PyTorch.
    """
    name = type(module).__name__
    exports = _Exports(module, input)
    file, program, net = _imported(exports)
    exports.check_repeatable()
    remember(module, net, program)
    originals.append(ImportedModule(name, program, module, file))
    return net


def _imported(exports: _Exports) -> tuple[io.BytesIO, ImportedProgram, nn.Module]:
    """The file, the program and the network of a module, in the first form that can be imported: with a free batch, or
    else with a number, since our functions do not split a free batch; each unchanged, or else without in-place
    operators and operators that PyTorch decomposes."""
    name = exports.name
    first: ModelError | None = None
    for free in (True, False):
        for functional in (False, True):
            program: ImportedProgram | None = None
            try:
                file = exports.saved(functional, free)
                exported = read(file, name)
                program = exports.in_two_modes(convert(exported, name), functional, bool(exported.symbols))
                chosen = sorted(exports.depended & program.updates.keys())
                if chosen:
                    raise Rejected(
                        f"{name} cannot be imported: masks or control flow depend on {chosen[0]!r}, which it changes; "
                        "use torch.where"
                    )
                net = network(program, name)
                if not exported.symbols:
                    net.fixed_batch = exports.batch
                return file, program, net
            except Rejected:
                raise
            except ModelError as error:
                if program is not None and program.keeps_gradients:
                    raise
                # A form without in-place operators changes no views: its error tells more.
                if first is None or CHANGED_VIEW in str(first):
                    first = error
        if not exports.is_free:
            break
    assert first is not None
    raise first from None


def saved(module: Any, input: Any) -> io.BytesIO:
    """The file that torch.export.save writes of a module; arguments and errors as in from_torch."""
    return _Exports(module, input).saved()


class _Exports:
    """The programs that torch.export makes of a module: with a free batch, and with the batch of the examples."""

    def __init__(self, module: Any, input: Any) -> None:
        try:
            import torch
        except ImportError:
            raise ToolError(
                "from_torch needs PyTorch, which is not installed (a file of torch.export.save is read without it); "
                f"run: {pip_install('torch')}"
            ) from None
        version = str(torch.__version__)
        if version_of(torch) < OLDEST:
            raise ToolError(
                f"from_torch needs PyTorch 2.4 or later, not {version}; run: {pip_install('torch')}"
            )
        if not isinstance(module, torch.nn.Module):
            raise ModelError(f"from_torch: expected a torch.nn.Module, got {type(module).__name__}")
        self.torch: Any = torch
        self.module: Any = module
        self.name = type(module).__name__
        self.examples = _examples(torch, input)
        self.programs: dict[bool, Any] = {}  # whether the batch is free -> the exported program
        self.depended: set[str] = set()  # buffers whose values the exported program depends on
        self.is_free = False  # whether a file with a free batch was saved

    @property
    def batch(self) -> int | None:
        """The batch of the examples."""
        return next((int(e.shape[0]) for e in self.examples if e.ndim), None)

    def in_two_modes(self, program: ImportedProgram, functional: bool, free: bool) -> ImportedProgram:
        """The program of the module in its mode, merged with its program in evaluation mode if that computes something
        else. functional, free: the form of the program. Raises ModelError if evaluation mode has only other forms."""
        is_training = any(m.training for m in self.module.modules())
        if is_training and follows_flags(self.module):
            return program
        try:
            return in_two_modes(program, self._evaluated(functional, free) if is_training else program)
        except Different as reason:
            warnings.warn(
                f"{self.name}: predict computes what forward computes in training mode, as in evaluation mode {reason}",
                stacklevel=4,
            )
            return program

    def _evaluated(self, functional: bool, free: bool) -> ImportedProgram:
        """The program in evaluation mode, in this form or without in-place operators. Raises Different if it cannot be
        imported."""
        with in_evaluation(self.torch, self.module):
            exports = _Exports(self.module, self.examples)
            for form in (functional, True):
                try:
                    exported = read(exports.saved(form, free), self.name)
                    program = convert(exported, self.name)
                except ModelError as error:
                    if form:
                        raise Different(f"it cannot be imported ({error})") from None
                else:
                    break
        self.depended |= exports.depended
        if free and not exported.symbols:
            raise ModelError(
                f"{self.name} cannot be imported: it has its batch as a number in evaluation mode"
            )
        return program

    def check_repeatable(self) -> None:
        """Raises ModelError for a module that computes other numbers in each call."""
        with silence():
            given = tuple(_drawn(self.torch, e) for e in self.examples)
            for examples in (tuple(map(_of_two, given)), given):
                if check_repeatable(self.torch, self.module, examples, self.name):
                    return

    def saved(self, functional: bool = False, free: bool = True) -> io.BytesIO:
        """The file that torch.export.save writes. functional: without in-place operators, and with operators decomposed
        that the importer does not know; free: with a free batch if the module allows it."""
        if free:
            with contextlib.suppress(ModelError):  # messages of the second try have numbers, not symbols
                file = self._saved(functional, dynamic=True)
                if read(file, self.name).symbols:
                    self.is_free = True
                    return file
        return self._saved(functional, dynamic=False)  # the network has its batch as a number

    def _saved(self, functional: bool, dynamic: bool) -> io.BytesIO:
        examples = tuple(map(_of_two, self.examples)) if dynamic else self.examples
        file = io.BytesIO()
        try:
            with silence(), state_kept(self.torch, self.module):
                if dynamic not in self.programs:
                    shapes = _free_shapes(self.torch, self.module, examples) if dynamic else None
                    with (
                        shapes_without_steps(self.torch),
                        modes_in_force(self.torch, self.name),
                        all_lines(self.torch),
                        rejected_calls(self.torch, self.name),
                        exported_operators(self.torch, self.name),
                        known_values(self.torch, self.module) as depended,
                        exported_hooks(self.torch, self.module, self.name) as hooks,
                        exported_functions(self.torch, self.name, hooks.mapped),
                        each_tensor(self.torch, self.module),
                        shown_weights(self.torch, self.module, self.name),
                        assigned_buffers(self.torch, self.module, self.name),
                        _no_checks_of_values(self.torch),
                    ):
                        traced = exporter(self.torch)
                        exported = traced(self.module, examples, dynamic_shapes=shapes, strict=False)
                    fake = self.torch._subclasses.fake_tensor.FakeTensor
                    if any(isinstance(constant, fake) for constant in exported.constants.values()):
                        raise RuntimeError(NOT_RECORDED)
                    self.programs[dynamic] = exported
                    self.depended |= depended
                exported = self.programs[dynamic]
                if functional:
                    steps = (
                        shapes_without_steps(self.torch)
                        if keeps_layers(self.torch)
                        else contextlib.nullcontext()
                    )
                    with steps, _operators_loaded_once(self.torch):
                        exported = _decomposed(self.torch, exported)
                self.torch.export.save(exported, file)
        except ModelError:
            raise
        except Exception as error:  # torch.export raises errors of many kinds
            sizes = " and ".join(str(tuple(e.shape)) for e in examples)
            raise ModelError(
                f"{self.name} cannot be exported by torch.export for input={sizes}: {reason_of(error, self.torch)}"
            ) from None
        file.seek(0)
        return file


def _examples(torch: Any, input: Any) -> tuple[Any, ...]:
    """The example tensors for the argument `input` of from_torch. Raises ModelError."""
    if isinstance(input, torch.Tensor):
        return (input,)
    if not isinstance(input, Sequence) or not input:
        raise ModelError(f"from_torch: input={input!r} is neither a shape nor example tensors")
    if all(isinstance(t, torch.Tensor) for t in input):
        return tuple(input)
    if not all(isinstance(d, int) and d > 0 for d in input):
        raise ModelError(f"from_torch: input={input!r} is neither a shape nor example tensors")
    return (torch.zeros(tuple(input)),)


def _drawn(torch: Any, example: Any) -> Any:
    """Random numbers in place of zeros."""
    if not example.is_floating_point() or example.any():
        return example
    return torch.randn(example.shape, generator=torch.Generator().manual_seed(0), dtype=example.dtype)


def _of_two(example: Any) -> Any:
    """A copy with at least two samples: torch.export marks a free axis in the tensor, and takes a batch of one for a
    constant."""
    alone = example.ndim and example.shape[0] == 1
    return example.repeat(2, *[1] * (example.ndim - 1)) if alone else example.clone()


def _free_shapes(torch: Any, module: Any, examples: tuple[Any, ...]) -> Any:
    """The argument `dynamic_shapes` with a free batch; the shapes of *args are in a nested tuple."""
    batch = {0: free_axis(torch)}
    shapes = tuple(batch if e.ndim else None for e in examples)
    kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return shapes
    rest = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    return (*shapes[:rest], shapes[rest:])


def _decomposed(torch: Any, exported: Any) -> Any:
    """A program without in-place operators. PyTorch decomposes operators that the importer does not know, until it can
    decompose none of the rest. A decomposition that draws random numbers is not taken, except by dropout: unlike a
    layer, its operators do not know that evaluation draws none."""
    dropout = torch.ops.aten.native_dropout.default

    def called(program: Any) -> set[Any]:
        return {n.target for n in program.graph.nodes if n.op == "call_function"}

    def random(program: Any) -> set[Any]:
        return {op for op in called(program) if torch.Tag.nondeterministic_seeded in getattr(op, "tags", ())}

    table = decompositions(torch)

    def unknown(program: Any) -> dict[Any, Any]:
        return {op: table[op] for op in called(program) if op in table and not is_known(str(op))}

    exported._guards_code = []  # conditions of sizes, which PyTorch 2.9 cannot read for `forward(self, *inputs)`
    done = unknown(exported)
    while True:
        made = run_decompositions(torch, exported, done, lambda op: is_known(str(op)))
        if random(made) - random(exported) - {dropout}:
            return exported
        more = unknown(made)
        if more.keys() <= done.keys():
            return made
        done |= more


@contextlib.contextmanager
def _operators_loaded_once(torch: Any) -> Iterator[None]:
    """Load all of PyTorch's operators once: a decomposition loads them for each of their namespaces, which takes a
    third of its time."""
    utils = torch._export.utils
    load = getattr(utils, "_materialize_cpp_cia_ops", None)
    if load is not None:
        load()
        utils._materialize_cpp_cia_ops = lambda: None
    try:
        yield
    finally:
        if load is not None:
            utils._materialize_cpp_cia_ops = load


@contextlib.contextmanager
def _no_checks_of_values(torch: Any) -> Iterator[None]:
    """Prevent branches on tensor elements in PyTorch's code: distributions do not check their parameters, and
    nn.TransformerEncoder does not compare its mask with a causal one, but adds it."""
    transformer, distribution = torch.nn.modules.transformer, torch.distributions.Distribution
    compares = getattr(transformer, "_detect_is_causal_mask", None)
    checks = distribution._validate_args
    distribution.set_default_validate_args(False)
    if compares is not None:
        transformer._detect_is_causal_mask = lambda mask, is_causal=None, size=None: is_causal is True
    try:
        yield
    finally:
        distribution.set_default_validate_args(checks)
        if compares is not None:
            transformer._detect_is_causal_mask = compares


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Suppress the output of torch.export: warnings about torch.nn's own layers, and the graph up to an error."""
    level = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(level)
