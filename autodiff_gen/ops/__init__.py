"""All op records; importing this package fills the registry with the records of every module in it.

elementwise/: arithmetic, functions, activations, masks
axes/: reductions, cumulative sums, standardisation, softmax
movement/: views, slices, copies, indexing
products/: contractions; epilogues, which convolutions have too
images/: convolution and pooling, over windows of images
quantized/: 8-bit integers
control_flow/: scan and cond
add_to_memory.py: ops that add the result of another op to memory
constants.py: ops without operands
modes.py: ops that depend on the mode, training or evaluation
custom_gradient.py: values whose gradients do not follow from their formulas
support.py: shape rules and VJPs that many records have in common
"""

import importlib
import pkgutil

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
