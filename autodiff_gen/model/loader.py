"""Run a model file: returns its `model` or `functions`, and the files that it opened, which the build depends on."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from .. import nn, optim
from ..errors import AutodiffError, ModelError
from ..frontends.files import is_network, program_of
from ..functional.inputs import Input
from ..kernels.table import KernelSource
from ..progress import doing
from ..targets import installation
from .function import Function, Functions
from .hints import hint, nearest
from .model import Model

_listeners: list[
    set[str]
] = []  # sets that record opened files; one hook serves all, because an audit hook cannot be removed
_hooked = False


def _on_audit(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _listeners and isinstance(args[0], str | bytes | os.PathLike):
        if args[2] & (os.O_WRONLY | os.O_RDWR):  # a file that the model writes is not a source
            return
        for listener in _listeners:
            listener.add(os.path.abspath(os.fsdecode(args[0])))


@contextmanager
def _recording_files() -> Iterator[set[str]]:
    global _hooked
    if not _hooked:
        sys.addaudithook(_on_audit)
        _hooked = True
    opened: set[str] = set()
    _listeners.append(opened)
    try:
        yield opened
    finally:
        _listeners.remove(opened)


def find_model(model: str) -> tuple[Path, str]:
    """The model file and the model's name, for a path, a folder with a model.py, or the name of an example or
    benchmark. Raises ModelError if there is no such file."""
    path = Path(model)
    if not path.is_file():
        examples = installation.examples()
        example = examples / model / "model.py"
        workloads = installation.benchmarks()
        folder = path / "model.py"
        if example.is_file():
            path = example
        elif folder.is_file():
            path = folder
        elif model in workloads:
            path = workloads[model]
        elif path.exists() and not path.is_dir():
            raise ModelError(f"model file {model} is no regular file; give one")
        elif path.suffix == ".py" or is_network(path) or os.sep in model:
            raise ModelError(f"model file {model} does not exist")
        else:
            known = sorted(p.parent.name for p in examples.glob("*/model.py"))
            near = nearest(model, known)
            raise ModelError(
                f"unknown model {model!r}{near}; examples: {', '.join(known)}; or give a path to a model file"
            )
    path = path.resolve()
    return path, path.parent.name if path.name == "model.py" else path.stem


def load_model(model: str) -> tuple[Model, str, list[str]]:
    """`load_file` for a file that must define an ag.Model called `model`: the model, its name, and the files."""
    file = load_file(model)
    if not isinstance(file.made, Model):
        raise ModelError(f"{find_model(model)[0]} defines functions, not a `model`")
    return file.made, file.name, file.files


class LoadedFile(NamedTuple):
    """The result of running a model file. `made`: its Model or Functions; `name`: the model's name; `files`: the sorted
    absolute paths of the files that it opened, including imported modules; `samples`: its arrays by the names of inputs
    and targets, empty if it has none; `names`: its global names; `batch`: its function from a training step, counted
    from 0, to the arrays of inputs and targets, None if it has none."""

    made: Model | Functions
    name: str
    files: list[str]
    samples: Mapping[str, Any]
    batch: Callable[[int], Sequence[Any]] | None = None
    names: Mapping[str, Any] = MappingProxyType({})


def load_file(model: str) -> LoadedFile:
    """Run the model file, which defines an ag.Model called `model`, or a list of ag.function results called
    `functions`; or import a network file (frontends/files.py). Raises ModelError when the file is missing, raises an
    error, or defines neither."""
    path, name = find_model(model)
    if is_network(path):
        with doing(f"importing {path.name}"):
            names = _of_network(path)
        return LoadedFile(names["model"], name, [str(path)], {}, names=names)
    hidden = _hide_namesakes(path.parent)
    before = set(sys.modules)
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(path.parent))
    try:
        with _recording_files() as opened:
            module = _execute(path)
        sources = _imported(before)
    finally:
        sys.path.remove(str(path.parent))
        sys.dont_write_bytecode = cached
        # The next model may import another file of the same module name, such as `common`.
        for k in [k for k in list(sys.modules) if k not in before and _is_users(_file(sys.modules[k]))]:
            del sys.modules[k]
        sys.modules.update(hidden)
    definition = _defined(path, module)
    files = {
        f
        for f in opened | sources | {str(path)}
        if _is_users(f) and not f.endswith(".pyc") and os.path.isfile(f)
    }
    batch = getattr(module, "batch", None)
    return LoadedFile(
        definition,
        name,
        sorted(files),
        _samples(path, module),
        batch if callable(batch) else None,
        vars(module),
    )


def _of_network(path: Path) -> dict[str, Any]:
    """The global names of the model file that `autodiff-gen import` would write for a network file. Raises
    ModelError."""
    from ..frontends.imported import folder
    from ..frontends.imported.network import execute, file_of, network
    from ..frontends.imported.verify_source import checked

    program = folder.scores_of(program_of(path))
    text, _, tree = checked(path.name, lambda: (folder.model_text(program), None))
    names = {"ag": SimpleNamespace(Input=Input, Model=Model), "net": network(program, path.name)}
    code = compile(tree, file_of(text, path.name), "exec")
    try:
        made = execute(code, {**names, "nn": nn, "optim": optim})
    except AutodiffError as error:
        raise ModelError(f"{path}: {error}") from None
    if "model" not in made:
        raise ModelError(
            f"{path} has several results: write it to a folder by autodiff-gen import, and a model there"
        )
    return made


def deps_json(files: Iterable[str | Path], kernels: Iterable[KernelSource] | None = None) -> str:
    """JSON for build tools: a model's source files, and the objects of the kernels that it calls."""
    listed: dict[str, Any] = {"schema": 1, "files": sorted(str(f) for f in files)}
    if kernels is not None:
        listed["kernels"] = [source.object for source in kernels]
    return json.dumps(listed, indent=1) + "\n"


def _defined(path: Path, module: ModuleType) -> Model | Functions:
    """The `model` or the `functions` of a file."""
    model, functions = getattr(module, "model", None), getattr(module, "functions", None)
    if model is not None and functions is not None:
        raise ModelError(f"{path} defines `model` and `functions`; split it into two files")
    if model is not None:
        if not isinstance(model, Model):
            raise ModelError(
                f"{path}: `model` is {type(model).__name__}, not an ag.Model; make one by ag.Model.supervised"
            )
        return model
    if functions is None:
        torch = sys.modules.get("torch")
        networks = [k for k, v in vars(module).items() if torch and isinstance(v, torch.nn.Module)]
        if networks:
            raise ModelError(
                f"{path} defines no `model`, but a network of PyTorch: import it, "
                f"model = ag.Model.supervised(ag.from_torch({networks[-1]}, input=SHAPE), ...), or save it as a .pt2 "
                "file by torch.export.save and give that"
            )
        raise ModelError(
            f"{path} defines no `model`; assign an ag.Model to that name, or a list of ag.function to `functions`"
        )
    if isinstance(functions, Function):
        functions = [functions]
    if not isinstance(functions, list | tuple):
        raise ModelError(f"{path}: `functions` is {type(functions).__name__}, not a list of ag.function")
    try:
        return Functions(functions)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def _samples(path: Path, module: ModuleType) -> Mapping[str, Any]:
    samples = getattr(module, "samples", {})
    if not isinstance(samples, Mapping):
        raise ModelError(f"{path}: `samples` is {type(samples).__name__}, not a dict of arrays by input")
    return samples


def _hide_namesakes(folder: Path) -> dict[str, ModuleType]:
    """Remove from sys.modules, and return, user modules with the names of modules in the model's folder: a `common`
    imported from another folder would shadow the model's `common`.
    """
    names = {p.stem for p in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")}
    namesakes = [
        k for k in list(sys.modules) if k.split(".")[0] in names and _is_users(_file(sys.modules[k]))
    ]
    return {k: sys.modules.pop(k) for k in namesakes}


def _execute(path: Path) -> ModuleType:
    module = ModuleType(f"_autodiff_model_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickle look it up here
    try:
        # Not by import: a cached .pyc would hide an edit that leaves size and modification time (in seconds) unchanged.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except SyntaxError as error:
        raise ModelError(f"{error.filename or path}:{error.lineno}: not valid Python: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        location = _location(error, path)
        kind = "" if isinstance(error, AutodiffError) else f"the file raises {type(error).__name__}: "
        message = " ".join(str(error).split()) + hint(error)
        raise ModelError(f"{location}: {kind}{message}") from None
    finally:
        del sys.modules[module.__name__]
    return module


def _location(error: BaseException, path: Path) -> str:
    """file:line of the innermost user code that raised the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if _is_users(f.filename)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else str(path)


def _file(module: ModuleType | None) -> str:
    return getattr(module, "__file__", None) or ""


def _imported(before: set[str]) -> set[str]:
    """Source files of the modules imported since `before`; the audit hook misses sources that have a cached .pyc."""
    return {os.path.abspath(_file(m)) for k, m in list(sys.modules.items()) if k not in before and _file(m)}


def _library_folders() -> tuple[str, ...]:
    package = str(Path(__file__).resolve().parents[1])
    paths = sysconfig.get_paths()
    known = {paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    known |= {p for p in sys.path if p.endswith(("site-packages", "dist-packages", ".zip"))}
    return tuple(f"{os.path.realpath(p)}{os.sep}" for p in (package, *sorted(known)))


def _is_users(file: str) -> bool:
    """Whether a file belongs to the user, not to this package, the standard library, an installed package or the
    system."""
    if not file or file.startswith(("<", "/dev/", "/proc/", "/sys/", "/etc/")):
        return False
    return not os.path.realpath(file).startswith(_library_folders())
