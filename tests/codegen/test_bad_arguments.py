"""The status that the generated C returns for bad arguments."""

import ctypes

import numpy as np
import pytest
from small_models import small_classifier

from autodiff_gen.host.trainer import host_trainer

NULL, OK, ERR_NULL, ERR_BATCH, ERR_LABEL, ERR_IO = None, 0, -1, -2, -3, -4
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


class Raw:
    """A trainer's C functions, called as C calls them; every call tells whether the struct changed."""

    def __init__(self, model):
        self.trainer = host_trainer(model)
        self.batch = model.batch
        self.x = np.zeros((self.batch, 6), dtype="float32")
        self.label = np.zeros(self.batch, dtype="uint8")
        self.out = np.full((self.batch, 3), 7.0, dtype="float32")

    def __call__(self, function, *args):
        before = bytes(self.trainer.memory)
        status = self.trainer.library[f"model_{function}"](*args)
        return status, bytes(self.trainer.memory) != before

    def train(self, **changed):
        names = {"t": self.t, "x": _p(self.x), "label": _p(self.label)}
        names |= {"n": ctypes.c_int32(self.batch)} if self.batch > 1 else {}
        names |= {"lr": ctypes.c_float(0.1), "loss": _p(self.out)}
        assert changed.keys() <= names.keys()
        return self("train_step", *(names | changed).values())

    def predict(self, **changed):
        names = {"t": self.t, "x": _p(self.x)} | ({"n": ctypes.c_int32(self.batch)} if self.batch > 1 else {})
        names |= {"scores": _p(self.out)}
        assert changed.keys() <= names.keys()
        return self("predict", *(names | changed).values())

    @property
    def t(self):
        return ctypes.byref(self.trainer.memory)


def _p(array):
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(params=[1, 4], ids=["batch1", "batch4"])
def raw(request):
    return Raw(small_classifier(request.param))


@pytest.mark.cc
def test_right_arguments_are_accepted(raw):
    assert raw.train() == (OK, True)
    assert raw.predict()[0] == OK


@pytest.mark.cc
@pytest.mark.parametrize("pointer", ["t", "x", "label", "loss"])
def test_a_null_pointer_to_train_step(raw, pointer):
    assert raw.train(**{pointer: NULL}) == (ERR_NULL, False)
    assert (raw.out == 7.0).all()


@pytest.mark.cc
@pytest.mark.parametrize("pointer", ["t", "x", "scores"])
def test_a_null_pointer_to_predict(raw, pointer):
    assert raw.predict(**{pointer: NULL}) == (ERR_NULL, False)
    assert (raw.out == 7.0).all()


@pytest.mark.cc
@pytest.mark.parametrize("label", [3, 4, 128, 255])
def test_a_label_out_of_range_anywhere_in_the_batch(raw, label):
    for row in range(raw.batch):
        raw.label[...] = 2
        raw.label[row] = label
        assert raw.train() == (ERR_LABEL, False)
        assert (raw.out == 7.0).all()
    raw.label[...] = 2
    assert raw.train() == (OK, True)


@pytest.mark.cc
def test_a_label_beyond_n_is_not_looked_at():
    raw = Raw(small_classifier(4))
    raw.label[3] = 200
    assert raw.train(n=ctypes.c_int32(3)) == (OK, True)


@pytest.mark.cc
@pytest.mark.parametrize("label", [-1, 300, 2**31 - 1, -(2**31)])
def test_wide_labels_out_of_range(label):
    raw = Raw(small_classifier(2, layers=(6, 2, 300)))
    raw.label = np.array([299, label], dtype="int32")
    assert raw.train() == (ERR_LABEL, False)
    raw.label[1] = 0
    assert raw.train() == (OK, True)


@pytest.mark.cc
@pytest.mark.parametrize("n", [0, -1, 5, 2**31 - 1, -(2**31)])
def test_a_number_of_rows_out_of_range(n):
    raw = Raw(small_classifier(4))
    assert raw.train(n=ctypes.c_int32(n)) == (ERR_BATCH, False)
    assert raw.predict(n=ctypes.c_int32(n)) == (ERR_BATCH, False)


@pytest.mark.cc
def test_null_pointers_to_init_save_and_load(raw):
    callback = _CALLBACK(lambda *_: 0)
    assert raw("init", NULL, ctypes.c_uint32(0)) == (ERR_NULL, False)
    for function in ("save", "load"):
        assert raw(function, NULL, callback, None) == (ERR_NULL, False)
        assert raw(function, raw.t, NULL, None) == (ERR_NULL, False)


@pytest.mark.cc
def test_a_callback_that_fails(raw):
    callback = _CALLBACK(lambda *_: 1)
    for function in ("save", "load"):
        assert raw(function, raw.t, callback, None) == (ERR_IO, False)


@pytest.mark.cc
def test_every_status_has_its_own_words(raw):
    strstatus = raw.trainer.library["model_strstatus"]
    strstatus.restype = ctypes.c_char_p
    words = [strstatus(status).decode() for status in (*range(-12, 2), -13, 2)]
    assert len(set(words[:14])) == 14
    assert words[14] == words[15] == "unknown status"
