"""The graph API: the program of docs/graph-api.md, its C as users compile it, names, values and results."""

import contextlib
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT
from graph_api_c import COMPILERS, HEADERS, Library, classifier, compiled

from autodiff_gen.errors import GraphError
from autodiff_gen.frontends import graph as ag
from autodiff_gen.frontends.graph import Interpreter, Param, backward, grads

EXAMPLE = ROOT / "examples" / "graph_api"

# The program as users have written it.
PROGRAM = """
from autodiff_gen.frontends.graph import Interpreter, Param, backward, grads, log_softmax, matmul, nll_loss, sigmoid
image = Param(None, shape=(1, 784), var_name="input");  label = Param(None, shape=(1, 10), var_name="output")
w1 = Param(None, shape=(32, 784), var_name="w1");       w2 = Param(None, shape=(10, 32), var_name="w2")
loss = nll_loss(log_softmax(matmul(sigmoid(matmul(image, w1.t())), w2.t())), label)
ops = backward(loss, [w1.id, w2.id]).build()
c = Interpreter(ops, [w1, w2, image, label])
print(c.gen_code()); print(c.gen_sgd(grads, [w1.id, w2.id]))
"""


def printed(program):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(program, {})
    return out.getvalue()


def w1_data():
    sys.path.insert(0, str(ROOT / "bench" / "workloads"))
    import common

    x, y = common.data((256, 784), 11), common.labels(256, 10, 12)
    weights = common.weight((32, 784), 1 / 28, 1001), common.weight((10, 32), 0.17677669, 1002)
    return x, np.eye(10, dtype=np.float32)[y], *weights


# The caller's code around the generated C; the caller includes stdio.h.
CALLER = """
#include <stdio.h>
static float image[784], label[10];
int main(void) {
    float *buf = graph_new();
    FILE *f = fopen("data.bin", "rb");
    if (buf == NULL || f == NULL || fread(buf + W1_OFFSET, sizeof(float), 25088, f) != 25088 ||
        fread(buf + W2_OFFSET, sizeof(float), 320, f) != 320) {
        return 1;
    }
    for (int step = 0; step < 100; step++) {
        if (fread(image, sizeof(float), 784, f) != 784 || fread(label, sizeof(float), 10, f) != 10) {
            return 1;
        }
        memcpy(buf + INPUT_OFFSET, image, 784 * sizeof(float));
        memcpy(buf + OUTPUT_OFFSET, label, 10 * sizeof(float));
        forward(buf);
        backward(buf);
        sgd(buf, 0.01f);
        printf("%.9g\\n", (double)buf[LOSS_OFFSET]);
    }
    free(buf);
    return fclose(f);
}
"""


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("opt", ["-O0", "-O3"])
def test_the_program_trains_as_pytorch_does(cc, opt, tmp_path):
    import torch

    x, t, w1, w2 = w1_data()
    with open(tmp_path / "data.bin", "wb") as f:
        f.write(w1.tobytes() + w2.tobytes())
        for step in range(100):
            f.write(x[step].tobytes() + t[step].tobytes())
    binary = compiled(cc, printed(PROGRAM) + CALLER, tmp_path, opt)
    out = subprocess.run([binary], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    ours = np.array([float(line) for line in out.split()])

    v1, v2 = (torch.tensor(w, requires_grad=True) for w in (w1, w2))
    optimizer = torch.optim.SGD([v1, v2], lr=0.01)
    theirs = []
    for step in range(100):
        scores = torch.sigmoid(torch.tensor(x[step : step + 1]) @ v1.T) @ v2.T
        loss = torch.nn.functional.nll_loss(
            torch.log_softmax(scores, 1), torch.tensor([int(t[step].argmax())])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    assert len(ours) == 100
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=0)
    np.testing.assert_allclose(ours[:3], [2.453889, 2.439670, 2.367322], rtol=1e-5)  # the workload's table


def test_the_program_prints_what_a_user_looks_for():
    text = printed(PROGRAM)
    code, update = text.split("\nvoid sgd(")[0], text[text.index("/* weights -=") :]
    assert re.findall(r"#include\s*(\S+)", text) == [f"<{h}>" for h in HEADERS]
    for part in (code, update):  # where input and label belong
        assert "memcpy(buf + INPUT_OFFSET, input, 784 * sizeof(float));   input[1,784]" in part
        assert "memcpy(buf + OUTPUT_OFFSET, output, 10 * sizeof(float));  output[1,10]" in part
    assert "calloc(GRAPH_FLOATS, sizeof(float))" in code
    order = [
        "calloc(",
        "void forward(",
        "w1_product[1,32] = input[1,784] . w1[32,784]'",
        "void backward(",
        "d_w1[32,784] =",
        "void sgd(",
    ]
    assert [text.index(o) for o in order] == sorted(text.index(o) for o in order)
    assert text == printed(PROGRAM)  # ids differ, the text does not


def test_memory_is_planned():
    text = printed(PROGRAM)
    kept = 25088 + 320 + 784 + 10 + 1 + 25088 + 320  # weights, input, label, loss, gradients
    floats = int(re.search(r"GRAPH_FLOATS = (\d+)", text)[1])
    assert kept < floats <= kept + 32 + 32 + 10  # z1 or h1, dz1, scores or their gradient


@pytest.mark.cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_the_example_prints_the_program_and_its_caller_learns(cc, tmp_path):
    run = [sys.executable, str(EXAMPLE / "main.py")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout
    assert out == printed(PROGRAM)
    (tmp_path / "model.c").write_text(out)
    binary = compiled(cc, (EXAMPLE / "train.c").read_text(), tmp_path, "-O2", name="train")
    lines = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.splitlines()
    losses = [float(line.split()[-1]) for line in lines]
    assert len(losses) == 5 and losses[-1] < 0.2 < 2 < losses[0], lines
    readme = (EXAMPLE / "README.md").read_text()
    assert "".join(f"    {line}\n" for line in lines) in readme


# Names, values and results


@pytest.mark.cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_data_of_a_param_and_results_that_are_kept(cc, tmp_path, rng):
    values = 0.1 * rng.standard_normal((3, 4))  # no class is nearly certain: its logarithm would cancel
    x, t, w, scores, loss = classifier(w=values)
    scores.var_name = "scores"
    c = Interpreter(backward(loss, [w.id]).build(), [w, x, t, scores])
    library = Library(c.gen_code() + c.gen_sgd(grads, [w.id]), tmp_path, cc)
    assert np.array_equal(library.at("W", (3, 4)), values.astype(np.float32))
    library.at("X", (4,))[:] = [1, 2, 3, 4]
    library.call("forward")
    z = np.array([1, 2, 3, 4]) @ values.T
    expected = z - np.log(np.exp(z).sum())
    np.testing.assert_allclose(library.at("SCORES", (3,)), expected, rtol=1e-5)
    library.call("backward")
    np.testing.assert_allclose(library.at("SCORES", (3,)), expected, rtol=1e-5)  # until the next step


@pytest.mark.cc
def test_all_of_forward_comes_before_any_of_backward(tmp_path, rng):
    """A kept result with a large intermediate, which would need less memory at the very end."""
    x, t = Param(None, shape=(6, 3), var_name="x"), Param(None, shape=(6, 5), var_name="t")
    w1, w2 = Param(None, shape=(3, 30), var_name="w1"), Param(None, shape=(30, 5), var_name="w2")
    a, b = Param(None, shape=(5, 40), var_name="a"), Param(None, shape=(40, 2), var_name="b")
    h = ag.tanh(ag.matmul(ag.tanh(ag.matmul(x, w1)), w2))
    kept = ag.matmul(ag.tanh(ag.matmul(h, a)), b)
    kept.var_name = "kept"
    params = [x, t, w1, w2, a, b]
    c = Interpreter(backward(ag.mse(h, t), [w1.id, w2.id]).build(), [*params, kept])
    library = Library(c.gen_code(), tmp_path)
    n = {p.var_name: rng.standard_normal(p.shape).astype(np.float32) for p in params}
    for name, values in n.items():
        library.at(name.upper(), values.shape)[...] = values
    library.call("forward")
    h1 = np.tanh(n["x"] @ n["w1"])
    h2 = np.tanh(h1 @ n["w2"])
    np.testing.assert_allclose(
        library.at("KEPT", (6, 2)), np.tanh(h2 @ n["a"]) @ n["b"], rtol=1e-4, atol=1e-5
    )
    library.call("backward")
    dz2 = 2 / 30 * (h2 - n["t"]) * (1 - h2 * h2)
    dz1 = dz2 @ n["w2"].T * (1 - h1 * h1)
    np.testing.assert_allclose(library.at("D_W2", (30, 5)), h1.T @ dz2, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(library.at("D_W1", (3, 30)), n["x"].T @ dz1, rtol=1e-4, atol=1e-6)


@pytest.mark.cc
@pytest.mark.torch
def test_gradient_of_a_computed_value(tmp_path):
    x, t, w, _, _ = classifier()
    hidden = ag.tanh(ag.matmul(x, w.t()))
    hidden.var_name = "hidden"
    loss = ag.mse(hidden, t)
    ops = backward(loss, [hidden.id]).build()
    c = Interpreter(ops, [w, x, t, hidden])
    library = Library(c.gen_code(), tmp_path)
    library.at("W", (3, 4))[...] = np.arange(12).reshape(3, 4) / 10
    library.at("X", (4,))[:] = [1, -1, 0.5, 0.25]
    library.call("forward")
    library.call("backward")
    np.testing.assert_allclose(library.at("D_HIDDEN", (3,)), 2 / 3 * library.at("HIDDEN", (3,)), rtol=1e-6)
    with pytest.raises(GraphError, match="is computed; only parameters are updated"):
        c.gen_sgd(ops.grads, [hidden.id])


@pytest.mark.cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_names_that_c_could_not_have(cc, tmp_path):
    """Keywords, C library macros, names that only differ in case or not at all, comments, names of results."""
    names = [
        "int",
        "NULL",
        "a",
        "A",
        "a.b",
        "a_b",
        "*/",
        "loss",
        "d_a",
        "buf",
        "0",
        None,
        "graph_floats",
        "EXP1",
    ]
    params = [Param(np.full(2, i + 1.0), var_name=n) for i, n in enumerate(names)]
    product = params[0]
    for p in params[1:]:
        product = product * p.exp()
    ids = [p.id for p in params]
    c = Interpreter(backward(ag.mse(product, params[0]), ids).build(), params)
    library = Library(c.gen_code() + c.gen_sgd(grads, ids), tmp_path, cc)
    first = [library.buf[o] for o in list(library.offsets.values())[: len(names)]]
    assert first == [i + 1.0 for i in range(len(names))]  # in the order of the list


def test_two_graphs_in_one_process_do_not_meet():
    x, t, w, _, loss = classifier()
    alone = Interpreter(backward(loss, [w.id]).build(), [w, x, t])
    code, update = alone.gen_code(), alone.gen_sgd(grads, [w.id])
    other_x, other_t, other_w, _, other_loss = classifier()
    assert len({p.id for p in (x, t, w, other_x, other_t, other_w)}) == 6
    other = Interpreter(backward(other_loss, [other_w.id]).build(), [other_w, other_x, other_t])
    assert (alone.gen_code(), alone.gen_sgd(grads, [w.id])) == (code, update)
    assert (other.gen_code(), other.gen_sgd(grads, [other_w.id])) == (code, update)
    with pytest.raises(GraphError, match="no gradient for id"):
        other.gen_sgd(grads, [w.id])


def test_a_param_shared_by_two_graphs_needs_the_graphs_own_gradients():
    x, t, w, _, loss = classifier()
    first = backward(loss, [w.id]).build()
    c = Interpreter(first, [w, x, t])
    backward(ag.mse(ag.matmul(x, w.t()), t), [w.id])
    with pytest.raises(GraphError, match=r"give ops\.grads of this graph's ops"):
        c.gen_sgd(grads, [w.id])
    assert "void sgd(" in c.gen_sgd(first.grads, [w.id])


def test_ops_are_in_order_forward_then_backward():
    *_, w, _scores, loss = classifier()
    ops = backward(loss, [w.id]).build()
    assert ops.loss is loss and set(ops.grads) == {w.id}
    assert ops.grads[w.id].shape == w.shape and ops.grads[w.id].var_name == "d_w"
    at = {n: i for i, n in enumerate(ops)}
    assert at[loss.value.node] < at[ops.grads[w.id].value.node] == len(ops) - 1
