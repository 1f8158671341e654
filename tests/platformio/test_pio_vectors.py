"""The test vectors that `pio test` compares with on the board: every kernel has some, and they are written when a file
that makes them has changed."""

from __future__ import annotations

import os
import venv
from pathlib import Path

import pytest
from kernel_vectors import kernel_cases
from pio_project import copy_parts, pio, succeed

from autodiff_gen.kernels.contract import CONTRACT


def test_every_kernel_has_vectors() -> None:
    names = [c.kernel for c in kernel_cases()]
    assert len(set(names)) == len(names)
    # no op has samples of these; test_op_kernels.py, lowering/test_in_place.py
    assert set(CONTRACT) - set(names) == {"axpby_f32", "depthwise2d_in_place_s8"}


@pytest.mark.pio
@pytest.mark.qemu
@pytest.mark.torch
def test_vectors_are_written_when_their_sources_are_newer(tmp_path: Path) -> None:
    tree, core = tmp_path / "a tree", tmp_path / "core"
    copy_parts(tree)
    folder = tree / "examples" / "xor"
    words = ["test", "-e", "qemu_m4", "--without-testing"]
    venv.create(tmp_path / "bare", symlinks=True)
    done = pio(folder, core, *words, AUTODIFF_PYTHON=str(tmp_path / "bare" / "bin" / "python"))
    errors = [line for line in done.stdout.splitlines() if line.startswith("Error: test vectors of xor: ")]
    assert done.returncode != 0 and len(errors) == 1 and "No module named" in errors[0]

    def written() -> list[int]:
        succeed(folder, core, *words)
        made = sorted((folder / ".pio" / "vectors").iterdir())
        assert [p.name for p in made] == ["kernel_vectors.h", "model_vectors.h"]
        return [p.stat().st_mtime_ns for p in made]

    first = written()
    assert written() == first
    os.utime(folder / "model.py")
    assert all(new > old for new, old in zip(written(), first, strict=True))
