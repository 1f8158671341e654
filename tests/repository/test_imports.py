"""The packages of the compiler: imports between them, read from the sources; and modules that a build loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from checkout import ROOT

PACKAGE = ROOT / "autodiff_gen"

# Bottom up: a package imports from those above its own line here, inside functions and for type checking included.
PACKAGES = (
    "errors",
    "reading",
    "owned_files",
    "progress",
    "targets",
    "kernels",
    "ir",
    "init",
    "autodiff",
    "ops",
    "functional",
    "nn",
    "optim",
    "passes",
    "lowering",
    "codegen",
    "report",
    "host",
    "frontends",
    "model",
    "datasets",
    "device",
    "fleet",
    "check",
    "bench",
    "cli",
    "__main__",
    "__init__",
)

STDLIB_ONLY = (
    "errors",
    "targets",
    "kernels",
)  # SCons' own Python, which imports them, has neither NumPy nor Jinja


@cache
def modules() -> dict[str, Path]:
    """Every module of the compiler by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "_data" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def package(module: str) -> str:
    """The line of PACKAGES to which a module belongs."""
    _, *rest = module.split(".")
    return rest[0] if rest else "__init__"


@cache
def syntax(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(module: str, path: Path) -> set[str]:
    """The dotted names of all that a module imports, anywhere in it."""
    here = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    found = set()
    for s in ast.walk(syntax(path)):
        if isinstance(s, ast.Import):
            found.update(a.name for a in s.names)
        elif isinstance(s, ast.ImportFrom):
            stem = (
                [*here[: len(here) - s.level + 1], *([s.module] if s.module else [])]
                if s.level
                else [s.module]
            )
            for a in s.names:
                whole = ".".join([*map(str, stem), a.name])
                found.add(whole if whole in modules() else ".".join(map(str, stem)))
    return found


@cache
def edges() -> dict[str, set[str]]:
    """For each module the others of the compiler that it imports."""
    return {m: {t for t in imported(m, p) if t in modules() and t != m} for m, p in modules().items()}


def test_every_package_has_a_line_and_every_line_a_package() -> None:
    assert {package(m) for m in modules()} == set(PACKAGES)


def test_every_package_is_described_in_this_order() -> None:
    """The table of CONTRIBUTING.md has one row for each folder of the compiler."""
    rows = re.findall(r"^\| `(\w+)/` \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert rows == [name for name in PACKAGES if (PACKAGE / name).is_dir()]


def test_packages_import_only_from_packages_below_them() -> None:
    level = {name: k for k, name in enumerate(PACKAGES)}
    upwards = [
        f"{m} imports {t}" for m, ts in edges().items() for t in ts if level[package(t)] > level[package(m)]
    ]
    assert not upwards, "\n".join(sorted(upwards))


# Of packages with folders for a purpose each, which folders import from which other ones.
FOLDERS = {
    "ops": {
        ("axes", "movement"),
        ("control_flow", "products"),
        ("images", "products"),
        ("movement", "elementwise"),
        ("quantized", "elementwise"),
        ("quantized", "images"),
        ("quantized", "movement"),
    },
    "passes": {
        ("memory", "layout"),  # what copies values
        ("simplify", "layout"),  # what reshapes them
        ("memory", "calls"),  # sums that updates are fused with
        ("memory", "training"),  # and guarded
        ("memory", "simplify"),  # results of loops that nothing reads any more
        ("loops", "calls"),  # the calls that complete rows
    },
}


@pytest.mark.parametrize("package", FOLDERS)
def test_folders_import_from_few_others(package: str) -> None:
    inside = f"autodiff_gen.{package}."
    folder = {m: m.split(".")[2] for m in modules() if m.startswith(inside) and m.count(".") == 3}
    between = {(folder[m], folder[t]) for m in folder for t in edges()[m] if t in folder}
    assert {(a, b) for a, b in between if a != b} == FOLDERS[package]


def test_no_file_imports_itself_through_others() -> None:
    """What stays after all modules that import nothing that is left have been taken away is on a cycle or above one."""
    left = dict(edges())
    while free := [m for m, ts in left.items() if not ts & left.keys()]:
        for m in free:
            del left[m]
    assert not left, sorted(left)


# Modules of code generation that use regular expressions, and for what; none of them is over C.
EXPRESSIONS = {
    "autodiff_gen.codegen.function_comments": "words of comments",
}


def test_code_generation_reads_the_syntax_tree_and_no_text() -> None:
    packages = ("passes", "lowering", "codegen")
    found = {m for m, p in modules().items() if package(m) in packages and "re" in imported(m, p)}
    assert found == EXPRESSIONS.keys()


def third_party(module: str, path: Path) -> set[str]:
    return (
        {name.split(".")[0] for name in imported(module, path)}
        - set(sys.stdlib_module_names)
        - {"autodiff_gen"}
    )


def test_what_scons_imports_needs_the_standard_library_only() -> None:
    wrong = {m: third_party(m, p) for m, p in modules().items() if package(m) in STDLIB_ONLY}
    assert not {m: names - {"elftools"} for m, names in wrong.items() if names - {"elftools"}}
    code = (
        "import autodiff_gen.targets.board, autodiff_gen.kernels.registry, sys; print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "False"


def test_dependencies_are_few() -> None:
    found = {name for m, p in modules().items() for name in third_party(m, p)}
    assert found == {
        "numpy",
        "jinja2",
        "elftools",
        "flwr",
        "pygments",
        "serial",
        "tensorboardX",
        "torch",
        "sklearn",
        "onnx",
        "google",
    }  # google: protobuf


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
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("[]"), done.stdout
