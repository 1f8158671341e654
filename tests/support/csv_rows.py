"""The rows of a CSV file."""

from __future__ import annotations

import csv


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
