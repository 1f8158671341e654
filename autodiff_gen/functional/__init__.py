"""Functions on graph values, with the names, arguments, defaults and semantics of torch and torch.nn.functional.

Functions take graph values, NumPy arrays or numbers, and return graph values; numbers are converted to the dtype of the
other operand. Unless a docstring says otherwise, tensors are f32. Wrong shapes, dtypes and axes raise ShapeError, which
names the function, the operands and the rule. PyTorch's arguments that are not supported are rejected by name.
"""

# ruff: noqa: F403
import inspect as _inspect
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .. import ops as _ops  # noqa: F401  (fills the registry)
from ..errors import unknown_name as _unknown_name
from ..ir.origin import named as _named
from .activations import *
from .alternatives import ALTERNATIVES as _ALTERNATIVES
from .arguments import torch_lacks as torch_lacks
from .attention import *
from .batch_norm import *
from .class_losses import *
from .composites import *
from .control_flow import *
from .convolution import *
from .creation import *
from .ctc import *
from .cumulative import *
from .custom_gradient import *
from .distance_losses import *
from .distances import *
from .dropout import *
from .einsum import *
from .elementwise import *
from .gamma import *
from .getitem import *
from .indexing import *
from .joining import *
from .losses import *
from .margin_losses import *
from .modes import *
from .normalization import *
from .pooling import *
from .products import *
from .quantized import *
from .random import *
from .reductions import *
from .resampling import *
from .sampling import *
from .scattering import *
from .shapes import *
from .slicing import *
from .softmax import *
from .sorting import *
from .tensor_methods import install as _install

# A module of this package lists its exports in its __all__.
__all__ = sorted(name for name, value in globals().items() if _inspect.isfunction(value) and name[0] != "_")

# A call from outside of the package records the function's name, for comments and names in the generated code.
globals().update({_name: _named(_name)(globals()[_name]) for _name in __all__})
_install(globals())

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any:
        raise _unknown_name("functional", name, _ALTERNATIVES, __all__)
