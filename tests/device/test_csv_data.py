"""Data sets of CSV and .npy files: which columns are which array, words as classes, recordings cut into windows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.cli.arguments import columns
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.dataset import load_dataset
from autodiff_gen.device.recording_windows import RecordingWindows
from autodiff_gen.errors import DataError


def layout_of(shape, classes=3):
    size = int(np.prod(shape[1:]))
    net = nn.Sequential(nn.Flatten(), nn.Linear(size, classes))
    model = ag.Model.supervised(net, input=shape, loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1))
    return link_layout(compile_model(model, "net"))


@pytest.fixture(scope="module")
def three():
    """x: f32[n,3], label: u8[n]"""
    return layout_of((2, 3))


@pytest.fixture(scope="module")
def windows():
    """x: f32[n,2,4], label: u8[n]"""
    return layout_of((2, 2, 4))


def read(path, layout, mapping=None, window=None, stride=None, classes=()):
    cut = RecordingWindows(window, stride)
    return load_dataset(str(path), path, layout, mapping and columns(mapping), (), cut, classes)


X, LABELS = [[1.0, 2.0, 3.0], [4.5, 5.0, 6.0]], [0, 2]
TABLES = [
    ("1,2,3,0\n4.5,5,6,2\n", None),
    ("a,b,c,d\n1,2,3,0\n4.5,5,6,2\n", None),
    ("label,a,b,c\n0,1,2,3\n2,4.5,5,6\n", None),
    ("time,c,label,b,a\n9,3,0,2,1\n9,6,2,5,4.5\n", "x=a,b,c;label=label"),
    ('"a","b","c","kind"\r\n1, 2, 3, 0\r\n\r\n4.5, 5, 6, 2\r\n', "label=kind"),
]


@pytest.mark.parametrize("text, mapping", TABLES)
def test_tables(three, tmp_path, text, mapping):
    path = tmp_path / "d.csv"
    path.write_text(text)
    data = read(path, three, mapping)
    assert data.train["x"].tolist() == X and data.train["label"].tolist() == LABELS
    assert data.train["label"].dtype == np.uint8 and not data.tests and data.classes == ()


@pytest.mark.parametrize(
    "labels, is_sorted",
    [
        ((0, 0, 1, 1, 2, 2), True),
        ((2, 2, 0, 0, 1, 1), True),
        ((0, 1, 0, 1), False),
        ((0, 1, 2), False),
        ((1, 1), False),
    ],
)
def test_samples_that_are_sorted_by_class_are_recognised(three, tmp_path, labels, is_sorted):
    (tmp_path / "d.csv").write_text("".join(f"1,2,3,{k}\n" for k in labels))
    assert read(tmp_path / "d.csv", three).is_sorted(three) == is_sorted


def test_more_words_than_classes_are_named(three, tmp_path):
    (tmp_path / "d.csv").write_text("".join(f"1,2,3,{word}\n" for word in ("go", "stop", "fly", "up", "go")))
    with pytest.raises(DataError, match="label has 4 words, fly, go, stop, up; the model takes 3 classes"):
        read(tmp_path / "d.csv", three)


def test_classes_that_are_words_are_numbered_alike_in_training_and_test(three, tmp_path):
    (tmp_path / "train.csv").write_text("a,b,c,label\n1,2,3,walk\n4.5,5,6,run\n")
    (tmp_path / "test.csv").write_text("a,b,c,label\n0,0,0,sit\n0,0,0,walk\n")
    data = read(tmp_path, three)
    assert data.classes == ("run", "sit", "walk")
    assert data.train["label"].tolist() == [2, 0] and data.test["label"].tolist() == [1, 2]


def test_words_are_no_floats(three, tmp_path):
    """A number that was read as a word, not the index of a word."""
    np.savez(tmp_path / "d.npz", x=np.array(X).astype(str), label=LABELS)
    with pytest.raises(DataError, match=r"x: expected numbers .* got an array of <U32"):
        read(tmp_path / "d.npz", three)


@pytest.mark.parametrize("parts", [("",), ("train", "test")])
def test_recordings_are_cut_into_windows(windows, tmp_path, parts):
    """4 times of 2 channels; a rest is left out."""
    for part in parts:
        for word, length in (("run", 9), ("walk", 4)):
            folder = tmp_path / part / word
            folder.mkdir(parents=True)
            rows = "".join(f"{t},{-t}\n" for t in range(length))
            (folder / "1.csv").write_text("left,right\n" + rows)
    data = read(tmp_path, windows)
    assert data.classes == ("run", "walk") and data.train["label"].tolist() == [0, 0, 1]
    assert data.train["x"][1].tolist() == [[4, 5, 6, 7], [-4, -5, -6, -7]]
    assert data.tests == (3 if "test" in parts else 0)


def labelled(words, head="left,right,label\n"):
    """A recording of 2 channels, whose values are the times, and a label for each row."""
    return head + "".join(f"{t},{-t},{word}\n" for t, word in enumerate(words.split()))


CUT = [  # text, mapping, window, stride; the first times, the labels, the windows with two labels
    (labelled("a a a a b b b b"), None, None, None, [0, 4], ["a", "b"], 0),
    (labelled("a a a a b b b b b"), None, 4, 2, [0, 2, 4], ["a", "b", "b"], 1),
    (labelled("a a a b"), None, None, None, [0], ["b"], 1),
    (labelled("a a a a b b b b b b b", head=""), None, None, 5, [0, 5], ["a", "b"], 0),
    (labelled("a a a a", "label,right,left\n"), "x=label,right;label=left", 4, 9, [0], ["a"], 0),
    (labelled("0 0 0 2 1 1 1 1"), None, None, None, [0, 4], [2, 1], 1),
]


@pytest.mark.parametrize("text, mapping, window, stride, times, labels, mixed", CUT)
def test_a_label_for_each_row_is_cut_into_windows(
    windows, tmp_path, text, mapping, window, stride, times, labels, mixed
):
    """A window has the label of its last row."""
    (tmp_path / "d.csv").write_text(text)
    data = read(tmp_path / "d.csv", windows, mapping, window, stride)
    wanted = [[[k, k + 1, k + 2, k + 3], [-k, -k - 1, -k - 2, -k - 3]] for k in times]
    assert data.train["x"].tolist() == wanted
    assert [data.classes[k] if data.classes else k for k in data.train["label"]] == labels
    assert f"windows: {len(times)} of 4 rows, one every {stride or 4} rows" in data.note
    assert (f"{mixed} contain more than one label" in data.note) == (mixed > 0)


def test_a_recording_without_labels(windows, tmp_path):
    """A time and other columns may be in the file."""
    alone = replace(windows, inputs=windows.inputs[:1])
    (tmp_path / "d.csv").write_text(labelled("0 0 0 0 0", "left,right,time\n"))
    data = read(tmp_path / "d.csv", alone, "x=left,right", stride=1)
    assert data.train["x"][:, 0].tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    (tmp_path / "one.csv").write_text("".join(f"{t}\n" for t in range(8)))
    row = layout_of((2, 4))
    data = read(tmp_path / "one.csv", replace(row, inputs=row.inputs[:1]))
    assert data.train["x"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_windows_of_a_flat_input(tmp_path):
    """--window gives the number of rows: times, then channels."""
    (tmp_path / "d.csv").write_text(labelled("a a a a b b"))
    data = read(tmp_path / "d.csv", layout_of((2, 6)), window=3)
    assert data.train["x"].tolist() == [[0, 0, 1, -1, 2, -2], [3, -3, 4, -4, 5, -5]]


def test_classes_in_the_order_of_training(windows, tmp_path):
    (tmp_path / "d.csv").write_text(labelled("b b b b c c c c"))
    data = read(tmp_path / "d.csv", windows, classes=("c", "a", "b"))
    assert data.classes == ("c", "a", "b") and data.train["label"].tolist() == [2, 0]
    with pytest.raises(DataError, match="label: 'c' is none of --classes a,b"):
        read(tmp_path / "d.csv", windows, classes=("a", "b"))


@pytest.mark.parametrize(
    "text, options, said",
    [
        (labelled("a a a"), {}, "fewer rows than a window of x has, 4: f32[n,2,4]"),
        (
            labelled("a a a a"),
            {"window": 3},
            "--window 3: x: f32[n,2,4] takes windows of 4 rows of 2 columns",
        ),
        (labelled("a a nan a", "left,label,right\n"), {}, "row 2, column right: 'a' is not a number"),
        (labelled("1 1 nan 1", "left,label,right\n"), {}, "row 4, column right: 'nan' is not a number"),
        (
            "t,a,b,label\n" + "1,2,3,0\n" * 4,
            {},
            "takes 8 (in a recording 2 or 4) for x, 1 for label; name them",
        ),
        (
            "1,2,3,4,5,6,7,8,0\n",
            {"stride": 2},
            "--window and --stride cut recordings in CSV files, and these",
        ),
    ],
)
def test_wrong_recordings_are_one_line(windows, tmp_path, text, options, said):
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        read(tmp_path / "d.csv", windows, **options)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_of_arrays(three, tmp_path):
    for name in ("x", "test_x"):
        np.save(tmp_path / f"{name}.npy", np.float32(X))
    for name in ("label", "test_label"):
        np.save(tmp_path / f"{name}.npy", np.array(LABELS))
    data = read(tmp_path, three)
    assert len(data) == data.tests == 2


@pytest.mark.parametrize(
    "text, mapping, said",
    [
        ("a;b;c;label\n1;2;3;0\n", None, "has ';' between the cells of a row: write it with commas"),
        ("a,b,c,\udcfcber\n1,2,3,0\n", None, "byte 7 is not UTF-8: save the file in this encoding"),
        ("1,2,3\n", None, "has 3 columns, the model takes 3 for x, 1 for label; name them by --columns"),
        ("1,2,3,4,5\n", None, "has 5 columns, the model takes 3 for x, 1 for label"),
        ("a,b,c,label\n1,2,x,0\n", None, "row 2, column c: 'x' is not a number"),
        ("1,2,3,0\n1,,3,0\n", None, "row 2, column 2: the cell is empty; leave out the row, or fill it in"),
        ("a,b,c,label\n1,2,3,walk\n1,2,3,\n", None, "row 3, column label: the cell is empty"),
        (
            "0,1,2,label\n1,2,3,0\n1,2,3,1\n",
            None,
            "row 1, column 4: 'label' is not a number, the rows below have",
        ),
        (
            "0,1,2,label\n1,2,3,run\n1,2,3,walk\n",
            None,
            "row 1: numbers that count the columns, and 'label', which",
        ),
        ("a,b,c,label\n1,2,3,0\n1,2,3\n", None, "row 3 has 3 cells, the first 4"),
        ("a,b,c,label\n", None, "has no rows of numbers"),
        ("a,b,c,label\n1,2,3,0\n", "x=a,b,z", "no column z for x; it has a, b, c, label"),
        ("a,b,c,label\n1,2,3,0\n", "y=a", "no array y; the model takes x, label"),
        ("1,2,3,0\n", "label=d", "--columns names columns, and the file has no header"),
        ("a,b,c,label\n1,2,3,7\n", None, "label[0] is 7, outside 0 to 2"),
    ],
)
def test_wrong_tables_are_one_line(three, tmp_path, text, mapping, said):
    path = tmp_path / "d.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError) as caught:
        read(path, three, mapping)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_single_row_has_no_header(three, tmp_path):
    (tmp_path / "d.csv").write_text("0,1,2,run\n")
    np.testing.assert_array_equal(read(tmp_path / "d.csv", three).train["x"], [[0, 1, 2]])


def test_a_first_sample_that_looks_like_a_header_needs_one_above_it(three, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(rows := "0,1,2,run\n1,2,3,walk\n")
    with pytest.raises(DataError, match=r"; if it is a sample, give the table a header$"):
        read(path, three)
    path.write_text("a,b,c,label\n" + rows)
    assert read(path, three).train["x"].tolist() == [[0, 1, 2], [1, 2, 3]]


def test_wrong_folders_are_one_line(three, windows, tmp_path):
    with pytest.raises(DataError, match=r"neither .npy files, train.csv, nor CLASS/\*.csv"):
        read(tmp_path, three)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "1.csv").write_text("1,2,3\n" * 8)
    with pytest.raises(DataError, match=r"3 columns, which is no axis of x: f32\[n,2,4\]"):
        read(tmp_path, windows)
    (tmp_path / "run" / "1.csv").write_text("1,2\n" * 3)
    with pytest.raises(DataError, match="no recording is as long as x"):
        read(tmp_path, windows)
