"""The compiler as one call: a model or function in, a Program out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import ModelError, PlanError
from ..ir.build import apply
from ..ir.canonical_text import canonical_text, number_of
from ..ir.graph import Check, Graph, State
from ..ir.identifiers import HEADERS, OK_OF, Scope, identifier, of_program
from ..ir.index_checks import valid_inputs
from ..ir.module import IRModule
from ..ir.names import name_of
from ..ir.node import CONST, INPUT, Value, topological
from ..ir.types import of_one_sample, varies
from ..ir.verifier import verify
from ..kernels import registry as kernel_tables
from ..kernels.registry import Backends
from ..lowering.arena.optional_scratch import grant_scratch
from ..lowering.pipeline import Dump, run, without_cycle_collection
from ..lowering.plan import EntryPlan
from ..lowering.plan_search import lower
from ..passes.context import Context
from ..passes.layout.layout_assignment import layout_assignment
from ..targets.board import BoardSpec
from ..targets.memory import Space
from .budget_error import budget_error_text, states_error_text
from .program import INDEX, Arg, CheckPlan, Entry, Program, Slot
from .program_regions import Ram, budget_of, over, spaces_of, with_memory_regions
from .specification import FunctionSpec, ModelSpec


@without_cycle_collection()
def compile_model(
    model: ModelSpec,
    name: str,
    kernels: Sequence[str] | None = ("ref",),
    board: BoardSpec | None = None,
    ram: Ram = None,
    dump: Dump | None = None,
    must_fit: bool = True,
    thorough: bool = True,
) -> Program:
    """Compile `model` into a trainer called `name`.

    kernels: backends by priority, None for the backends of the board's profile; board: kernels may need its features,
    and the trainer must fit its RAM; ram: bytes that override the board's, in total or by the name of each region that
    is used; must_fit: raise if the trainer needs more; thorough: plan an entry again if it needs little more than its
    budget. Raises ModelError, KernelError, BoardError, PlanError.
    """
    tables = _load_kernels(kernels, board)
    if model.split and tables.cost.cache is not None:
        # without a cache in the cost table no batch is divided for time: the loop over micro-batches would be one part
        tables = replace(tables, cost=replace(tables.cost, cache=None))
    _check_name(name)
    scope = Scope(of_program(name))
    slots = tuple(_slot(s, scope) for s in model.states)
    spaces = spaces_of(board, ram)
    budget = budget_of(board, ram)
    arena = None if budget is None else budget - sum(s.type.bytes for s in slots)
    if must_fit and arena is not None and arena < 0:
        raise PlanError(states_error_text(name, slots, spaces, board))
    if dump is not None:
        for stage, module in model.stages:  # before the target was known
            dump.write(stage, module)

    def compiled(graphs: Sequence[Graph], budget: int | None) -> tuple[Entry, ...]:
        return _entries(graphs, name, tables, dump, budget=budget)

    entries = _entries(model.entries(), name, tables, dump, budget=arena, thorough=thorough)
    program = Program(
        name,
        f"{name}_trainer",
        model.batch,
        slots,
        entries,
        _graph_id(slots, entries, model.entries()),
        model.program_id,
        model.default_lr,
        tables,
        model.split,
        model.restore_after,
        frozen=model.frozen,
        state_names=tuple(model.state_names),
        tied=model.tied,
    )
    if budget is not None and arena is not None and program.struct_bytes > budget and _fit(program, arena):
        program = _in_shares(program, arena, model.entries(), compiled)
    program = _in_regions(program, spaces, arena, lambda b: compiled(model.entries(), b))
    if model.guard == "gradients":
        others = [e for e in program.entries if not e.plan.graph.updates]
        guarded = [g for g in model.entries("loss") if g.updates]
        plain = _entries(guarded, name, tables, budget=arena)
        cost = program.arena_bytes - replace(program, entries=(*plain, *others)).arena_bytes
        program = replace(program, guard_bytes=cost)
    if must_fit and (small := over(program, spaces)):
        raise PlanError(budget_error_text(program, spaces, small, board))
    return _with_scratch(program)


def compile_function(function: FunctionSpec, name: str, kernels: Sequence[str] = ("ref",)) -> Program:
    """Compile a plain function of graph values: one entry, called `name`, and no state."""
    if identifier(name) != name:
        raise ModelError(_bad_name(name))
    tables = _load_kernels(kernels, None)
    entries = _entries(_graphs([function]), name, tables, c_names=[name])
    return _with_scratch(_functions(name, [function], entries, tables))


def compile_functions(
    functions: Sequence[FunctionSpec],
    name: str,
    kernels: Sequence[str] | None = ("ref",),
    board: BoardSpec | None = None,
    ram: Ram = None,
    dump: Dump | None = None,
    must_fit: bool = True,
) -> Program:
    """Compile several functions into one program: entries called `name`_<function>, which share an arena in the main
    region of memory. The arguments are the same as compile_model's."""
    _check_name(name)
    tables = _load_kernels(kernels, board)
    for f in functions:
        if f"{name}_{f.name}" in of_program(name):
            raise ModelError(f"function {f.name!r}: {name}_{f.name} is another name of {name}.h; rename it")
    entries = _entries(_graphs(functions, dump), name, tables, dump)
    program = _functions(name, functions, entries, tables)
    spaces = spaces_of(board, ram)
    if must_fit and (small := over(program, spaces)):
        raise PlanError(budget_error_text(program, spaces[:1], small, board))
    return _with_scratch(program)


def _graphs(functions: Sequence[FunctionSpec], dump: Dump | None = None) -> list[Graph]:
    """The graphs of functions with their layouts assigned."""
    graphs: list[Graph] = []
    for f in functions:
        for stage, made in run((layout_assignment,), IRModule((f.graph,)), Context()):
            graphs += made.entries
            if dump is not None:
                dump.write(stage, made)
    return graphs


def _with_scratch(program: Program) -> Program:
    """The program with the scratch memory that its kernels can do without, where there is room."""
    grant_scratch((e.plan for e in program.entries), program.backends.cost.alignment)
    return program


def _functions(
    name: str, functions: Sequence[FunctionSpec], entries: Sequence[Entry], tables: Backends
) -> Program:
    batch = max(f.batch for f in functions)
    program_id = number_of(canonical_text(f.graph for f in functions))
    return Program(
        name, f"{name}_work", batch, (), tuple(entries), _graph_id((), entries), program_id, None, tables
    )


def _load_kernels(kernels: Sequence[str] | None, board: BoardSpec | None) -> Backends:
    if board is None:
        return kernel_tables.load(list(kernels or ()))
    return kernel_tables.for_board(board, kernels)


def _in_regions(
    program: Program, spaces: Sequence[Space], arena: int | None, compiled: Callable[[int], tuple[Entry, ...]]
) -> Program:
    """The program in its regions of memory. Where it fits all of them together but not each, the entries are compiled
    for a smaller arena, as long as that makes the program smaller."""
    made = with_memory_regions(program, spaces)
    while arena is not None and len(spaces) > 1 and _fit(made, arena) and (small := over(made, spaces)):
        missing = sum(needed - s.bytes for s, needed in small)
        arena = min(arena, program.struct_bytes - program.state_bytes) - missing
        plain = replace(program, entries=compiled(arena))
        if plain.struct_bytes >= program.struct_bytes:
            break
        program, made = plain, with_memory_regions(plain, spaces)
    return made


def _fit(program: Program, arena: int) -> bool:
    """Whether the arenas of each entry, floats and integers together, take no more than `arena` bytes."""
    return all(sum(p.peak for p in e.plan.plans.values()) <= arena for e in program.entries)


def _in_shares(
    program: Program,
    arena: int,
    graphs: Sequence[Graph],
    compiled: Callable[[Sequence[Graph], int], tuple[Entry, ...]],
) -> Program:
    """The program with each entry compiled for as many bytes as it may take: the arena less the padding of the struct,
    and less the integers that another entry needs in addition."""
    integers = {e.name: e.plan.plans["int"].peak for e in program.entries}
    largest = max(integers.values()) + max(e.plan.plans["float"].peak for e in program.entries)
    padding = program.struct_bytes - sum(s.type.bytes for s in program.slots) - largest
    shares = {name: arena - padding - max(integers.values()) + own for name, own in integers.items()}
    return replace(program, entries=tuple([compiled([g], shares[g.name])[0] for g in graphs]))


def _check_name(name: str) -> None:
    """Raise ModelError if C names cannot begin with `name`. The name may be a keyword, such as `xor`: nothing in the
    generated C has only this name."""
    if not name or identifier(f"{name}_") != f"{name}_":
        raise ModelError(_bad_name(name))
    if name.lower() in HEADERS:
        raise ModelError(
            f"{name!r}: <{name}.h> is a header of C, and {name}.h would be read in its place; give another name with "
            "--name (name= of ./scons)"
        )
    if name.lower() in OK_OF:
        raise ModelError(
            f"{name!r}: {OK_OF[name.lower()]} defines {name.upper()}_OK, which {name}.h would define again; give "
            "another name with --name (name= of ./scons)"
        )
    if f"{name}_".startswith("ag_"):
        raise ModelError(
            f"{name!r}: names that begin with ag_ belong to the runtime and the kernels; give another with --name "
            "(name= of ./scons)"
        )


def _bad_name(name: str) -> str:
    return (
        f"{name!r} cannot name C functions; give a C identifier with --name (name= of ./scons), "
        f"such as {identifier(name)!r}"
    )


def _slot(state: State, scope: Scope) -> Slot:
    return Slot(state.name, scope.fresh(state.name), state.type, state.init, state.role, state)


def _entries(
    graphs: Sequence[Graph],
    program: str,
    tables: Backends,
    dump: Dump | None = None,
    c_names: Sequence[str] | None = None,
    budget: int | None = None,
    thorough: bool = True,
) -> tuple[Entry, ...]:
    """The entries of complete graphs, called <program>_<graph> unless `c_names` are given. budget: how many bytes of
    the arena each may take; thorough: see `lower`."""
    context = Context(backends=tables, budget=budget)
    for graph in graphs:
        verify(graph, context.verified)
    plans = lower(graphs, context, dump, thorough)
    names = c_names or [f"{program}_{graph.name}" for graph in graphs]
    checks = _checks(graphs, tables)
    return tuple(
        _entry(g, p, program, c_name, tuple(checks[k] for k in g.checks))
        for g, p, c_name in zip(graphs, plans, names, strict=True)
    )


def _checks(graphs: Sequence[Graph], tables: Backends) -> dict[Check, CheckPlan]:
    """A plan for each check of the entries."""
    found = {}
    for check in dict.fromkeys(check for graph in graphs for check in graph.checks):
        graph = Graph("check", (), {INDEX: _batch_first(check.value)})
        graph = replace(graph, inputs=tuple(graph.leaves(INPUT)))
        found[check] = CheckPlan(check, lower([graph], Context(backends=tables))[0])
    return found


def _batch_first(value: Value) -> Value:
    """The value with its batch axis first, as outputs must have it."""
    dims = sorted(range(value.ndim), key=lambda k: not varies(value.type.shape[k : k + 1]))
    return value if dims == list(range(value.ndim)) else apply("permute", value, dims=tuple(dims))


def _entry(graph: Graph, plan: EntryPlan, program: str, c_name: str, checks: tuple[CheckPlan, ...]) -> Entry:
    scope = Scope(of_program(program))
    scope.taken -= {"n", "lr", "read", "write"}
    takes_n = any(varies(v.type.shape) for v in graph.inputs)
    if takes_n:
        scope.taken |= {"n", *plan.loop_names}
    inputs = [replace(a, c_name=scope.fresh(a.name)) for a in input_args(graph.inputs, graph.checks)]
    outputs = [Arg(k, scope.fresh(k), v.type, "output") for k, v in graph.outputs.items()]
    # n is between the arrays and the scalars, as in train_step(t, x, label, n, lr, &loss)
    ordered = [a for a in inputs if not a.by_value] + [a for a in inputs if a.by_value] + outputs
    return Entry(graph.name, c_name, tuple(ordered), takes_n, plan, checks)


def input_args(inputs: Sequence[Value], checks: Sequence[Check]) -> list[Arg]:
    """The arguments that inputs become, in their order."""
    valid = valid_inputs(inputs, checks)
    found = []
    for v in inputs:
        role, name = "input" if v.node.op is INPUT else "param", v.name or "x"
        own = tuple(check for check in checks if v.node in topological([check.value]))
        found.append(Arg(name, name, v.type, role, valid.get(v, v.node.attrs.get("classes")), v, own))
    return found


def _graph_id(slots: Sequence[Slot], entries: Sequence[Entry], graphs: Sequence[Graph] = ()) -> int:
    """A checksum of everything that a checkpoint or a peer must agree on: names, shapes, dtypes, order, and the values
    of constants that belong to a layer of `graphs`. Kernels and the largest batch do not change it.
    """
    lines = [f"state {s.name} {s.state.logical!r}{_order(s.state)}" for s in slots]
    lines += [f"{e.name} {a.role} {a.name} {of_one_sample(a.type)!r}" for e in entries for a in e.args]
    constants = dict.fromkeys(v for graph in graphs for v in graph.leaves(CONST) if v.node.origin.labels)
    lines += [f"constant {name_of(v)} {zlib.crc32(v.node.attrs['value'].tobytes())}" for v in constants]
    return zlib.crc32("\n".join(lines).encode())


def _order(state: State) -> str:
    return "" if state.storage is None or state.storage.in_order else f" of {state.storage}"
