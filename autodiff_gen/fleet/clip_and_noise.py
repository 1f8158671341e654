"""The clipping and noise that the options of a fleet ask for."""

from __future__ import annotations

from ..codegen.program import Program
from ..codegen.shared_part import shared_part
from ..device.differences import ClipAndNoise
from ..errors import DataError


def clip_and_noise_of(
    program: Program, clip: float | None, noise: float, local_buffers: bool
) -> ClipAndNoise | None:
    """How boards mask their differences; None without clipping. Raises DataError for noise without clipping, and for
    noise on running statistics."""
    if noise and not clip:
        raise DataError(f"--noise {noise:g} is relative to the largest norm of a difference: add --clip C")
    if noise and not local_buffers and any(run.is_buffer for run in shared_part(program)):
        raise DataError(
            "--noise: the model has running statistics, which noise would spoil, as variances may become negative: "
            "add --local-buffers, so that they stay on the boards"
        )
    return ClipAndNoise(clip, noise) if clip else None
