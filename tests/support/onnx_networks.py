"""Small networks of ONNX in the forms in which exporters write them, by name."""

from __future__ import annotations

import runpy

import numpy as np
import onnx
from checkout import ROOT
from onnx import helper, numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 3]>\n'
NUMBERS = np.random.default_rng(4).uniform(0.5, 1.5, (2, 1, 4, 4)).astype(np.float32)  # weights of nodes
MATLAB = """matlab (float[n,3,12,12] imageinput) => (float[n,5] softmax) {
    x0 = Sub (imageinput, imageinput_Mean)
    x1 = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (x0, conv_W, conv_B)
    x2 = BatchNormalization <epsilon = 0.00001> (x1, bn_scale, bn_B, bn_mean, bn_var)
    x3 = LeakyRelu <alpha = 0.01> (x2)
    x4 = AveragePool <kernel_shape = [3, 3], pads = [0, 0, 1, 1], strides = [2, 2]> (x3)
    x5 = Flatten (x4)
    x6 = Gemm <transB = 1> (x5, fc_W, fc_B)
    softmax = Softmax (x6)
}"""
SCIKIT_LEARN = """mlp (float[n,6] X) => (int64[n] label, float[n,3] probabilities) {
    x0 = ai.onnx.ml.Scaler <offset = [0.1, 0.2, 0.0, -1.0, 0.5, 0.3], scale = [1.0, 2.0, 0.5, 1.5, 1.0, 1.0]> (X)
    x1 = MatMul (x0, coefficient)
    x2 = Add (x1, intercepts)
    x3 = Relu (x2)
    x4 = MatMul (x3, coefficient1)
    x5 = Add (x4, intercepts1)
    probabilities = Softmax <axis = 1> (x5)
    index = ArgMax <axis = 1> (probabilities)
    picked = ai.onnx.ml.ArrayFeatureExtractor (classes, index)
    flat = Reshape (picked, one)
    label = Cast <to = 7> (flat)
}"""
SCIKIT_LEARN_LINEAR = """linear (float[n,6] X) => (int64[n] label, float[n,3] probabilities, float[n,2] variable) {
    x = ai.onnx.ml.Normalizer <norm = "L2"> (X)
    label, probabilities = ai.onnx.ml.LinearClassifier <classlabels_ints = [2, 3, 9], post_transform = "SOFTMAX",
        coefficients = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.1, 0.7, -0.3, 0.2, 0.5, 0.1, 1.0, 0.3, -0.4, 0.2, 0.1, -0.6],
        intercepts = [0.1, -0.2, 0.0]> (x)
    variable = ai.onnx.ml.LinearRegressor <targets = 2, intercepts = [0.5, -0.5],
        coefficients = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.1, 0.7, -0.3, 0.2, 0.5, 0.1]> (X)
}"""
SCIKIT_LEARN_LOGISTIC = """logistic (float[n,6] X) => (int64[n] output_label, float[n,3] output_probability) {
    label, scores = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1, 2], multi_class = 1,
        post_transform = "SOFTMAX", intercepts = [0.1, -0.2, 0.0],
        coefficients = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.1, 0.7, -0.3, 0.2, 0.5, 0.1, 1.0, 0.3, -0.4, 0.2, 0.1, -0.6]>
        (X)
    output_label = Cast <to = 7> (label)
    probabilities = ai.onnx.ml.Normalizer <norm = "L1"> (scores)
    output_probability = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2]> (probabilities)
}"""
KERAS_LSTM = """lstm (float[n,7,3] x) => (float[n,2] y) {
    shape = Shape (x)
    batch = Slice (shape, zero, one)
    size = Concat <axis = 0> (one, batch, units)
    h = Expand (zeros, size)
    t = Transpose <perm = [1, 0, 2]> (x)
    a, last, c = LSTM <hidden_size = 4> (t, W, R, B, , h, h)
    a1 = Squeeze (a, one)
    a2, last2, c2 = LSTM <hidden_size = 4> (a1, W2, R, B, , h, h)
    s = Squeeze (last2, zero)
    m = MatMul (s, kernel)
    y = Add (m, bias)
}"""
KERAS_GRU = """gru (float[n,4,3] x) => (float[n,2] y) {
    shape = Shape (x)
    batch = Slice (shape, zeros1, one1)
    size = Concat <axis = 0> (batch, units)
    h = Expand (zero, size)
    t = Transpose <perm = [1, 0, 2]> (x)
    k, last, biases, hs = Loop (steps, go, time, h, bias) <body = gru_body (int64 i, bool on, int32 step,
        float[n,4] old, float[2,8] b) => (bool more, int32 next, float[n,4] new, float[2,8] b, float[n,4] new1) {
        following = Add (step, one)
        next = Identity (following)
        counter = Cast <to = 1> (following)
        more = Less (counter, four)
        now = Gather (t, step)
        b0, b1 = Split <axis = 0> (b)
        bx = Squeeze (b0, zeros1)
        bh = Squeeze (b1, zeros1)
        wx = MatMul (now, W)
        ux = MatMul (old, R)
        sx = Add (wx, bx)
        sh = Add (ux, bh)
        xz, xn = Split <axis = -1> (sx)
        hz, hn = Split <axis = -1> (sh)
        z0 = Add (xz, hz)
        z = Sigmoid (z0)
        n0 = Add (xn, hn)
        n1 = Tanh (n0)
        kept = Mul (z, old)
        rest = Sub (one_f, z)
        fresh = Mul (rest, n1)
        new = Add (kept, fresh)
        new1 = Identity (new)
    }>
    ended = Slice (hs, minus1, far, zeros1)
    s = Squeeze (ended, zeros1)
    both = Add (s, last)
    a0 = Erfc (both)
    a = Expm1 (a0)
    seen = Expand (go, size)
    a1 = Where (seen, a, zero)
    m = MatMul (a1, kernel)
    y = Add (m, offset)
}"""
PYTORCH_RESHAPE = """heads (float[n,6,8] x, int64[n,6] tokens) => (float[n,6,8] y, float[n,2] mean) {
    words = Gather (table, tokens)
    x0 = Add (x, words)
    shape = Shape (x0)
    n0 = Gather <axis = 0> (shape, zero)
    n1 = Unsqueeze (n0, zeros1)
    four = Constant <value = int64[3] {6, 2, 4}> ()
    sizes = Concat <axis = 0> (n1, four)
    x1 = Reshape (x0, sizes)
    q = Transpose <perm = [0, 2, 1, 3]> (x1)
    k = Transpose <perm = [0, 2, 3, 1]> (x1)
    s0 = MatMul (q, k)
    s1 = Div (s0, scale)
    p = Softmax <axis = -1> (s1)
    o = MatMul (p, q)
    o1 = Transpose <perm = [0, 2, 1, 3]> (o)
    flat = Constant <value = int64[3] {0, 0, -1}> ()
    o2 = Reshape (o1, flat)
    y = LayerNormalization <axis = -1> (o2, gamma, beta)
    cut = Slice (y, zeros1, two, one1)
    mean = ReduceMean <axes = [2], keepdims = 0> (cut)
}"""


def model(text, opset=17, **initializers):
    """A ModelProto of the text, with initializers; of floats if they are shapes."""
    numbers = np.random.default_rng(2)
    made = parser.parse_model(HEAD.format(opset=opset) + text)
    for name, given in initializers.items():
        array = numbers.uniform(-0.5, 0.5, given).astype(np.float32) if isinstance(given, tuple) else given
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return made


def keras():
    return runpy.run_path(str(ROOT / "examples" / "import_onnx" / "export.py"))["network"]()


def keras_of_colours():
    """Images [n, 16, 16, 3] and a Flatten, both with channels last."""
    graph = runpy.run_path(str(ROOT / "examples" / "import_onnx" / "export.py"))["Graph"]()
    x = graph.conv_block(graph.conv_block("image", "conv2d", 3, 8), "conv2d_1", 8, 16)
    graph.weights.append(numpy_helper.from_array(np.int64([-1, 256]), "sizes"))
    x = graph.dense(graph.add("Reshape", [x, "sizes"], "sequential/flatten/Reshape"), "dense", 256, 4)
    made = helper.make_graph(
        graph.nodes,
        "tf2onnx",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["n", 16, 16, 3])],
        [helper.make_tensor_value_info(x, onnx.TensorProto.FLOAT, ["n", 4])],
        graph.weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


NETWORKS = {
    "Keras, colours": keras_of_colours,
    "Keras": keras,
    "Keras LSTM": lambda: model(
        KERAS_LSTM,
        W=(1, 16, 3),
        W2=(1, 16, 4),
        R=(1, 16, 4),
        B=(1, 32),
        kernel=(4, 2),
        bias=(2,),
        zeros=np.float32(0),
        zero=np.int64([0]),
        one=np.int64([1]),
        units=np.int64([4]),
    ),
    "Keras GRU": lambda: model(
        KERAS_GRU,
        opset=15,
        W=(3, 8),
        R=(4, 8),
        bias=(2, 8),
        kernel=(4, 2),
        offset=(2,),
        steps=np.int64(4),
        go=np.True_,
        time=np.int32(0),
        one=np.int32(1),
        one_f=np.float32(1),
        four=np.float32(4),
        zero=np.float32(0),
        zeros1=np.int64([0]),
        one1=np.int64([1]),
        minus1=np.int64([-1]),
        far=np.int64([2**31 - 1]),
        units=np.int64([4]),
    ),
    "MATLAB": lambda: model(
        MATLAB,
        imageinput_Mean=(1, 3, 12, 12),
        conv_W=(4, 3, 3, 3),
        conv_B=(4,),
        bn_scale=(4,),
        bn_B=(4,),
        bn_mean=(4,),
        bn_var=np.float32([1, 2, 3, 4]),
        fc_W=(5, 36),
        fc_B=(5,),
    ),
    "PyTorch": lambda: model(
        PYTORCH_RESHAPE,
        table=(3, 8),
        scale=np.float32(2),
        gamma=(8,),
        beta=(8,),
        zero=np.int64(0),
        zeros1=np.int64([0]),
        one1=np.int64([1]),
        two=np.int64([2]),
    ),
    "scikit-learn": lambda: model(
        SCIKIT_LEARN,
        coefficient=(6, 4),
        intercepts=(1, 4),
        coefficient1=(4, 3),
        intercepts1=(1, 3),
        classes=np.int32([4, 5, 7]),
        one=np.int64([-1]),
    ),
}
NETWORKS["scikit-learn, linear"] = lambda: model(SCIKIT_LEARN_LINEAR)
NETWORKS["scikit-learn, logistic"] = lambda: model(SCIKIT_LEARN_LOGISTIC, opset=9)


def of_nodes(
    *nodes, inputs=("x",), outputs=("y",), shape=("n", 4), opset=17, kind=onnx.TensorProto.FLOAT, **weights
):
    """A network of nodes; all inputs and outputs have one shape."""
    values = {n: helper.make_tensor_value_info(n, kind, shape) for n in (*inputs, *outputs)}
    graph = helper.make_graph(
        nodes,
        "net",
        [values[n] for n in inputs],
        [values[n] for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()],
    )
    domains = {"": opset, "com.microsoft": 1}
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in domains.items()])
