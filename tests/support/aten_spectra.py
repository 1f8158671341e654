"""Complex numbers and spectra of PyTorch."""

import torch


def complex_numbers(z, a):
    quotient = (z / (z * z + torch.complex(torch.full((6,), 20.0), torch.zeros(6))) - z / 2.0).imag
    products = (z @ torch.complex(a, -a)).real + torch.einsum("nk,kj->nj", z, torch.complex(a, a)).imag
    moved = torch.cat([z[:, 3:], z[:, :3].flip(1)], 1).unsqueeze(1).transpose(1, 2).sum(2)
    return (
        z.abs()
        + z.angle()
        + quotient
        + products
        + torch.exp(0.1 * z).real * torch.real(moved)
        + torch.imag(-z)
    )


# The arguments: test_aten.py.
SPECTRA = {
    "spectra": lambda x, y, p, i, s, k, m: (
        (torch.fft.fft(x) * torch.conj_physical(torch.fft.ifft(y)).conj().resolve_conj().conj()).real
        + torch.fft.irfft(y, n=6)
        + torch.fft.irfft(torch.fft.rfft(x, norm="ortho"), n=6) * torch.fft.rfft(y, n=10, norm="forward").imag
        + torch.fft.ifft(torch.fft.fft(s, dim=1), norm="ortho").real.sum((1, 2), keepdim=True)[:, 0]
    ),
    "spectra along several axes": lambda x, y, p, i, s, k, m: (
        torch.fft.ifft2(torch.fft.fft2(i) * torch.fft.fftn(i.flip(3), dim=(1, 2, 3), norm="ortho")).real
        + torch.fft.irfft2(torch.fft.rfft2(i, (6, 7), norm="forward"), (8, 8)).square()
        + torch.fft.irfftn(torch.fft.rfftn(i, (3, 5)) * torch.fft.ifftn(i, (3, 3)), (8, 8), (3, 2))
    ),
    "short-time spectra": lambda x, y, p, i, s, k, m: (
        torch.stft(i.flatten(1)[:, :20], 8, 4, window=torch.hann_window(8), return_complex=True)
        .abs()
        .sum(2)[:, :1]
        + torch.stft(
            y,
            4,
            1,
            window=torch.hamming_window(4, periodic=False),
            center=False,
            normalized=True,
            onesided=False,
            return_complex=True,
        ).imag.sum((1, 2))[:, None]
    ),
    "rotations": lambda x, y, p, i, s, k, m: torch.view_as_real(
        torch.view_as_complex(x.reshape(-1, 3, 2)) * torch.polar(p[:, :3], y[:, :3])
    ).flatten(1),
    "complex numbers": lambda x, y, p, i, s, k, m: complex_numbers(torch.complex(x, y), m.square),
}
