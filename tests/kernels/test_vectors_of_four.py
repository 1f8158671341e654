"""A vec.h with vectors of four lanes and no special instructions serves every file of tiles/."""

from pathlib import Path

import pytest

from autodiff_gen.cli.main import main


@pytest.mark.cc
def test_every_kernel_of_tiles_agrees_with_ref(capsys):
    assert main(["test-kernels", str(Path(__file__).parent / "vectors_of_four"), "--board", "host"]) == 0
    said = capsys.readouterr().out
    assert "ag_gemm_nt_f32_vectors_of_four" in said and "ag_conv2d_dw_f32_vectors_of_four" in said
