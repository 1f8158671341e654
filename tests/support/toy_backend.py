"""Folders of kernels for the tests of kernel tables."""

import pytest
from checkout import ROOT

from autodiff_gen.errors import KernelError
from autodiff_gen.kernels import registry

KERNELS = ROOT / "kernels"
GEMV = {"lda": 784, "m": 32, "n": 784}


def toy(parent, name="toy", table=None, source="void toy_gemv(void);\nvoid toy_gemv_any(void);\n"):
    """A backend folder; `table` replaces its kernels.toml. Returns its path as a user would write it."""
    folder = parent / name
    folder.mkdir(parents=True)
    (folder / "toy.c").write_text(source)
    (folder / "kernels.toml").write_text(table if table is not None else row(when='["n % 4 == 0", "m >= 8"]'))
    return str(folder)


def row(name="gemv_f32", symbol="toy_gemv", source="toy.c", when="[]", head="schema = 1\n"):
    return f'{head}[[kernel]]\nname = "{name}"\nsymbol = "{symbol}"\nsource = "{source}"\nwhen = {when}\n'


def serves(lines, head="schema = 1\n"):
    return f"{head}[serves]\n{lines}\n"


def fails(names, says, **options):
    with pytest.raises(KernelError) as error:
        registry.load(names, root=KERNELS, **options)
    message = str(error.value)
    assert says in message
    assert "\n" not in message
