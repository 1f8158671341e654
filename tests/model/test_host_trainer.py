"""Generated C called from Python: functions, the trainer, its arguments and its checkpoints."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.errors import AutodiffError, DataError, ModelError, ShapeError, ToolError
from autodiff_gen.host.compiler import find_compiler
from autodiff_gen.host.trainer import host_function, host_trainer
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.cc


def classifier(batch=4, optimizer=None, guard="loss", activation=nn.Tanh):
    net = nn.Sequential(nn.Linear(6, 5), activation(), nn.Linear(5, 3))
    loss = nn.CrossEntropyLoss()
    return ag.Model.supervised(
        net, input=(batch, 6), loss=loss, optimizer=optimizer or optim.SGD(lr=0.1), guard=guard
    )


@pytest.fixture
def trainer():
    return host_trainer(classifier())


@pytest.fixture
def batch(rng):
    return rng.standard_normal((4, 6)), np.array([0, 1, 2, 1])


def test_a_function_takes_arrays_in_order_of_its_inputs_and_returns_its_outputs(rng):
    x, w = ag.Input("x", (4, 5)), ag.Param("w", np.zeros((3, 5)))
    scale = ag.Input("scale", ())
    y = F.sigmoid(F.matmul(x, w.T)) * scale
    inputs, outputs = [scale, x, w], [y, *ag.grad(F.sum(y), [w, x])]
    arrays = [2.5, rng.standard_normal((4, 5)), rng.standard_normal((3, 5))]
    f = host_function(ag.function(inputs, outputs))
    expected = evaluate(outputs, dict(zip(inputs, arrays, strict=True)), float_dtype="float64")
    results = f(*arrays)
    assert [r.dtype for r in results] == [np.float32] * 3
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)
    assert "function.c" in f.source


def test_strided_arrays_and_other_dtypes_are_converted(trainer, batch):
    x, label = batch
    wide = np.zeros((8, 12))
    wide[::2, ::2] = x
    expected = trainer.predict(x)
    np.testing.assert_array_equal(trainer.predict(wide[::2, ::2]), expected)
    np.testing.assert_array_equal(trainer.predict(np.asfortranarray(x)), expected)
    losses = {trainer.train_step(x, label.astype(t), lr=0.0) for t in ("int64", "uint8", "int8", "uint64")}
    assert len(losses) == 1


def test_the_loss_is_that_before_the_update(trainer, batch):
    x, label = batch
    scores = trainer.predict(x).astype("float64")
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    assert trainer.train_step(x, label) == pytest.approx(-log_p[range(4), label].mean(), rel=1e-5)


def test_lr_is_the_optimizers_by_default_and_may_be_given(batch):
    x, label = batch
    states = []
    for kwargs in ({}, {"lr": 0.1}, {"lr": 0.2}):
        one = host_trainer(classifier())
        one.train_step(x, label, **kwargs)
        states.append(one.state_dict()["0.weight"])
    assert np.array_equal(states[0], states[1])
    assert not np.array_equal(states[0], states[2])


def test_lr_zero_changes_nothing(trainer, batch):
    before = trainer.state_dict()
    trainer.train_step(*batch, lr=0.0)
    assert all(np.array_equal(before[k], v) for k, v in trainer.state_dict().items())


def test_several_outputs_come_by_name(rng):
    x, t = ag.Input("x", (2, 3), batch_axis=0), ag.Input("t", (2, 1), batch_axis=0)
    h = F.tanh(F.matmul(x, ag.Param("w", np.full((3, 1), 0.5))))
    model = ag.Model([x], [t], {"h": h, "twice": h * 2.0}, F.mse_loss(h, t), optim.SGD(lr=0.1))
    out = host_trainer(model).predict(rng.standard_normal((2, 3)))
    assert list(out) == ["h", "twice"]
    np.testing.assert_allclose(out["twice"], 2 * out["h"], rtol=1e-6)


def test_the_struct_has_the_planned_size():
    trainer = host_trainer(load_model("mnist")[0])
    assert trainer.nbytes == trainer.program.struct_bytes
    assert trainer.nbytes <= 102_400
    assert trainer.nbytes >= trainer.program.bound_bytes


def test_weights_are_the_models_after_init_and_others_for_another_seed(trainer, batch):
    first = trainer.state_dict()
    for name, slot in ((s.name, s) for s in trainer.program.slots):
        np.testing.assert_array_equal(first[name], slot.init.array())
    trainer.train_step(*batch)
    trainer.init(seed=7)
    assert not np.array_equal(trainer.state_dict()["0.weight"], first["0.weight"])
    trainer.init()
    assert all(np.array_equal(first[k], v) for k, v in trainer.state_dict().items())


def test_state_dict_has_parameters_first_then_the_optimizers_state(batch):
    trainer = host_trainer(classifier(optimizer=optim.SGD(lr=0.1, momentum=0.9)))
    names = list(trainer.state_dict())
    assert names[:4] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(names) == 8
    trainer.train_step(*batch)
    state = trainer.state_dict()
    other = host_trainer(classifier(optimizer=optim.SGD(lr=0.1, momentum=0.9)))
    other.load_state_dict(state)
    assert other.train_step(*batch) == trainer.train_step(*batch)
    assert all(np.array_equal(other.state_dict()[k], v) for k, v in trainer.state_dict().items())


def test_a_frozen_parameter_keeps_its_place_and_its_value(batch):
    x, t = ag.Input("x", (4, 6)), ag.Input("t", (4, 3))
    frozen = ag.Param("first", np.full((5, 6), 0.25), requires_grad=False)
    trained = ag.Param("second", np.full((3, 5), 0.5))
    z = F.matmul(F.tanh(F.matmul(x, frozen.T)), trained.T)
    model = ag.Model([x], [t], {"z": z}, F.mse_loss(z, t), optim.SGD(lr=0.1, momentum=0.9))
    trainer = host_trainer(model)
    trainer.train_step(batch[0], np.ones((4, 3)))
    state = trainer.state_dict()
    assert list(state)[:2] == ["first", "second"]
    assert (state["first"] == 0.25).all() and (state["second"] != 0.5).all()


def test_state_dict_is_a_copy(trainer):
    trainer.state_dict()["0.weight"][...] = 9.0
    assert trainer.state_dict()["0.weight"].max() < 9.0


def test_load_state_dict_is_all_or_nothing(trainer):
    state = trainer.state_dict()
    wrong = {**{k: v + 1 for k, v in state.items()}, "2.bias": np.zeros(4)}
    with pytest.raises(ShapeError, match=r"2\.bias has shape \[3\], got \[4\]"):
        trainer.load_state_dict(wrong)
    assert all(np.array_equal(state[k], v) for k, v in trainer.state_dict().items())


def test_load_state_dict_names_what_is_missing_and_unexpected(trainer):
    state = trainer.state_dict()
    state["fc.bias"] = state.pop("0.bias")
    with pytest.raises(ModelError, match=r"missing 0\.bias; unexpected fc\.bias"):
        trainer.load_state_dict(state)
    trainer.load_state_dict({"0.bias": np.ones(5), "fc.bias": np.ones(5)}, strict=False)
    assert np.array_equal(trainer.state_dict()["0.bias"], np.ones(5))


NAN = float("nan")
ARGUMENTS = [  # x, label, a fragment of the message
    (np.zeros((4, 5)), [0] * 4, r"x: expected shape \[4, 6\], got \[4, 5\]"),
    (np.zeros(6), [0], r"x: expected shape \[n, 6\], got \[6\]"),
    (np.zeros((5, 6)), [0] * 5, r"x: 5 rows given .* takes 1 to 4"),
    (np.zeros((0, 6)), [], r"x: 0 rows given"),
    (np.zeros((3, 6)), [0] * 4, r"label: expected shape \[3\] \(n = 3 by x\), got \[4\]"),
    (np.zeros((4, 6)), [0, 1, 3, 0], r"label\[2\] is 3, outside 0 to 2"),
    (np.zeros((4, 6)), [0, -1, 0, 0], r"label\[1\] is -1, outside 0 to 2"),
    (np.zeros((4, 6)), [300] * 4, r"label\[0\] is 300, outside 0 to 2"),
    (
        np.zeros((4, 6)),
        [0.0] * 4,
        r"label: expected integer class labels \(u8\[n\]\), got an array of float64",
    ),
    (np.full((4, 6), "a"), [0] * 4, r"x: expected numbers"),
    (np.zeros((4, 6), dtype=complex), [0] * 4, r"x: expected numbers"),
]


@pytest.mark.parametrize(("x", "label", "message"), ARGUMENTS, ids=[m for *_, m in ARGUMENTS])
def test_wrong_arguments_are_named_and_change_nothing(trainer, x, label, message):
    before = trainer.state_dict()
    with pytest.raises(ShapeError, match=message):
        trainer.train_step(x, label)
    assert all(np.array_equal(before[k], v) for k, v in trainer.state_dict().items())


def test_a_missing_argument_is_named(trainer, batch):
    with pytest.raises(
        ShapeError, match=r"train_step takes 2 arrays \(x: f32\[n,6\], label: u8\[n\]\), got 1"
    ):
        trainer.train_step(batch[0])


def test_nan_passes_through(trainer, batch):
    x, label = batch
    x[0, 0] = NAN
    assert np.isnan(trainer.predict(x)[0]).all()
    assert np.isfinite(trainer.predict(x)[1:]).all()
    with pytest.raises(AutodiffError, match=r"not finite \(status -6\)"):
        trainer.train_step(x, label)
    assert np.isnan(host_trainer(classifier(guard=None)).train_step(x, label))


def test_a_checkpoint_brings_everything_back(tmp_path, batch):
    trainer = host_trainer(classifier(optimizer=optim.SGD(lr=0.1, momentum=0.9)))
    trainer.train_step(*batch)
    trainer.save(tmp_path / "c")
    state = trainer.state_dict()
    trainer.train_step(*batch)
    trainer.load(tmp_path / "c")
    assert all(np.array_equal(state[k], v) for k, v in trainer.state_dict().items())
    assert os.listdir(tmp_path) == ["c"]


def damaged(data, how):
    if how == "truncated":
        return data[:-1]
    if how == "empty":
        return b""
    words = {
        "magic": 0,
        "format": 1,
        "graph id": 2,
        "program": 3,
        "round": 4,
        "size": 5,
        "header": 7,
        "state": 8,
    }
    at = 4 * words[how] if how in words else len(data) - 1
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "how",
    [
        *("truncated", "empty", "magic", "format", "graph id", "program", "round", "size", "header", "state"),
        "last byte",
    ],
)
def test_a_damaged_checkpoint_is_rejected_and_changes_nothing(trainer, batch, tmp_path, how):
    path = tmp_path / "c"
    trainer.save(path)
    path.write_bytes(damaged(path.read_bytes(), how))
    trainer.train_step(*batch)
    state = trainer.state_dict()
    with pytest.raises(DataError, match=str(path)):
        trainer.load(path)
    assert all(np.array_equal(state[k], v) for k, v in trainer.state_dict().items())


def test_another_models_checkpoint_is_rejected(trainer, tmp_path):
    net = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))  # as many bytes of state
    other = ag.Model.supervised(net, input=(4, 5), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))
    host_trainer(other).save(tmp_path / "c")
    with pytest.raises(DataError, match="belongs to another model"):
        trainer.load(tmp_path / "c")


def test_a_checkpoint_of_another_program(trainer, batch, tmp_path):
    """The same states, another activation: read only on request."""
    edited, path = host_trainer(classifier(activation=nn.ReLU)), tmp_path / "c"
    assert edited.program.graph_id == trainer.program.graph_id
    trainer.train_step(*batch)
    trainer.save(path)
    before = edited.state_dict()
    said = r"c \(\d+ bytes\) cannot be loaded: model_load: the checkpoint is of another program \(status -11\); load\("
    with pytest.raises(DataError, match=said):
        edited.load(path)
    assert all(np.array_equal(before[k], v) for k, v in edited.state_dict().items())
    edited.load(path, strict=False)
    assert all(np.array_equal(trainer.state_dict()[k], v) for k, v in edited.state_dict().items())


def test_a_checkpoint_of_an_earlier_format(trainer, tmp_path):
    """Six words of header: magic, format 1, graph id, bytes, two checksums."""
    (tmp_path / "c").write_bytes(
        b"AGCK" + struct.pack("<5I", 1, trainer.program.graph_id, 8, 0, 0) + bytes(8)
    )
    with pytest.raises(DataError, match="the checkpoint has another format"):
        trainer.load(tmp_path / "c")


def test_a_checkpoint_that_is_not_there(trainer, tmp_path):
    with pytest.raises(DataError, match="No such file"):
        trainer.load(tmp_path / "none")


def test_a_checkpoint_in_a_folder_that_is_not_there(trainer, tmp_path):
    with pytest.raises(DataError, match="none/c: cannot be written: No such file"):
        trainer.save(tmp_path / "none" / "c")


def test_no_compiler_is_an_error_with_the_install_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolError, match="apt-get install"):
        find_compiler()
    monkeypatch.setenv("CC", "no-such-cc")
    with pytest.raises(ToolError, match=r"no-such-cc.*apt-get install"):
        find_compiler()


def test_code_that_does_not_compile_shows_the_compilers_words(monkeypatch):
    monkeypatch.setenv("CC", "gcc -Dfloat=nonsense")
    with pytest.raises(ToolError, match="nonsense"):
        host_trainer(classifier(batch=3))


def test_the_seed_of_init_is_checked(trainer):
    with pytest.raises(AutodiffError, match="seed"):
        trainer.init(seed=-1)


def test_several_processes_that_build_the_same_at_once(tmp_path):
    """As pytest-xdist does: with an empty cache, all of them must get a whole library."""
    script = (
        "import autodiff_gen as ag, numpy as np\n"
        "from autodiff_gen import functional as F\n"
        "x = ag.Input('x', (3,))\n"
        "print(ag.function([x], [x * 2.0 + F.exp(x)]).on_host()(np.zeros(3))[0].tolist())\n"
    )
    env = {**os.environ, "AUTODIFF_CACHE": str(tmp_path / "cache")}
    env["PYTHONPATH"] = os.path.dirname(os.path.dirname(ag.__file__))
    running = [
        subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE) for _ in range(4)
    ]
    assert {p.communicate(timeout=300)[0] for p in running} == {b"[1.0, 1.0, 1.0]\n"}
