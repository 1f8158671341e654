"""`autodiff-gen fetch`: a pinned package in a file, as the network would bring it."""

import hashlib
import io
import re
import tarfile
import zipfile

import pytest
from c_build import KERNELS, ROOT

from autodiff_gen.cli.main import main
from autodiff_gen.kernels import registry, third_party

FILES = {
    "cmsis": {
        "Include/arm_nnfunctions.h": "/* $Revision:    V.12.5.1 */",
        **{
            f"Source/{name}": ""
            for name in (
                "ConvolutionFunctions/arm_convolve_s8.c",
                "ConvolutionFunctions/arm_depthwise_conv_s8.c",
                "ConvolutionFunctions/arm_nn_depthwise_conv_s8_core.c",
                "FullyConnectedFunctions/arm_fully_connected_s8.c",
                "NNSupportFunctions/arm_nn_mat_mul_core_1x_s8.c",
                "NNSupportFunctions/arm_nn_depthwise_conv_nt_t_s8.c",
                "NNSupportFunctions/arm_q7_to_q15_with_offset.c",
                "PoolingFunctions/arm_max_pool_s8.c",
                "SoftmaxFunctions/arm_softmax_s8.c",
            )
        },
    },
    "cmsis_dsp": {
        "Include/arm_math.h": "/* @version  V1.10.0 */",
        "PrivateInclude/arm.h": "",
        "Source/MatrixFunctions/arm_mat_mult_f32.c": "",
        "Source/MatrixFunctions/arm_mat_vec_mult_f32.c": "",
        "LICENSE": "Apache",
    },
}
OTHERS = {"setup.py": "raise SystemExit", "Tests/main.c": "", "../../Source/outside.c": ""}


def archive(backend):
    root, memory = registry.external(backend, KERNELS).root, io.BytesIO()
    files = {f"{root}/{name}": text for name, text in {**FILES[backend], **OTHERS}.items()}
    files["another/Include/one.h"] = ""
    if backend == "cmsis":
        with zipfile.ZipFile(memory, "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
    else:
        with tarfile.open(fileobj=memory, mode="w:gz") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return memory.getvalue()


@pytest.fixture(params=list(FILES))
def backend(request, tmp_path, monkeypatch):
    """Its name; `fetch` unpacks its package into a folder of the test, and the pinned checksum is a file's."""
    data = archive(request.param)
    (tmp_path / "package").write_bytes(data)
    monkeypatch.setattr(third_party.External, "pin", ("name==1.0", hashlib.sha256(data).hexdigest()))
    monkeypatch.setattr(third_party, "fetched", lambda: tmp_path / "packages")
    monkeypatch.delenv("CMSIS_NN", raising=False)
    monkeypatch.delenv("CMSIS_DSP", raising=False)
    return request.param


def test_a_fetched_package_serves(backend, tmp_path, capsys):
    for _ in range(2):
        assert main(["fetch", backend, "--file", str(tmp_path / "package")]) == 0
        folder = tmp_path / "packages/name-1.0"
        name = registry.external(backend, KERNELS).name
        assert capsys.readouterr().out == f"{name}: {folder}\n"
        assert {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} == set(FILES[backend])
        assert registry.load([backend], root=KERNELS).names == (backend, "ref")
    assert list((tmp_path / "packages").iterdir()) == [folder]


def test_a_package_of_another_checksum_is_not_unpacked(backend, tmp_path, capsys):
    with (tmp_path / "package").open("ab") as file:
        file.write(b"x")
    assert main(["fetch", backend, "--file", str(tmp_path / "package")]) == 1
    assert re.fullmatch(
        r"error: .*package: its SHA-256 is not [0-9a-f]{64}; nothing was unpacked\n", capsys.readouterr().err
    )
    assert not (tmp_path / "packages").exists()


@pytest.mark.parametrize(
    "name, variable, package",
    [
        ("cmsis", "CMSIS_NN", "aidge-export-arm-cortexm==0.2.1"),
        ("cmsis_dsp", "CMSIS_DSP", "cmsisdsp==1.10.3"),
    ],
)
def test_pip_that_finds_no_package_is_one_line(name, variable, package, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(third_party, "fetched", lambda: tmp_path / "packages")
    assert main(["fetch", name]) == 1
    assert capsys.readouterr().err == (
        f"error: cannot get {package} by pip: No matching distribution found for {package}; "
        f"give a file with --file, or set {variable}\n"
    )
    assert not (tmp_path / "packages").exists()


@pytest.mark.parametrize("base, where", [("/usr", "packages"), (None, "cache/autodiff_gen/packages")])
def test_packages_are_in_the_virtual_environment_if_there_is_one(base, where, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr("sys.base_prefix", base or str(tmp_path))
    assert third_party.fetched() == tmp_path / where


def test_packages_are_pinned_and_never_installed():
    for name in FILES:
        requirement, checksum = registry.external(name, KERNELS).pin
        text = (ROOT / "requirements" / registry.external(name, KERNELS).requirements).read_text()
        assert requirement in text and f"--hash=sha256:{checksum}\n" in text


@pytest.mark.parametrize(
    "words, says",
    [
        (["cmsis", "--file", "nowhere.whl"], "cannot get nowhere.whl: No such file or directory"),
        (["armv7em"], "backend 'armv7em' has no third-party sources: there is nothing to fetch"),
        (["cmsys"], "unknown kernel backend 'cmsys'"),
    ],
)
def test_bad_input_of_fetch_is_one_line(words, says, capsys):
    assert main(["fetch", *words]) == 1
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1
