"""Rules of the table: ops of ai.onnx.ml, as scikit-learn's estimators are written with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.rules import Arguments, Rule, Unsupported
from .folding import ConstantTensor


def _scaler(c: Any, a: Arguments) -> Any:
    offset, scale = (c.constant(np.asarray(a[k], np.float32)) for k in ("offset", "scale"))
    return c.emit("{} * {}", c.emit("{} - {}", a["X"], offset), scale)


def _normalizer(c: Any, a: Arguments) -> Any:
    if a["norm"] not in ("L1", "L2"):
        raise Unsupported(f"has norm={a['norm']}; use L1 or L2")
    maker = c.maker(a["X"])
    if a["norm"] == "L1" and maker is not None and maker.function == "softmax":
        return a["X"]  # its sum is 1 already
    return c.emit("normalize", a["X"], p=float(a["norm"][1]), dim=-1)


def _linear(c: Any, a: Arguments, rows: int) -> Any:
    """A linear model, whose parameters are attributes."""
    weight = np.asarray(a["coefficients"], np.float32).reshape(rows, -1)
    given = [c.weight(ConstantTensor(weight, "", True), "weight")]
    if a.get("intercepts"):
        given.append(c.weight(ConstantTensor(np.asarray(a["intercepts"], np.float32), "", True), "bias"))
    return c.emit("linear", a["X"], *given)


def _regressor(c: Any, a: Arguments) -> Any:
    if a["post_transform"] != "NONE":
        raise Unsupported(f"has post_transform={a['post_transform']}; use NONE")
    return _linear(c, a, a["targets"])


def _classifier(c: Any, a: Arguments) -> Any:
    """The label, and the scores."""
    a.get("multi_class")  # it says how the model was fitted
    labels = a.get("classlabels_ints")
    if not labels:
        raise Unsupported("has labels that are strings; fit it with numbers")
    if len(a.get("intercepts") or labels) != len(labels):
        raise Unsupported("has one row for two classes; fit it with a row for each class")
    scores, kind = _linear(c, a, len(labels)), a["post_transform"]
    if kind not in ("NONE", "SOFTMAX", "LOGISTIC"):
        raise Unsupported(f"has post_transform={kind}; use SOFTMAX")
    label = c.emit("argmax", scores, -1)
    if labels != tuple(range(len(labels))):
        label = c.emit("index_select", c.constant(np.asarray(labels)), 0, label)
    transforms: dict[str, tuple[Any, ...]] = {
        "SOFTMAX": ("softmax", scores, -1),
        "LOGISTIC": ("sigmoid", scores),
    }
    return [label, c.emit(*transforms[kind]) if kind in transforms else scores]


def _extractor(c: Any, a: Arguments) -> Any:
    """Elements of the last axis."""
    index = a["Y"] if isinstance(a["Y"], ConstantTensor) else c.emit("reshape", a["Y"], (-1,))
    return c.emit("index_select", c.operand(a["X"]), -1, c.operand(index))


def _zip_map(c: Any, a: Arguments) -> Any:
    """Probabilities by label; here a tensor in the order of the labels."""
    a.get("classlabels_int64s"), a.get("classlabels_strings")
    return a["X"]


ESTIMATORS: dict[str, Rule] = {
    "ai.onnx.ml.ArrayFeatureExtractor": _extractor,
    "ai.onnx.ml.LinearClassifier": _classifier,
    "ai.onnx.ml.LinearRegressor": _regressor,
    "ai.onnx.ml.Normalizer": _normalizer,
    "ai.onnx.ml.Scaler": _scaler,
    "ai.onnx.ml.ZipMap": _zip_map,
}
