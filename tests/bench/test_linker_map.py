"""Bytes of text by part of the program, from the linker's map."""

from __future__ import annotations

import pytest

from autodiff_gen.bench import linker_map
from autodiff_gen.errors import ToolError


def test_text_is_read_from_the_map(tmp_path):
    path = tmp_path / "a.map"
    path.write_text(
        "Discarded input sections\n .text.net_save 0x00000000 0x40 libnet.a(net.o)\n"
        "Linker script and memory map\n"
        " .text.net_train_step\n                0x00001000      0x100 build/obj/libnet.a(net.o)\n"
        " .text.ag_expf  0x00001100       0x20 build/obj/libnet.a(net.o)\n"
        " .rodata.table  0x00001120       0x10 build/obj/libnet.a(net.o)\n"
        " .rodata.w      0x00001130     0x1000 build/obj/libnet.a(net_params.o)\n"
        " .text.ag_ger   0x00002130       0x30 build/obj/libag_kernels.a(ger.o)\n"
        " .text.main     0x00002160       0x50 build/obj/main.o\n"
    )
    expected = {"trainer": 0x110, "kernels": 0x30, "ag_math": 0x20, "together": 0x160}
    assert linker_map.text_bytes(path, "net") == expected
    with pytest.raises(ToolError, match="not a map"):
        path.write_text("")
        linker_map.text_bytes(path, "net")
