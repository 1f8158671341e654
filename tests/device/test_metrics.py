"""Accuracy, confusion matrix and F1, computed by hand and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sklearn

from autodiff_gen.device.metrics import (
    MATRIX,
    accuracy,
    classes_report,
    confusion_matrix,
    counts_report,
    errors_report,
    f1_scores,
)


def test_by_hand():
    """Class 0 is right twice and missed once, class 1 is right once; class 2 is predicted and never the label."""
    matrix = confusion_matrix(np.array([0, 0, 0, 1]), np.array([0, 0, 2, 1]), 3)
    assert matrix.tolist() == [[2, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert accuracy(matrix) == 0.75
    np.testing.assert_allclose(f1_scores(matrix), [0.8, 1.0, np.nan])
    assert classes_report(matrix, ("run", "sit", "skip")).splitlines() == [
        "accuracy 75.00 %, 3 of 4",
        "confusion matrix: a row for each label, a column for each prediction; F1 of each class",
        "      run  sit  skip     F1",
        "----  ---  ---  ----  -----",
        "run     2    0     1  0.800",
        "sit     0    1     0  1.000",
        "skip    0    0     0      -",
    ]


@pytest.mark.parametrize("classes, labels", [(2, 2), (4, 3), (7, 7), (5, 1)])
def test_as_scikit_learn(rng, classes, labels):
    """Also where labels of some classes never occur."""
    y, guess = rng.integers(0, labels, 60), rng.integers(0, classes, 60)
    matrix = confusion_matrix(y, guess, classes)
    every = list(range(classes))
    assert matrix.tolist() == sklearn.confusion_matrix(y, guess, labels=every).tolist()
    assert accuracy(matrix) == sklearn.accuracy_score(y, guess)
    wanted = sklearn.f1_score(y, guess, labels=every, average=None, zero_division=0.0)
    np.testing.assert_allclose(f1_scores(matrix), np.where(np.isin(every, y), wanted, np.nan))


def test_labels_that_the_loss_ignores_and_pixels():
    labels = np.array([[0, 1, 255], [1, -1, 1]])
    assert confusion_matrix(labels, np.ones((2, 3)), 2).tolist() == [[0, 1], [0, 3]]


def test_many_classes_have_no_matrix():
    text = classes_report(np.eye(MATRIX + 1, dtype=np.int64), list(map(str, range(MATRIX + 1))))
    assert text.splitlines()[1].split() == ["class", "samples", "right", "F1"]
    assert text.count("\n") == MATRIX + 3


def test_counts_of_a_recording():
    predicted = np.array(["run", "skip", "skip"])
    assert counts_report(predicted) == "highest score: skip in 2 of 3, run in 1"


def test_errors_of_numbers():
    target, output = np.array([[0.0], [4.0]]), np.array([[3.0], [4.0]])
    said = errors_report("y against speed", target, output)
    assert said == "y against speed: mean absolute error 1.5, root mean square error 2.12132"
