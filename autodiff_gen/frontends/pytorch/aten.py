"""The table of ATen operators: name without overload -> the rule that calls our functions."""

from __future__ import annotations

import numpy as np

from ..imported.program import ValueRef
from .complex_numbers import COMPLEX, OF_COMPLEX
from .compositions import COMPOSITIONS
from .constants import CONSTANTS
from .custom_operators import OPERATORS
from .indexing import INDEXING, converted
from .layers import LAYERS
from .losses import LOSSES
from .random import RANDOM
from .rules import Arguments, Converter, Rule, Unsupported, is_integer, itself, operator, promoting, same
from .shapes import SHAPES
from .slicing import PARTS

UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc exp exp2 expm1 floor hardsigmoid hardswish "
    "lgamma log log10 log1p log2 logical_not mish neg reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin "
    "sinh sqrt square tan tanh trunc"
)
COMPARISONS = "eq ne lt le gt ge maximum minimum"
LOGIC = "logical_and logical_or logical_xor"
# Results that are the operand itself.
COPIES = "alias clone contiguous lift_fresh_copy lift_fresh lift alias_copy"


def _detach(c: Converter, a: Arguments) -> object:
    """Detach floats; integers have no gradient."""
    return c.emit("detach", a["self"]) if c.dtype(a["self"]).startswith("float") else a["self"]


def _round(c: Converter, a: Arguments) -> object:
    """Round to a number of decimals; a negative number rounds to a power of 10."""
    x, decimals = a["self"], a.get("decimals", 0)
    if decimals == 0:
        return c.emit("round", x)
    there, back = ("*", "/") if decimals > 0 else ("/", "*")
    unit = 10.0 ** abs(decimals)
    return c.emit(f"{{}} {back} {{}}", c.emit("round", c.emit(f"{{}} {there} {{}}", x, unit)), unit)


def _hardtanh(c: Converter, a: Arguments) -> object:
    if (a.get("min_val", -1), a.get("max_val", 1)) == (0, 6):
        return c.emit("relu6", a["self"])
    return same("hardtanh", "self min_val max_val")(c, a)


def _elu(c: Converter, a: Arguments) -> object:
    if a.get("scale", 1) != 1 or a.get("input_scale", 1) != 1:
        raise Unsupported("has a scale; use elu or selu")
    return same("elu", "self alpha")(c, a)


def _weight_norm(c: Converter, a: Arguments) -> object:
    """v * g / |v|, the norm over all axes but one."""
    axes = tuple(k for k in range(len(c.shape(a["v"]))) if k != a.get("dim", 0))
    return c.emit(
        "{} * {}", a["v"], c.emit("{} / {}", a["g"], c.emit("norm", a["v"], dim=axes, keepdim=True))
    )


def _arithmetic(sign: str, of_masks: str) -> Rule:
    """+ and *. For two masks they are operators of logic; a mask and integers compute with 0 and 1."""
    rule = promoting(operator(sign))

    def computed(c: Converter, a: Arguments) -> object:
        wanted = c.dtype(ValueRef(c.names()[0]))
        if wanted == "bool":
            both = (c.constant(np.asarray(v)) if isinstance(v, bool) else v for v in (a["self"], a["other"]))
            return c.emit(of_masks, *both)
        if wanted.startswith("float"):
            return rule(c, a)
        masks = [n for n in ("self", "other") if is_integer(c, a[n]) and c.dtype(a[n]) == "bool"]
        return rule(c, {**a, **{n: converted(c, a[n], "bool", "int64") for n in masks}})

    return computed


def _added(formula: str) -> Rule:
    """A multiple of a formula of two tensors, added to a third."""

    def rule(c: Converter, a: Arguments) -> object:
        term, value = c.emit(formula, a["tensor1"], a["tensor2"]), a.get("value", 1)
        return c.emit("{} + {}", a["self"], term if value == 1 else c.emit("{} * {}", term, value))

    return rule


def _rsub(c: Converter, a: Arguments) -> object:
    return c.emit(
        "{} - {}",
        a["other"],
        a["self"] if a.get("alpha", 1) == 1 else c.emit("{} * {}", a["self"], a["alpha"]),
    )


def _div(c: Converter, a: Arguments) -> object:
    quotient = c.emit("{} / {}", a["self"], a["other"])
    if a.get("rounding_mode") is None:
        return quotient
    return c.emit(a["rounding_mode"], quotient)


def _pow(c: Converter, a: Arguments) -> object:
    return c.emit("square", a["self"]) if a["exponent"] == 2 else c.emit("{} ** {}", a["self"], a["exponent"])


def _softmax(function: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> object:
        if a.get("dtype") not in (None, "float32") or a.get("half_to_float"):
            raise Unsupported(f"has dtype={a.get('dtype')}; use float32")
        return c.emit(function, a["self"], a["dim"])

    return rule


def _variance(function: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> object:
        correction = a.get("correction")
        correction = int(a.get("unbiased", True)) if correction is None else correction
        options: dict[str, object] = {"keepdim": True} if a.get("keepdim") else {}
        if correction != 1:
            options["correction"] = correction
        return c.emit(function, a["self"], *([a["dim"]] if a.get("dim") is not None else []), **options)

    return rule


def _with_mean(function: str) -> Rule:
    """std_mean or var_mean: two results."""

    def rule(c: Converter, a: Arguments) -> object:
        return [_variance(function)(c, a), _reduction("mean")(c, a)]

    return rule


def _extreme(function: str) -> Rule:
    """max or min: of all elements, along an axis with indices, or of two tensors."""

    def rule(c: Converter, a: Arguments) -> object:
        if "other" in a:
            return c.emit(f"{function}imum", a["self"], a["other"])
        if "dim" not in a:
            return c.emit(function, a["self"])
        options = {"keepdim": True} if a.get("keepdim") else {}
        return c.emit_all(function, c.names(), a["self"], a["dim"], **options)

    return rule


def _reduction(function: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> object:
        if a.get("dtype") not in (None, "float32"):
            raise Unsupported(f"has dtype={a['dtype']}; use float32")
        dim = a.get("dim")
        dim = dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim
        options = {"keepdim": True} if a.get("keepdim") else {}
        return c.emit(function, a["self"], *([] if dim is None or dim == () else [dim]), **options)

    return rule


def _einsum(c: Converter, a: Arguments) -> object:
    return c.emit("einsum", a["equation"], *a["tensors"])


TABLE: dict[str, Rule] = {
    **{f"aten.{name}": same(name, "self") for name in UNARY.split()},
    "aten.round": _round,
    **{f"aten.{name}": promoting(same(name, "self other")) for name in COMPARISONS.split()},
    **{f"aten.{name}": same(name, "self other") for name in LOGIC.split()},
    **{f"aten.{name}": itself for name in COPIES.split()},
    "aten.detach": _detach,
    "aten.detach_copy": _detach,
    "aten.add": _arithmetic("+", "logical_or"),
    "aten.sub": promoting(operator("-")),
    "aten.mul": _arithmetic("*", "logical_and"),
    "aten.div": promoting(_div, always=True),
    "aten.rsub": promoting(_rsub),
    "aten.pow": _pow,
    **{f"aten.{name}": same("logical_and", "self other") for name in ("bitwise_and", "__and__")},
    **{f"aten.{name}": same("logical_or", "self other") for name in ("bitwise_or", "__or__")},
    **{f"aten.{name}": same("logical_xor", "self other") for name in ("bitwise_xor", "__xor__")},
    "aten.bitwise_not": same("logical_not", "self"),
    "aten.addcmul": _added("{} * {}"),
    "aten.addcdiv": _added("{} / {}"),
    "aten.lerp": same("lerp", "self end weight"),
    "aten.clamp": same("clamp", "self min max"),
    "aten.clip": same("clamp", "self min max"),
    "aten.clamp_min": same("clamp", "self min"),
    "aten.clamp_max": same("clamp", "self - max"),
    "aten.where": promoting(same("where", "condition self other")),
    "aten.masked_fill": same("masked_fill", "self mask value"),
    "aten.hardtanh": _hardtanh,
    "aten.elu": _elu,
    "aten.celu": same("celu", "self alpha"),
    "aten.glu": same("glu", "self dim"),
    "aten.threshold": same("threshold", "self threshold value"),
    "aten.prelu": same("prelu", "self weight"),
    "aten.softshrink": same("softshrink", "self lambd"),
    "aten.hardshrink": same("hardshrink", "self lambd"),
    "aten.logaddexp": promoting(same("logaddexp", "self other")),
    "aten.floor_divide": promoting(same("floor_divide", "self other")),
    "aten.isnan": lambda c, a: c.emit("ne", a["self"], a["self"]),
    "aten.remainder": promoting(same("remainder", "self other")),
    "aten.fmod": promoting(same("fmod", "self other")),
    "aten.atan2": promoting(same("atan2", "self other")),
    "aten.copysign": promoting(same("copysign", "self other")),
    "aten.hypot": promoting(same("hypot", "self other")),
    "aten.cdist": same("cdist", "x1 x2 p"),
    "aten.pairwise_distance": same("pairwise_distance", "x1 x2 p eps keepdim"),
    "aten.bilinear": same("bilinear", "input1 input2 weight bias"),
    "aten.norm": same("norm", "self p dim keepdim"),
    "aten.cosine_similarity": same("cosine_similarity", "x1 x2 dim eps"),
    "aten._weight_norm": _weight_norm,
    "aten.gelu": same("gelu", "self approximate"),
    "aten.leaky_relu": same("leaky_relu", "self negative_slope"),
    "aten.log_sigmoid": same("logsigmoid", "self"),
    "aten.softplus": same("softplus", "self beta threshold"),
    "aten.softmax": _softmax("softmax"),
    "aten._softmax": _softmax("softmax"),
    "aten.log_softmax": _softmax("log_softmax"),
    "aten._log_softmax": _softmax("log_softmax"),
    "aten.sum": _reduction("sum"),
    "aten.mean": _reduction("mean"),
    "aten.prod": _reduction("prod"),
    "aten.amax": _reduction("amax"),
    "aten.amin": _reduction("amin"),
    "aten.argmax": _reduction("argmax"),
    "aten.argmin": _reduction("argmin"),
    "aten.max": _extreme("max"),
    "aten.min": _extreme("min"),
    "aten.var": _variance("var"),
    "aten.std": _variance("std"),
    "aten.var_mean": _with_mean("var"),
    "aten.std_mean": _with_mean("std"),
    "aten.any": same("any", "self dim keepdim"),
    "aten.all": same("all", "self dim keepdim"),
    "aten.logsumexp": same("logsumexp", "self dim keepdim"),
    "aten.linalg_vector_norm": same("norm", "self ord dim keepdim"),
    "aten.cumsum": same("cumsum", "self dim"),
    "aten.matmul": same("matmul", "self other"),
    "aten.mm": same("matmul", "self mat2"),
    "aten.bmm": same("bmm", "self mat2"),
    "aten.mv": same("mv", "self vec"),
    "aten.dot": same("dot", "self tensor"),
    "aten.vdot": same("dot", "self other"),
    "aten.outer": same("outer", "self vec2"),
    "aten.einsum": _einsum,
    **COMPOSITIONS,
    **SHAPES,
    **PARTS,
    **INDEXING,
    **LAYERS,
    **LOSSES,
    **RANDOM,
    **CONSTANTS,
    **OPERATORS,
    **COMPLEX,
}
TABLE = {**OF_COMPLEX, **TABLE}


# Operators whose rules are for floats, but that PyTorch also has for integers.
OF_FLOATS = (
    f"{UNARY} amax amin argmax argmin cummax cummin cumprod cumsum div floor_divide fmod max maximum min minimum prod "
    "remainder scatter sum"
)


def _of_integers(rule: Rule) -> Rule:
    """A rule for floats, also for integers: they are converted to float, and the first result to PyTorch's dtype. This
    is exact below 2^24."""

    def converting(c: Converter, a: Arguments) -> object:
        given = {n: v for n in ("self", "other", "src") if is_integer(c, v := a.get(n))}
        if not given:
            return rule(c, a)
        wanted = c.dtype(ValueRef(c.names()[0]))
        floats = {n: converted(c, v, c.dtype(v), "float32") for n, v in given.items()}
        c.shapes.update((ref.name, c.shape(given[n])) for n, ref in floats.items())
        found = rule(c, {**a, **floats, "dtype": None})
        first, *rest = found if isinstance(found, list) else [found]
        first = converted(c, first, "float32", wanted)
        return [first, *rest] if rest else first

    return converting


for _name in set(OF_FLOATS.split()) - {"neg", "logical_not"}:
    TABLE[f"aten.{_name}"] = _of_integers(TABLE[f"aten.{_name}"])


# Other names of operators.
ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "swapdims": "transpose",
    "true_divide": "div",
}
TABLE |= {f"aten.{name}": TABLE[f"aten.{other}"] for name, other in ALIASES.items()}


# Operators whose results may show the elements of the operand.
SHOWING = (
    "alias chunk contiguous detach diagonal dropout expand expand_as flatten moveaxis movedim mT narrow numpy_T "
    "permute reshape reshape_as select slice split split_with_sizes squeeze swapaxes swapdims t to transpose type_as "
    "unbind unflatten unsqueeze view view_as"
)
VIEWS = {f"aten.{name}" for name in SHOWING.split()}

# Operators that compute each row of a matrix separately, or split the axis of rows again -> the operand with the rows.
OF_ROWS = {
    **{
        f"aten.{name}": "self"
        for name in ("view", "reshape", "_unsafe_view", "mm", "detach", *UNARY.split(), *COPIES.split())
    },
    "aten.linear": "input",
    "aten.addmm": "mat1",
}

# Operators that bring a value of the data to Python.
CONTROL_FLOW = {
    "aten.item",
    "aten._local_scalar_dense",
    "aten.nonzero",
    "aten.is_nonzero",
    "aten.masked_select",
}

# Operators without counterpart -> their names in torch, for the alternatives that messages tell.
NAMES = {
    "col2im": "fold",
    "grid_sampler": "grid_sample",
    "im2col": "unfold",
    "linalg_cholesky": "cholesky",
    "linalg_inv": "inverse",
    "linalg_solve_triangular": "triangular_solve",
    "unique2": "unique",
}
