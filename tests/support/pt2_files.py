"""Files of torch.export.save, entry by entry."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 6)

    def forward(self, x: Any) -> Any:
        y = torch.diff(torch.relu(self.fc(x)), n=2)
        return y[:, 1:3] + y.select(1, 2).unsqueeze(1)


def saved_entries() -> dict[str, bytes]:
    """The entries of the file of a small network."""
    made = io.BytesIO()
    torch.export.save(torch.export.export(Net(), (torch.zeros(3, 4),)), made)
    with zipfile.ZipFile(made) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(entries: dict[str, bytes], name: str = "net.pt2") -> Path:
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    return Path(name)


def entries_of(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
