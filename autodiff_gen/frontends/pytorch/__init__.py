"""Import networks of PyTorch: a module by `from_torch`, or a file that torch.export.save wrote by `from_pt2`."""

from .export import from_torch as from_torch
from .load import from_pt2 as from_pt2
