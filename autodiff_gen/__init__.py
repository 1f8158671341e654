"""Compile Python models to C that trains them on a microcontroller. `import autodiff_gen as ag`.

Public names are imported on first use, so that `autodiff_gen.targets` and the SCons tools, which use the standard
library only, can be imported without NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .targets.installation import __version__ as __version__

if TYPE_CHECKING:  # the same names as in _HOME, for type checkers and editors
    from .autodiff import grad as grad
    from .errors import AutodiffError as AutodiffError
    from .frontends.onnx.load import from_onnx as from_onnx
    from .frontends.pytorch.export import from_torch as from_torch
    from .functional.arguments import TensorLike as TensorLike
    from .functional.inputs import Buffer as Buffer
    from .functional.inputs import Input as Input
    from .functional.inputs import Param as Param
    from .ir.node import Value as Value
    from .model.function import function as function
    from .model.model import Model as Model
    from .reading.npz import load_arrays as load_arrays

# Public name -> the module that defines it; a public module maps to itself.
_HOME = {
    "AutodiffError": "errors",
    "Buffer": "functional.inputs",
    "Input": "functional.inputs",
    "Model": "model.model",
    "Param": "functional.inputs",
    "TensorLike": "functional.arguments",
    "Value": "ir.node",
    "from_onnx": "frontends.onnx.load",
    "from_torch": "frontends.pytorch.export",
    "function": "model.function",
    "functional": "functional",
    "grad": "autodiff",
    "init": "init",
    "load_arrays": "reading.npz",
    "nn": "nn",
    "optim": "optim",
    "quant": "frontends.quant",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{home}", __name__)
    value = getattr(module, name, module)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOME, "__version__", "scons_tools"})


def scons_tools() -> str:
    """The folder of the SCons tools `autodiff` and `firmware`, for `Environment(toolpath=[...])`."""
    from .targets import installation

    return str(installation.scons_tools())
