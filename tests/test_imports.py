"""The layers of the package: what imports what, read from the sources; and what a build loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "autodiff_gen"

# Bottom up. A module imports from its own layer and from those below; imports inside functions and for type checking
# are free.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "external",
        "names",
        "resources",
        "table",
        "rng",
        "conditions",
        "kernel_contract",
        "cycles",
        "link_map",
        "sections",
        "cli_arguments",
    ),
    ("dtypes", "board_schema", "init", "samples", "storage", "math_loops"),
    ("c_text",),
    ("op", "methods", "kernel_calls", "board", "kernel_table", "backends", "firmware", "datasets"),
    ("ir", "ir_text", "verify", "toolchain", "elf", "platformio", "kernel_rows"),
    ("counting",),
    ("interpret", "layout", "regions"),
    ("ops", "leaves"),
    ("autodiff", "functional", "donation", "labels", "gemm_calls", "calls"),
    ("nn", "optim", "passes"),
    ("loops", "training", "model"),
    ("short_sums",),
    ("loop_expressions",),
    ("loop_statements",),
    ("loop_text",),
    ("schedule", "memory", "region_plans", "steps"),
    ("program", "c_tables", "region_text"),
    ("compiler", "link_layout", "entry_text", "init_text", "emit", "frontends", "marks"),
    ("host_args", "host_cc", "host", "report", "check", "check_problem", "check_torch", "link_text"),
    ("loader", "build", "export", "operations", "kernel_test"),
    ("bench", "bench_report", "bench_text", "kernel_cases", "kernel_bench", "bench_tables"),
    ("device",),
    ("bench_cycles",),
    ("cli_device", "cli_bench"),
    ("cli", "__main__", "__init__"),
)
LEVEL = {name: k for k, layer in enumerate(LAYERS) for name in layer}

# board.py and what SCons reads beside it run in SCons' interpreter, which has neither NumPy nor Jinja.
STDLIB_ONLY = (
    "board",
    "board_schema",
    "backends",
    "conditions",
    "errors",
    "external",
    "firmware",
    "kernel_table",
    "platformio",
    "resources",
    "table",
    "toolchain",
    "elf",
)


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py") if "_data" not in p.parts)


def unit(path: Path) -> str:
    """The name under which LAYERS knows a file: a sub-package counts as one."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def eager(tree: ast.Module) -> list[ast.stmt]:
    """The statements that run on import: not those under TYPE_CHECKING, nor in functions."""
    out, pending = [], list(tree.body)
    while pending:
        s = pending.pop()
        if isinstance(s, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(s, ast.If) and "TYPE_CHECKING" in ast.dump(s.test):
            pending += s.orelse
            continue
        out.append(s)
        pending += [c for c in ast.iter_child_nodes(s) if isinstance(c, ast.stmt)]
    return out


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports when it is imported."""
    package = ["autodiff_gen", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for s in eager(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[list[str]] = []
        if isinstance(s, ast.Import):
            names = [a.name.split(".") for a in s.names]
        elif isinstance(s, ast.ImportFrom):
            above = package[: len(package) - s.level + 1] if s.level else []
            stem = [*above, *(s.module.split(".") if s.module else [])]
            names = [[*stem, a.name] for a in s.names] if stem == ["autodiff_gen"] else [stem]
        for name in names:
            if (
                name[0] == "autodiff_gen"
                and len(name) > 1
                and (PACKAGE / f"{name[1]}.py").exists() | (PACKAGE / name[1]).is_dir()
            ):
                found.add(name[1])
    return found


def third_party(path: Path) -> set[str]:
    found = set()
    for s in eager(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in s.names] if isinstance(s, ast.Import) else []
        names += [s.module or ""] if isinstance(s, ast.ImportFrom) and s.level == 0 else []
        found |= {n.split(".")[0] for n in names} - set(sys.stdlib_module_names) - {"autodiff_gen"}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    mine = unit(path)
    assert mine in LEVEL, f"{mine} has no place in LAYERS"
    upwards = {other for other in imported(path) if LEVEL.get(other, -1) > LEVEL[mine]}
    assert not upwards, f"{mine} imports {', '.join(sorted(upwards))} from above"


@pytest.mark.parametrize("name", STDLIB_ONLY)
def test_what_scons_reads_needs_the_standard_library_only(name: str) -> None:
    path = PACKAGE / f"{name}.py"
    assert third_party(path) == set()
    assert imported(path) <= {*STDLIB_ONLY, "kernel_contract"}


def test_dependencies_are_few() -> None:
    allowed = {"numpy", "jinja2", "elftools"}
    for path in modules():
        optional = {"torch"} if path.stem in ("check_torch", "torch") else set()
        assert third_party(path) <= allowed | optional, path


@pytest.mark.parametrize(
    "code",
    [
        "import autodiff_gen",
        "import autodiff_gen as ag; ag.Model",
        "from autodiff_gen.__main__ import main; main(['build', 'mnist', '--board', 'stm32', '--out', OUT])",
    ],
)
def test_a_build_loads_no_heavy_modules(code: str, tmp_path: Path) -> None:
    heavy = ("torch", "SCons", "sklearn", "scipy", "pytest")
    # Whatever a model file reads is its own affair, but examples/mnist needs only NumPy too.
    program = f"OUT = {str(tmp_path)!r}\ntry:\n    {code}\nexcept SystemExit as e:\n    assert not e.code\n"
    program += f"import sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("[]"), done.stdout


def test_the_leaves_load_without_numpy() -> None:
    code = "import autodiff_gen.board, autodiff_gen.backends, sys; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True
    )
    assert done.stdout.strip() == "False"
