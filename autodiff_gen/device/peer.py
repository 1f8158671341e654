"""Whether a board's firmware was built from a program, and whether the link can serve the program at all."""

from __future__ import annotations

from ..codegen.board_link_layout import LinkLayout
from ..codegen.program import Program
from .errors import LinkError
from .replies import Greeting

MOST_ROWS, MOST_STEPS = 0xFFFF, 0xFFFFFFFF  # the maxima of the fields of requests
MOST_BYTES = 1 << 24  # of an object that addresses reach


def check_program(program: Program, layout: LinkLayout, greeting: Greeting) -> None:
    """Raises LinkError for firmware of another model, of another program with the same parameters, or with other sizes,
    and for a program that is too large for the link."""
    if greeting.graph_id != program.graph_id:
        raise LinkError(
            f"the board runs another model: {greeting.name!r} with graph id {greeting.graph_id:08x}, this one is "
            f"{program.name!r} with {program.graph_id:08x}; build and upload its firmware, or name the board's model"
        )
    if greeting.program_id != program.program_id:
        raise LinkError(
            f"the board runs another program: {greeting.name!r}, whose parameters are the same, but not its "
            f"operations, loss or optimizer (program {greeting.program_id:08x}, this one is "
            f"{program.program_id:08x}); build and upload its firmware"
        )
    sizes = (program.batch, program.state_bytes, layout.input_bytes, layout.output_bytes)
    theirs = (greeting.batch, greeting.state_bytes, greeting.input_bytes, greeting.output_bytes)
    if sizes != theirs:
        raise LinkError(
            f"the board's firmware has other sizes (batch, state, inputs, outputs: {theirs}, here {sizes}); "
            "build and upload it again"
        )
    if program.batch > MOST_ROWS or max(sizes[1:]) > MOST_BYTES:
        raise LinkError(
            f"{program.name}: a board on the link has at most {MOST_ROWS:,} samples a step, and 16 MB each of states, "
            f"inputs and outputs; this model has {program.batch:,} samples, and {max(sizes[1:]):,} bytes of one of them"
        )
