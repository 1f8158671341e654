"""Optional scratch memory of kernels. It is granted to a step after all buffers have their places, if the arena has
room for it while the step runs. So no arena grows for it.

    arena 100; step 3: a at 0, 40 bytes, b at 80, 20 bytes  ->  up to 40 bytes of scratch memory at 40 for step 3
"""

from __future__ import annotations

from collections.abc import Iterable

from ..plan import EntryPlan, PlacedBuffer


def grant_scratch(plans: Iterable[EntryPlan], alignment: int) -> None:
    """Add buffers for the calls of final plans, and of the regions in them, whose kernels can do without; other calls
    get NULL. alignment: of buffers, in bytes."""
    for plan in (inner for outer in plans for inner in outer.all_plans()):
        for step in plan.steps:
            for node, (call, kernel) in step.calls.items():
                size = call.scratch(kernel.scratch) if kernel.scratch_optional else 0
                room = _room(plan, step.number, size, alignment) if size else None
                if room is not None:
                    arena, offset = room
                    home = "" if arena == "float" else arena
                    memory = step.give_memory(node, size)
                    held = PlacedBuffer([memory], step, size, step.number, step.number, "float", offset, home)
                    plan.placed.append(held)


def _room(plan: EntryPlan, step: int, size: int, alignment: int) -> tuple[str, int] | None:
    """The arena, and the offset in it, of `size` bytes that no buffer takes at a step; None if there are none. Arenas
    of integers have no scratch memory."""
    for arena, made in plan.plans.items():
        offset = 0
        alive = [b for b in plan.placed if b.arena_name == arena and b.start <= step <= b.end]
        for b in sorted(alive, key=lambda b: b.offset):
            if offset + size <= b.offset:
                break
            offset = max(offset, -(-(b.offset + b.bytes) // alignment) * alignment)
        if arena != "int" and offset + size <= made.peak:
            return arena, offset
    return None
