"""Networks of ONNX that cannot be imported, and damaged files: one line that names the node and the reason."""

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from onnx_networks import NETWORKS, model, of_nodes

import autodiff_gen as ag
from autodiff_gen.cli.main import main
from autodiff_gen.errors import ModelError
from autodiff_gen.frontends.onnx import read


def unknown():
    nodes = [
        make_node("Relu6", ["x"], ["a"], "act", domain="com.microsoft"),
        make_node("NonZero", ["a"], ["b"], "found"),
        make_node("NonZero", ["x"], ["c"], "other"),
        make_node("Hardmax", ["x"], ["y"]),
    ]
    return of_nodes(*nodes)


def of_weights(array):
    return of_nodes(make_node("MatMul", ["x", "w"], ["y"]), w=array)


def dynamic():
    return of_nodes(make_node("Relu", ["x"], ["y"]), shape=("n", "time"))


def without_shape():
    made = of_nodes(make_node("Relu", ["x"], ["y"]))
    made.graph.input[0].type.tensor_type.ClearField("shape")
    return made


def branches():
    text = """net (float[n,4] x) => (float[n,4] y) {
        total = ReduceSum <keepdims = 0> (x)
        zero = Constant <value = float {0.0}> ()
        positive = Greater (total, zero)
        y = If (positive) <then_branch = a () => (float[n,4] b) { b = Relu (x) },
                           else_branch = c () => (float[n,4] d) { d = Neg (x) }>
    }"""
    return model(text)


def loop():
    text = """net (float[n,4] x) => (float[n,4] y) {
        total = ReduceSum <keepdims = 0> (x)
        times = Cast <to = 7> (total)
        y = Loop (times, , x) <body = b (int64 k, bool go, float[n,4] old) => (bool on, float[n,4] new) {
            on = Identity (go)
            new = Tanh (old)
        }>
    }"""
    return model(text)


def of_the_batch(nodes):
    text = f"""net (float[n,4] x) => (float[n,4] y) {{
        shape = Shape (x)
        zero = Constant <value = int64 {{0}}> ()
        one = Constant <value = int64 {{1}}> ()
        size = Gather (shape, zero)
        {nodes}
        y = Mul (x, number)
    }}"""
    return model(text)


REJECTED = {
    "unknown ops": (
        unknown,
        r"net.onnx cannot be imported: com.microsoft.Relu6 has no counterpart.*\(node 'act'\); NonZero has no "
        r"counterpart; its result's size depends on values; use F.where with a mask \(node 'other'\); "
        r"Hardmax has no counterpart.*\(node 3\)",
    ),
    "opset": (
        lambda: of_nodes(make_node("Upsample", ["x"], ["y"], scales=[1.0, 1.0]), opset=6),
        "has opset 6, which onnx.version_converter cannot convert to 13, the first that is read: .*; export it anew",
    ),
    "quantised": (
        lambda: of_nodes(make_node("DequantizeLinear", ["x", "s"], ["y"]), s=np.float32(1)),
        r"is quantised \(DequantizeLinear\); import the float network, and quantise it by ag.quant",
    ),
    "half": (
        lambda: of_weights(np.ones((4, 4), np.float16)),
        "weights of dtype float16; convert the network to",
    ),
    "double": (
        lambda: of_weights(np.ones((4, 4))),
        "weights of dtype float64; convert the network to float32",
    ),
    "integers": (
        lambda: of_weights(np.ones((4, 4), np.int8)),
        "weights of dtype int8; convert the network to",
    ),
    "double input": (
        lambda: of_nodes(make_node("Relu", ["x"], ["y"]), kind=onnx.TensorProto.DOUBLE),
        "the input 'x' is DOUBLE; convert the network to FLOAT",
    ),
    "dynamic axis": (
        dynamic,
        "only the first axis, the batch, may have a dynamic size; the input 'x' has one on axis 1",
    ),
    "no shape": (without_shape, "the input 'x' has no shape; export the network with one"),
    "constant": (
        lambda: of_nodes(make_node("Relu", ["w"], ["y"]), w=np.ones(4, np.float32)),
        "the output 'y' is a constant; remove it from the graph",
    ),
    "control flow": (branches, "If is control flow that depends on data; use Where"),
    "a loop": (
        loop,
        "Loop has a count that is computed; make it a constant",
    ),
    "later op": (
        lambda: of_nodes(make_node("Gelu", ["x"], ["y"])),
        "Gelu is no op of opset 17",
    ),
    "shape that does not fit": (
        lambda: of_nodes(make_node("Reshape", ["x", "s"], ["y"], "flat"), s=np.int64([-1, 3])),
        r"Reshape cannot be computed: reshape\(x: f32\[n,4\]\).* \(node 'flat'\)",
    ),
    "constants that do not fit": (
        lambda: of_nodes(
            make_node("Reshape", ["w", "s"], ["v"]),
            make_node("Add", ["x", "v"], ["y"]),
            w=np.ones(4),
            s=np.int64([3]),
        ),
        "Reshape cannot be computed: its operands do not fit each other",
    ),
    "no result": (
        lambda: of_nodes(
            make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2]), outputs=("y", "i"), shape=(1, 2, 4)
        ),
        "MaxPool has no result 'i' here; leave it out",
    ),
    "attribute": (
        lambda: of_nodes(make_node("Relu", ["x"], ["y"], slope=3)),
        "Relu has slope, which is not supported; leave it out",
    ),
    "a later opset": (
        lambda: of_nodes(make_node("Relu", ["x"], ["y"]), opset=99),
        r"has opset 99, the installed package onnx knows \d+; update it, or export anew",
    ),
    "no operand": (
        lambda: of_nodes(make_node("Relu", ["z"], ["y"])),
        r"Relu reads 'z', which no earlier node computes \(node 0\)",
    ),
    "no output": (lambda: of_nodes(make_node("Relu", ["x"], ["z"])), "no node computes the output 'y'"),
    "attribute of another type": (
        lambda: of_nodes(make_node("Transpose", ["x"], ["y"], "turn", perm=3)),
        r"Transpose has arguments that its definition does not allow; export it anew \(node 'turn'\)",
    ),
    "attribute with a line": (
        lambda: of_nodes(make_node("Relu", ["x"], ["y"], "a\nb", slope=3)),
        r"Relu has slope, which is not supported; leave it out \(node 'a\\nb'\)",
    ),
    "first opset, and no output": (
        lambda: of_nodes(make_node("Relu", ["x"], ["z"]), opset=9),
        "has opset 9, which onnx.version_converter cannot convert to 13, the first that is read: .*; export it anew",
    ),
    "float of the batch and one more": (
        lambda: of_the_batch("more = Add (size, one)\nnumber = Cast <to = 1> (more)"),
        r"Cast has a size that depends on the batch; use a number \(node 5\)",
    ),
    "float of the batch among others": (
        lambda: of_the_batch("floats = Cast <to = 1> (shape)\nnumber = Gather (floats, zero)"),
        r"Mul has a size that depends on the batch; use a number \(node 6\)",
    ),
    "axes that are computed": (
        lambda: model(
            "net (float[n,4] x, int64[1] i) => (float[n,1] y) { y = ReduceSum (x, i) }",
        ),
        r"ReduceSum has axes that is computed; make it a constant \(node 0\)",
    ),
    "sizes that are computed": (
        lambda: model(
            "net (float[n,1,4,4] x, int64[4] i) => (float[n,1,8,8] y) { y = Resize (x, , , i) }",
        ),
        r"Resize has sizes that is computed; make it a constant \(node 0\)",
    ),
    "a mask that is computed": (
        lambda: model("net (float[3,4] x, bool[3] m) => (float[n,4] y) { y = Compress <axis = 0> (x, m) }"),
        "Compress has a condition that is computed, so that the result's size depends on it; use Where",
    ),
    "place outside": (
        lambda: of_nodes(make_node("GatherND", ["x", "i"], ["y"]), shape=(3, 4), i=np.array([[0, 5]])),
        r"GatherND has the index 5, outside an axis of extent \(3, 4\); correct it \(node 0\)",
    ),
    "layout of a processor": (
        lambda: of_nodes(make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc"), w=np.ones(3)),
        "com.microsoft.nchwc.Conv has the layout of one processor; save the file with ORT_ENABLE_EXTENDED, not",
    ),
    "no network": (onnx.ModelProto, "net.onnx is no ONNX network: it has no graph, or no opset"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_cannot_be_imported_is_one_line(name, tmp_path, capsys):
    make, message = REJECTED[name]
    (tmp_path / "net.onnx").write_bytes(make().SerializeToString())
    with pytest.raises(ModelError, match=message) as error:
        ag.from_onnx(tmp_path / "net.onnx")
    assert "\n" not in str(error.value)
    assert main(["build", str(tmp_path / "net.onnx"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_damaged_files_are_one_line(tmp_path, monkeypatch):
    file = tmp_path / "net.onnx"
    onnx.save(NETWORKS["MATLAB"](), file)
    whole = file.read_bytes()
    for content in (whole[: len(whole) // 2], b"PK\3\4" + bytes(50), b"not a network"):
        file.write_bytes(content)
        with pytest.raises(
            ModelError, match=r"net\.onnx is no complete ONNX file: truncated, or another format"
        ):
            ag.from_onnx(file)
    with pytest.raises(ModelError, match=r"none\.onnx: cannot be read: No such file"):
        ag.from_onnx(tmp_path / "none.onnx")
    with pytest.raises(ModelError, match=r"expected a path or an onnx\.ModelProto, got int"):
        ag.from_onnx(3)
    file.write_bytes(whole)
    monkeypatch.setattr(read, "LARGEST", 1000)
    with pytest.raises(ModelError, match=r"bytes, a protobuf message at most 1,000; save it with"):
        ag.from_onnx(file)
