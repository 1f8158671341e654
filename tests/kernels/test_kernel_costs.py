"""Where several kernels serve a call, the cost table chooses."""

from dataclasses import replace

import pytest
from toy_backend import KERNELS, row, toy

from autodiff_gen.errors import BoardError, KernelError
from autodiff_gen.kernels import registry
from autodiff_gen.targets import board
from autodiff_gen.targets.cost_table import KernelCost

CONV = {"h": 8, "w": 8, "c": 4, "oh": 8, "ow": 8, "o": 6, "kh": 3, "kw": 3, "groups": 1}


def two_kernels(tmp_path, **costs):
    """A folder with two kernels of one call; `costs`: terms and tiles of those in the board's table."""
    table = row("conv2d_f32", "toy_wide") + row("conv2d_f32", "toy_narrow", head="") + "by_cost = true\n"
    source = "void toy_wide(void);\nvoid toy_narrow(void);\n"
    kernels = {
        f"toy_{name}": KernelCost(call=10, result=0, term=term, edge=9, tile=tile)
        for name, (term, tile) in costs.items()
    }
    folder = toy(tmp_path, table=table.replace("when = []\n", ""), source=source)
    return registry.load([folder], root=KERNELS, cost=replace(registry.host_cost(), kernels=kernels))


def test_the_cheapest_of_two_kernels_is_chosen(tmp_path):
    loaded = two_kernels(tmp_path, wide=(0.5, 8), narrow=(1, 4))
    assert loaded.select("conv2d_f32", {**CONV, "o": 16}).symbol == "toy_wide"
    assert loaded.rejected("conv2d_f32", {**CONV, "o": 16}) == (
        f"toy_narrow, as it costs {10 + 64 * 36 * 16:,} for an image, this {10 + 64 * 36 * 8:,}",
    )
    # six columns are less than a tile of eight, and two tiles of four
    assert loaded.select("conv2d_f32", CONV).symbol == "toy_narrow"
    assert loaded.rejected("conv2d_f32", CONV) == (
        f"toy_wide, as it costs {10 + 64 * 36 * 6 * 9:,} for an image, this {10 + 64 * 36 * 8:,}",
    )
    # and so are the rows of each of two groups
    assert loaded.select("conv2d_f32", {**CONV, "o": 12, "groups": 2}).symbol == "toy_narrow"


@pytest.mark.parametrize("costs", [{}, {"narrow": (1, 4)}, {"wide": (1, 4)}])
def test_without_the_costs_of_both_the_order_decides(tmp_path, costs):
    loaded = two_kernels(tmp_path, **costs)
    assert loaded.select("conv2d_f32", CONV).symbol == "toy_wide"
    assert loaded.select("conv2d_f32", {"kh": 3}).symbol == "toy_wide"  # sizes that vary at run time


def test_a_kernel_that_the_table_of_costs_lacks(tmp_path):
    loaded = two_kernels(tmp_path)
    says = "toy_narrow, as the board's [cost.kernels] lacks it"
    assert says in loaded.rejected("conv2d_f32", CONV)


def test_the_cost_of_an_unknown_kernel(tmp_path):
    path = tmp_path / "mine.toml"
    cost = "{ call = 1, result = 0, term = 1, edge = 1, tile = 4 }"
    path.write_text(
        f'schema = 1\nname = "mine"\ninherits = "virt_a53"\n[cost.kernels]\nag_conv2d_f32_neonn = {cost}\n'
    )
    with pytest.raises(BoardError) as caught:
        registry.for_board(board.load(str(path)))
    says = "cost.kernels.ag_conv2d_f32_neonn: no backend has this kernel; the closest names are ag_conv2d_f32_neon, "
    assert str(caught.value).startswith(f"{path}: {says}")
    path.write_text(path.read_text().replace("neonn", "neon"))
    registry.for_board(board.load(str(path)))


def test_an_unknown_backend_of_a_board_names_its_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('schema = 1\nname = "mine"\ninherits = "stm32"\n[kernels]\nbackends = ["armv7", "ref"]\n')
    with pytest.raises(KernelError) as caught:
        registry.for_board(board.load(str(path)))
    says = "its kernels cannot be used: unknown kernel backend 'armv7'; did you mean 'armv7em'?"
    assert str(caught.value).startswith(f"{path}: {says}")


def test_few_channels_have_the_kernels_that_cost_less():
    """A tile of NEON has 16 columns on a Cortex-A53 and 8 on a Cortex-A7."""
    for name, columns in (("virt_a53", 16), ("virt_a7", 8)):
        loaded = registry.for_board(board.load(name))
        for channels in (4, columns - 4, columns, columns + 1, 4 * columns):
            for kernel in ("conv2d_f32", "conv2d_dx_f32"):
                chosen = loaded.select(kernel, {**CONV, "c": channels, "o": channels})
                small = chosen.symbol == f"ag_{kernel}_small_neon"
                assert small == (channels < columns), (name, kernel, channels)
