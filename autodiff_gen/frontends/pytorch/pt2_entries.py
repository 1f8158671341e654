"""The entries of an archive of torch.export.save: the names that each version of PyTorch gives them."""

from __future__ import annotations

from typing import Any

from ...errors import ModelError, quoted, shortened
from ...reading.archive import Archive
from ...reading.json_text import parse

WEIGHTS, CONSTANTS = KINDS = ("weights", "constants")
# The names until PyTorch 2.7. Later versions have other names, in folders below the archive's folder.
PROGRAM = "serialized_exported_program.json"
PICKLED = {WEIGHTS: "serialized_state_dict.pt", CONSTANTS: "serialized_constants.pt"}
EXAMPLES = "serialized_example_inputs.pt"


def in_archive(entry: str) -> str:
    """The name of an entry without the folder of the archive."""
    return entry.partition("/")[2] if "/" in entry else entry


class Entries:
    """The entries by their names without the archive's folder. Raises ModelError for two entries of one name."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive, self.name = archive, name
        self._full: dict[str, str] = {}
        for entry in archive.names():
            file = in_archive(entry)
            if self._full.setdefault(file, entry) != entry:
                raise ModelError(f"{name} has two entries {quoted(file)}; save it again")

    def __contains__(self, file: str) -> bool:
        return file in self._full

    def program(self) -> str | None:
        """The name of the entry with the graph; None if there is none."""
        models = (f for f in self._full if f.startswith("models/") and f.endswith(".json"))
        return PROGRAM if PROGRAM in self else next(models, None)

    def config(self, kind: str) -> str:
        """The name of the entry that lists the tensors of a kind, which have an entry each: since PyTorch 2.9."""
        return f"data/{kind}/{self._key()}_{kind}_config.json"

    def pickled(self, kind: str) -> str:
        """The name of the entry with all tensors of a kind, an archive of torch.save: until PyTorch 2.8."""
        return PICKLED[kind] if PROGRAM in self else f"data/{kind}/{self._key()}.pt"

    def _key(self) -> str:
        return str(self.program()).removeprefix("models/").removesuffix(".json")

    def bytes(self, file: str) -> bytes:
        return self.archive.read(self._of(file))

    def json(self, file: str, unique: bool = False) -> Any:
        return parse(self.archive.read_text(self._of(file)), self.name, ModelError, unique)

    def _of(self, file: str) -> str:
        if file not in self:
            raise ModelError(f"{self.name}: {shortened(file)} is missing in the archive")
        return self._full[file]
