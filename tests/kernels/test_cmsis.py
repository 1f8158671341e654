"""The backend `cmsis`: CMSIS-NN compared with `ref` on every kind of core, and the one line for each fault.

`./scons test` has fetched it.
"""

import pytest
from c_build import KERNELS

from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.errors import KernelError
from autodiff_gen.kernels import registry, third_party
from autodiff_gen.targets import board

BOARDS = (
    "host",
    "mps2_an385",
    "mps2_an386",
    "mps3_an547",
)  # plain C on 64 and on 32 bits, DSP extension, Helium
KERNELS_OF_IT = {"dense_s8", "max_pool2d_s8", "conv2d_s8", "depthwise2d_s8", "avg_pool2d_s8", "softmax_s8"}
CONV = {
    **dict.fromkeys(("oh", "ow", "h", "w"), 8),
    **dict.fromkeys(
        ("stride_h", "stride_w", "dilation_h", "dilation_w", "pad_top", "pad_left", "groups", "x_c"), 1
    ),
    "kh": 3,
    "kw": 3,
    "c": 4,
    "o": 6,
    "ldy": 6,
    "x_w": 4,
    "x_h": 32,
    "x_n": 256,
}
DEPTHWISE = {**CONV, "groups": 4, "o": 4, "ldy": 4}
POOL = {**CONV, "pad_top": 0, "pad_left": 0}


@pytest.mark.cc
@pytest.mark.qemu
@pytest.mark.parametrize("name", BOARDS)
def test_its_bits_are_those_of_the_reference(name):
    lines, good = compare("cmsis", board.load(name))
    assert good, "\n".join(lines)
    assert {line.split()[0] for line in lines} == KERNELS_OF_IT


@pytest.mark.parametrize(
    "name, facts, features, size",
    [
        ("conv2d_s8", CONV, [], 4 * 6 + 192),
        ("depthwise2d_s8", DEPTHWISE, ["dsp", "mve"], 4 * 4 + 4464),
        ("depthwise2d_s8", DEPTHWISE, ["dsp"], 4 * 4),
        ("depthwise2d_s8", {**DEPTHWISE, "kw": 5, "pad_left": 2}, ["dsp"], 4 * 4 + 120),
        ("avg_pool2d_s8", POOL, ["dsp"], 16),
        ("max_pool2d_s8", POOL, ["dsp"], None),
        ("dense_s8", {"per_channel": 1, "n": 5}, ["dsp"], 4 * 5),
        ("dense_s8", {"per_channel": 0}, ["dsp"], None),
        ("dense_s8", {"per_channel": 0, "n": 5}, ["dsp", "mve"], 4 * 5),
    ],
)
def test_scratch_memory(name, facts, features, size):
    chosen = registry.load(["cmsis"], features=features, root=KERNELS).select(name, facts)
    assert chosen.backend == "cmsis"
    assert (chosen.scratch and chosen.scratch(facts)) == size


@pytest.mark.parametrize(
    "name, facts, changes",
    [
        ("conv2d_s8", CONV, [{"groups": 2}, {"x_c": 2}, {"x_w": 5}, {"x_h": 33}, {"ldy": 7}, {"pad_top": 3}]),
        ("conv2d_s8", CONV, [{"oh": 10}, {"ow": 10}, {"w": 40000}, {"kh": 1, "kw": 1}]),
        ("depthwise2d_s8", DEPTHWISE, [{"x_c": 2}, {"x_w": 5}, {"ldy": 5}, {"ow": 9}]),
        ("avg_pool2d_s8", POOL, [{"dilation_h": 2}, {"x_w": 5}]),
        ("max_pool2d_s8", POOL, [{"dilation_w": 2}, {"x_h": 33}]),
        ("softmax_s8", {"n": 511}, [{"n": 512}]),
    ],
)
def test_what_it_does_not_compute(name, facts, changes):
    loaded = registry.load(["cmsis"], features=["dsp"], root=KERNELS)
    assert loaded.select(name, facts).backend == "cmsis"
    assert [loaded.select(name, {**facts, **change}).backend for change in changes] == ["ref"] * len(changes)


def test_one_scale_has_a_kernel_of_its_own():
    loaded = registry.load(["cmsis"], features=["dsp"], root=KERNELS)
    symbols = [loaded.select("dense_s8", {"per_channel": k}).symbol for k in (0, 1)]
    assert symbols == ["ag_dense_of_one_scale_s8_cmsis", "ag_dense_s8_cmsis"]


# ---- where it is looked for: a stand-in with the same files


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """The variable points at it, and nothing is fetched."""
    pinned, folder = registry.external("cmsis", KERNELS), tmp_path / "CMSIS NN"
    for name in (pinned.version[0], *(source.replace("*", "_s8_") for source in pinned.sources)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" * $Revision:    V.12.5.1\n")
    monkeypatch.setenv("CMSIS_NN", str(folder))
    monkeypatch.setattr(third_party, "fetched", lambda: tmp_path / "packages")
    return folder


def rejected():
    with pytest.raises(KernelError) as error:
        registry.load(["cmsis"], root=KERNELS)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("revision", ["V.12.2.0", "V.16.0.0", "V.19.1.0"])
def test_a_checkout_of_a_supported_version(sources, revision):
    """Those from version 7 on have one file more, which its depthwise wrapper calls with Helium."""
    (sources / "Include/arm_nnfunctions.h").write_text(f" * $Revision:    {revision}\n")
    pinned, more = registry.external("cmsis", KERNELS), revision > "V.17"
    for name in pinned.optional if more else ():
        (sources / name).parent.mkdir()
        (sources / name).write_text("")
    loaded = registry.load(["cmsis"], root=KERNELS)
    assert sources / "Include" in loaded.include_dirs()
    external = [s for s in loaded.sources() if s.path.is_relative_to(sources)]
    assert len(external) == len(pinned.sources) + more


def test_where_there_are_two_the_variable_names_the_one(sources, tmp_path, monkeypatch):
    """Also where what was fetched could not be used."""
    pinned = registry.external("cmsis", KERNELS)
    (tmp_path / "packages" / pinned.pin[0].replace("==", "-") / "Include").mkdir(parents=True)
    assert pinned.folder() == sources
    monkeypatch.delenv("CMSIS_NN")
    assert "is not CMSIS-NN: it has no Include/arm_nnfunctions.h" in rejected()


def test_without_sources(sources, monkeypatch):
    monkeypatch.delenv("CMSIS_NN")
    assert rejected() == (
        "backend 'cmsis' needs CMSIS-NN: set CMSIS_NN to the path of its sources, or run autodiff-gen fetch cmsis"
    )


@pytest.mark.parametrize(
    "says, found", [("$Revision:    V.9.0.0", "has version 9"), ("", "has no version")], ids=str
)
def test_an_unsupported_version(sources, says, found):
    (sources / "Include/arm_nnfunctions.h").write_text(says)
    assert rejected() == (
        f"CMSIS_NN={sources}: Include/arm_nnfunctions.h {found}; "
        "supported of CMSIS-NN: 12, 13, 14, 15, 16, 17, 18, 19"
    )


def test_another_folder(sources, monkeypatch):
    monkeypatch.setenv("CMSIS_NN", str(sources / "Include"))
    assert rejected() == (f"CMSIS_NN={sources}/Include is not CMSIS-NN: it has no Include/arm_nnfunctions.h")


def test_a_checkout_that_lacks_files(sources):
    for path in (sources / "Source/PoolingFunctions").iterdir():
        path.unlink()
    assert rejected() == f"CMSIS_NN={sources} is not CMSIS-NN: it has no Source/PoolingFunctions/*_s8.c"
