"""Boards that are the host with wider vectors: the program that needs instructions which are not there says
so in one line."""

import subprocess

import pytest
from c_build import HOST, compile_c
from checkout import ROOT

from autodiff_gen.device import session
from autodiff_gen.targets import board

WIDER = ("host_avx2", "host_avx512")
# In place of libgcc's: a computer without any of the features that one can require.
BARE = """
#include <stdio.h>
struct { unsigned vendor, type, subtype, features[1]; } __cpu_model;
unsigned __cpu_features2[4];
int __cpu_indicator_init(void);
int __cpu_indicator_init(void) { return 0; }
int main(void) { puts("ran"); return 0; }
"""


def program(name, cc, folder, text):
    b = board.load(name)
    (folder / "main.c").write_text(text)
    sources = [folder / "main.c", ROOT / "boards" / "support" / "host" / "cpu.c"]
    flags = [f for f in b.target.cflags if f.startswith("-m")]
    return compile_c(cc, sources, folder / "program", flags)


@pytest.mark.cc
@pytest.mark.parametrize("cc", HOST)
@pytest.mark.parametrize("name", WIDER)
def test_a_computer_without_the_instructions_is_told_so(name, cc, tmp_path):
    done = subprocess.run([program(name, cc, tmp_path, BARE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: this program needs AVX")
    assert done.stderr.endswith("host\n") and done.stderr.count("\n") == 1


@pytest.mark.cc
def test_the_plain_host_asks_for_nothing(tmp_path):
    done = subprocess.run(
        [program("host", "gcc", tmp_path, BARE)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "ran\n"


@pytest.mark.parametrize("name", WIDER)
def test_wider_boards_take_the_vector_kernels_first(name):
    b = board.load(name)
    assert b.is_host and b.kernels.backends[0] == "host"
    assert {"host", name.removeprefix("host_")} <= set(b.target.features)


@pytest.mark.parametrize("name", WIDER)
def test_kernels_are_compiled_for_the_instructions_of_the_board(name, monkeypatch):
    """Kernels of 8-bit integers use them, and do not compile without: as `predict` runs them on the host."""
    monkeypatch.setattr(session, "Trainer", lambda program, compiler: compiler)
    compiler = session.Session("xor", name).trainer()
    march = [flag for flag in board.load(name).target.cflags if flag.startswith("-march=")]
    assert march and set(march) <= set(compiler.command)
