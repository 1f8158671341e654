"""Programs of PyTorch of signals: complex numbers, spectra, sequences with CTC, and images that are sampled."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_changes import older_than_needed
from torch_program import BATCH, LABEL, WORDS, Program, X, check_training, two

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def transcribed(m, x, words):
    """CTC of sequences of six, with two letters in each."""
    h = m["letters"](m["gru"](x[:, :, None])[0]).log_softmax(2)
    n = x.shape[0]
    return F.ctc_loss(h.transpose(0, 1), words[:, :2] + 1, (6,) * n, (2,) * n)


def spatial_transformer(m, x, label):
    theta = m["where"](x).view(-1, 2, 3)
    image = x.view(-1, 1, 3, 4)
    shown = F.grid_sample(image, F.affine_grid(theta, image.size(), align_corners=False), align_corners=False)
    return F.cross_entropy(m["net"](shown.flatten(1)), label)


def fourier_operator(m, x, target):
    """Three frequencies of a signal are multiplied by complex weights."""
    spectrum = torch.fft.rfft(x)
    filtered = torch.zeros(x.shape[0], 7, dtype=torch.cfloat)
    filtered[:, :3] = spectrum[:, :3] * torch.view_as_complex(m["weights"].weight)
    return F.mse_loss(m["net"](torch.fft.irfft(filtered, n=12) + x), target)


def spectral_loss(m, x, target):
    """Magnitudes of short-time spectra, of signals that are reflected at their ends."""
    spectra = [
        torch.stft(z, 4, 2, window=torch.hann_window(4), return_complex=True).abs().clamp(min=0.1)
        for z in (m["net"](x), target)
    ]
    return F.l1_loss(spectra[0].log(), spectra[1].log())


def spectra_of_silence(m, x, target):
    """Magnitudes that are 0, with numbers of the program that are complex."""
    spectrum = torch.fft.rfft(torch.relu(m["net"](x)) * (target > 9.0)) * (2 + 1j) + 0j
    return spectrum.abs().sum() + ((torch.fft.rfft(m["net"](x)) - 1.0) / 2j).abs().mean()


def rotary(m, words):
    """RoPE as complex numbers, which the program holds."""
    x = m["embedding"](words)
    rotated = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * ROTATIONS
    y = torch.view_as_real(rotated).flatten(2)
    weights = F.softmax(y @ y.transpose(1, 2), -1)
    return F.cross_entropy(m["out"]((weights @ x)[:, :-1]).flatten(0, 1), words[:, 1:].flatten())


ROTATIONS = torch.polar(torch.ones(6, 4), torch.outer(torch.arange(6.0), 0.1 ** torch.arange(4.0)))

PROGRAMS = {
    "transcribed": (
        transcribed,
        [X, WORDS],
        lambda: {"gru": nn.GRU(1, 4, batch_first=True), "letters": nn.Linear(4, 6)},
    ),
    "spatial transformer": (
        spatial_transformer,
        [(12,), LABEL],
        lambda: {"where": nn.Linear(12, 6), "net": nn.Linear(12, 3)},
    ),
    "Fourier operator": (
        fourier_operator,
        [(12,), (3,)],
        lambda: {"weights": nn.Linear(2, 3, bias=False), "net": two(12)},
    ),
    "spectral loss": (spectral_loss, [(12,), (12,)], lambda: {"net": nn.Linear(12, 12)}),
    "spectra of silence": (spectra_of_silence, [(12,), (12,)], lambda: {"net": nn.Linear(12, 12)}),
    "rotary": (rotary, [WORDS], lambda: {"embedding": nn.Embedding(5, 8), "out": nn.Linear(8, 5)}),
}
FIXED = ("transcribed",)  # in these the batch is a number


@pytest.mark.parametrize("name", [n for n in PROGRAMS if not older_than_needed(n)])
def test_the_generated_c_trains_as_the_module(name):
    check_training(*PROGRAMS[name], fixed_batch=name in FIXED)


def test_a_spectrum_over_the_batch_makes_it_a_number():
    module = Program(lambda m, x: torch.fft.fft(m["net"](x), dim=0).abs().sum() + x.shape[0], net=two())
    assert ag.from_torch(module, (BATCH, 6)).fixed_batch == BATCH
