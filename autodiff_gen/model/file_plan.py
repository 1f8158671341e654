"""Choose which parameters of a model file train within a RAM budget: the file is run again and compiled for each
choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..codegen.budget_notes import UNLIMITED
from ..codegen.compiler import compile_model
from ..codegen.program import Program
from ..codegen.program_regions import Ram, budget_of, over, spaces_of
from ..errors import ModelError
from ..ir.graph import Channels, State
from ..kernels import registry
from ..nn.trained_selection import training_only
from ..progress import doing
from ..targets.board import BoardSpec
from .contributions import squares
from .loader import LoadedFile, load_file
from .model import Model
from .update_costs import costs
from .update_plan import MOST_TRIES, Proposal, propose


class FilePlan:
    """model, file: the model file as it is without a plan; budget: bytes of state and arena together. Raises ModelError
    if there is no budget, or no parameter of a network trains."""

    tries = 0  # choices that were compiled

    def __init__(
        self, path: str, board: BoardSpec, kernels: Sequence[str] | None, ram: Ram, name: str | None
    ) -> None:
        self._path, self._board, self._kernels, self._ram = path, board, kernels, ram
        budget = budget_of(board, ram)
        if budget is None:
            raise ModelError(f"plan: board {board.id} has no limit of RAM; give a budget, such as --ram 128K")
        self.budget = budget
        self.model, self.file, reached = self._load(None)
        self._name = name or self.file.name
        self.what = f"{self._name} for {board.name} ({board.id})"
        self._states = [state for state in self.model.trained if state.name in reached]
        if not self._states:
            raise ModelError(
                f"{path}: no parameter of a network trains; plan chooses between layers of ag.nn"
            )

    def propose(self, batches: Iterator[Mapping[str, Any]]) -> tuple[Proposal, Model]:
        """The best choice for the gradients of these batches, and the model with this choice."""
        models: list[tuple[Program, Model]] = []

        def compiled(channels: Mapping[State, Channels | None]) -> tuple[Program, int]:
            model, _, _ = self._load({state.name: chosen for state, chosen in channels.items()})
            program, free = self._compiled(model)
            models.append((program, model))
            return program, free

        with doing(f"computing gradients of {self._name}"):
            found = squares(self.model, self._states, batches)
        backends = registry.for_board(self._board, self._kernels)
        estimates = costs(self.model, self._states, backends)
        proposal = propose(self._states, found, estimates, self.budget, compiled)
        (chosen,) = (model for program, model in models if program is proposal.program)
        return proposal, chosen

    def without_budget(self, model: Model) -> Program:
        """The program of a model from `propose`, compiled without a limit of memory."""
        with doing(f"compiling {self._name} for {self._board.id}, without a budget"):
            return compile_model(model, self._name, self._kernels, self._board, UNLIMITED)

    def _load(self, channels: Mapping[str, Channels | None] | None) -> tuple[Model, LoadedFile, set[str]]:
        """The model, the loaded file, and the names of the parameters of its networks. channels: the parameters that
        train, by name, with their channels, None for all channels; None: all parameters train."""
        with training_only(channels) as selection:
            file = load_file(self._path)
        if not isinstance(file.made, Model):
            raise ModelError(f"{self._path} defines functions; plan needs a model that trains")
        return file.made, file, selection.reached

    def _compiled(self, model: Model) -> tuple[Program, int]:
        """The program, and the bytes that it leaves free, negative if it does not fit."""
        rest = self._kernels, self._board, self._ram
        self.tries += 1
        with doing(
            f"compiling {self._name} for {self._board.id}, choice {self.tries} of at most {MOST_TRIES}"
        ):
            program = compile_model(model, self._name, *rest, must_fit=False, thorough=False)
        missing = sum(
            needed - space.bytes for space, needed in over(program, spaces_of(self._board, self._ram))
        )
        return program, -missing or self.budget - program.struct_bytes
