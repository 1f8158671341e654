"""Write net.onnx, a small network of Keras as tf2onnx writes it: python export.py [--out net.onnx]

Images are [n, 16, 16, 1], channels last, and the operators of ONNX have channels first, so that there are transposes
around them. The weights are random: the device trains the network from its start. It needs the package onnx; the build
does not.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE, CLASSES = 16, 4
TO_CHANNELS_FIRST, TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


class Graph:
    def __init__(self):
        self.nodes, self.weights = [], []
        self.numbers = np.random.default_rng(1)

    def add(self, op, inputs, name, **attributes):
        """A node; returns the name of its result."""
        self.nodes.append(helper.make_node(op, inputs, [f"{name}:0"], name, **attributes))
        return f"{name}:0"

    def weight(self, name, shape, fan_in):
        """Random numbers as Keras' he_uniform has them, or zeros if `fan_in` is 0."""
        bound = (6 / fan_in) ** 0.5 if fan_in else 0
        self.weights.append(
            numpy_helper.from_array(self.numbers.uniform(-bound, bound, shape).astype(np.float32), name)
        )
        return name

    def transposed(self, x, name, order):
        return self.add("Transpose", [x], name, perm=order)

    def conv_block(self, x, name, inputs, outputs):
        """Conv2D(3, padding="same", activation="relu"), MaxPooling2D()."""
        scope = f"sequential/{name}"
        kernel = self.weight(f"{scope}/Conv2D/ReadVariableOp:0", (outputs, inputs, 3, 3), 9 * inputs)
        bias = self.weight(f"{scope}/BiasAdd/ReadVariableOp:0", (outputs,), 0)
        x = self.transposed(x, f"{scope}/Conv2D__6", TO_CHANNELS_FIRST)
        x = self.add(
            "Conv", [x, kernel, bias], f"{scope}/BiasAdd", auto_pad="SAME_UPPER", kernel_shape=[3, 3]
        )
        x = self.transposed(self.add("Relu", [x], f"{scope}/Relu"), f"{scope}/Relu__8", TO_CHANNELS_LAST)
        scope = f"sequential/max_pooling2d_{name}"
        x = self.transposed(x, f"{scope}/MaxPool__9", TO_CHANNELS_FIRST)
        x = self.add(
            "MaxPool", [x], f"{scope}/MaxPool", kernel_shape=[2, 2], strides=[2, 2], auto_pad="VALID"
        )
        return self.transposed(x, f"{scope}/MaxPool__11", TO_CHANNELS_LAST)

    def dense(self, x, name, inputs, outputs):
        scope = f"sequential/{name}"
        kernel = self.weight(f"{scope}/MatMul/ReadVariableOp:0", (inputs, outputs), inputs)
        bias = self.weight(f"{scope}/BiasAdd/ReadVariableOp:0", (outputs,), 0)
        return self.add("Add", [self.add("MatMul", [x, kernel], f"{scope}/MatMul"), bias], f"{scope}/BiasAdd")


def network():
    """The ModelProto."""
    graph = Graph()
    x = graph.conv_block("image", "conv2d", 1, 8)
    x = graph.conv_block(x, "conv2d_1", 8, 16)
    x = graph.transposed(x, "sequential/mean__14", TO_CHANNELS_FIRST)
    x = graph.add("GlobalAveragePool", [x], "sequential/mean")
    graph.weights.append(numpy_helper.from_array(np.array([2, 3]), "axes"))
    x = graph.add("Squeeze", [x, "axes"], "sequential/mean_Squeeze")
    x = graph.dense(x, "dense", 16, CLASSES)
    x = graph.add("Softmax", [x], "sequential/dense/Softmax")
    made = helper.make_graph(
        graph.nodes,
        "tf2onnx",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["unk__15", SIDE, SIDE, 1])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["unk__16", CLASSES])],
        graph.weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description="Write a network of Keras as ONNX.")
    parser.add_argument("--out", type=Path, default=Path("net.onnx"))
    onnx.save(network(), parser.parse_args().out)


if __name__ == "__main__":
    main()
