"""Networks as they are written for PyTorch: each function gets its torch, nn and F, and is run with both."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import check_layer

import autodiff_gen as ag
from autodiff_gen import functional, nn, optim


def residual(torch: Any, nn: Any, F: Any) -> Any:
    """A ResNet's block, with squeeze and excitation, and torchvision's initialisation."""

    class Block(nn.Module):  # type: ignore[misc]
        expansion = 1

        def __init__(self, inplanes: int, planes: int, stride: int = 1) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(planes, planes, kernel_size=3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)
            self.fc = nn.Conv2d(planes, planes, 1)
            self.downsample = None
            if stride != 1 or inplanes != planes:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inplanes, planes, 1, stride), nn.BatchNorm2d(planes)
                )

        def forward(self, x: Any) -> Any:
            identity = x if self.downsample is None else self.downsample(x)
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            scale = torch.sigmoid(self.fc(F.adaptive_avg_pool2d(out, 1)))
            out = out * scale
            out = out + identity
            return self.relu(out)

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer1 = self._make_layer(3, 4, blocks=2, stride=2)
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(4 * Block.expansion, 3)
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

        def _make_layer(self, inplanes: int, planes: int, blocks: int, stride: int) -> Any:
            layers = [Block(inplanes, planes, stride)]
            for _ in range(1, blocks):
                layers.append(Block(planes, planes))
            return nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            x = self.layer1(x)
            x = self.avgpool(x)
            x = torch.flatten(x, 1)
            return self.fc(x)

    return Net()


def u_net(torch: Any, nn: Any, F: Any) -> Any:
    """Skip connections, upsampling by convolution and by interpolation, and a ModuleList."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self, features: tuple[int, ...] = (4, 6)) -> None:
            super().__init__()
            self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
            channels = 2
            for feature in features:
                self.downs.append(
                    nn.Sequential(nn.Conv2d(channels, feature, 3, padding="same"), nn.PReLU(feature))
                )
                channels = feature
            for feature in reversed(features):
                self.ups.append(nn.ConvTranspose2d(channels, feature, kernel_size=2, stride=2))
                self.ups.append(nn.Conv2d(2 * feature, feature, 1))
                channels = feature
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.head = nn.Sequential(nn.Conv2d(channels, 4, 1), nn.PixelShuffle(2))

        def forward(self, x: Any) -> Any:
            skips = []
            for down in self.downs:
                x = down(x)
                skips.append(x)
                x = F.max_pool2d(x, 2)
            for i, skip in enumerate(skips[::-1]):
                x = self.ups[2 * i](x)
                if x.shape[2:] != skip.shape[2:]:
                    x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False)
                x = self.ups[2 * i + 1](torch.cat((skip, x), dim=1))
            return self.head(self.up(x)).mean(dim=(2, 3))

    return Net()


def patches(torch: Any, nn: Any, F: Any) -> Any:
    """A vision transformer: parameters of the model's own, expand, cat, and the first token's output."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self, dim: int = 8) -> None:
            super().__init__()
            self.patch_embed = nn.Conv2d(2, dim, kernel_size=2, stride=2)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.pos_embed = nn.Parameter(torch.zeros(1, 5, dim))
            nn.init.trunc_normal_(self.pos_embed, std=0.02)
            self.qkv = nn.Linear(dim, 3 * dim)
            self.heads, self.norm = 2, nn.LayerNorm(dim)
            self.mlp = nn.Sequential(nn.Linear(dim, 12), nn.GELU(), nn.Dropout(0.1), nn.Linear(12, dim))
            self.head = nn.Linear(dim, 3)

        def forward(self, x: Any) -> Any:
            B = x.shape[0]
            x = self.patch_embed(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.cls_token.expand(B, -1, -1), x], dim=1) + self.pos_embed
            B, N, C = x.shape
            qkv = self.qkv(self.norm(x)).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            attn = (q @ k.transpose(-2, -1)) * (C // self.heads) ** -0.5
            x = x + (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C)
            x = x + self.mlp(self.norm(x))
            return self.head(x[:, 0])

    return Net()


def recurrent(torch: Any, nn: Any, F: Any) -> Any:
    """A bidirectional GRU whose outputs are pooled with weights, the last states, and a cell in a loop."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(3, 4, num_layers=2, batch_first=True, bidirectional=True)
            self.attention = nn.Linear(8, 1, bias=False)
            self.cell = nn.LSTMCell(8, 5)
            self.head = nn.Linear(5 + 8, 2)

        def forward(self, x: Any) -> Any:
            out, h_n = self.gru(x)
            weights = F.softmax(self.attention(out).squeeze(-1), dim=1)
            pooled = torch.bmm(weights.unsqueeze(1), out).squeeze(1)
            h = torch.zeros(x.size(0), 5) + 0 * pooled[:, :5]
            c = torch.zeros_like(h)
            for t in range(out.size(1)):
                h, c = self.cell(out[:, t], (h, c))
            return self.head(torch.cat([h, pooled], dim=-1)) + h_n[-1].mean(-1, keepdim=True)

    return Net()


def experts(torch: Any, nn: Any, F: Any) -> Any:
    """A mixture: the scores of the two best of three experts, by topk and indices."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(4, 3)
            self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 5), nn.Tanh()) for _ in range(3)])
            self.register_buffer("order", torch.arange(4, -1, -1))

        def forward(self, x: Any) -> Any:
            scores, chosen = torch.topk(self.gate(x), k=2, dim=-1)
            weights = F.softmax(scores, dim=-1)
            outputs = torch.stack([e(x) for e in self.experts], dim=1)
            picked = torch.gather(outputs, 1, chosen.unsqueeze(-1).expand(-1, -1, 5))
            y = torch.einsum("bk,bkd->bd", weights, picked)
            return F.normalize(y, dim=-1) + torch.sort(y, dim=1, descending=True)[0][:, self.order]

    return Net()


def autoencoder(torch: Any, nn: Any, F: Any) -> Any:
    """Variances and means by chunk, a depthwise convolution, GLU, and padding."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(
                nn.ConstantPad1d((1, 0), 0.0),
                nn.Conv1d(2, 8, 3, stride=2),
                nn.GLU(dim=1),
                nn.Conv1d(4, 4, 3, groups=4),
            )
            self.decoder = nn.Sequential(
                nn.ConvTranspose1d(2, 3, 4, stride=2), nn.LeakyReLU(0.2), nn.ConvTranspose1d(3, 2, 3)
            )
            self.log_scale = nn.Parameter(torch.zeros(1))

        def forward(self, x: Any) -> Any:
            mean, log_var = self.encoder(x).chunk(2, dim=1)
            kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp(), dim=(1, 2))
            y = torch.tanh(self.decoder(mean)) * self.log_scale.exp()
            y = F.pad(y, (0, x.shape[-1] - y.shape[-1]))
            return (y - x).abs().mean(dim=(1, 2)) + kl.clamp(min=0.1)

    return Net()


NETWORKS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (residual, [(2, 3, 6, 6)]),
    (u_net, [(2, 2, 6, 8)]),
    (patches, [(2, 2, 4, 4)]),
    (recurrent, [(2, 5, 3)]),
    (experts, [(5, 4)]),
    (autoencoder, [(2, 2, 12)]),
]


def in_float64(torch: Any) -> Any:
    """PyTorch with numbers in float64 where it creates some."""
    changed = types.SimpleNamespace(**{k: v for k, v in vars(torch).items() if not k.startswith("__")})
    changed.zeros = lambda *size: torch.zeros(*size, dtype=torch.float64)
    return changed


@pytest.mark.torch
@pytest.mark.parametrize("network, shapes", NETWORKS, ids=[f.__name__ for f, _ in NETWORKS])
def test_a_network_written_for_torch(network: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    import torch

    def make(given: Any) -> Any:
        if given is nn:
            return network(functional, nn, functional)
        return network(in_float64(torch), torch.nn, torch.nn.functional)

    check_layer(make, shapes)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("network, shapes", NETWORKS, ids=[f.__name__ for f, _ in NETWORKS])
def test_it_trains_as_in_torch(network: Callable[..., Any], shapes: list[tuple[int, ...]]) -> None:
    """Two steps of generated C for a batch that varies, layers in evaluation mode."""
    import torch

    twin = network(torch, torch.nn, torch.nn.functional).eval()
    model = ag.Model.supervised(
        network(functional, nn, functional).eval(), shapes[0], nn.MSELoss(), optim.SGD(lr=0.05)
    )
    trainer = model.on_host()
    trainer.load_state_dict(twin.state_dict())
    step = torch.optim.SGD(twin.parameters(), lr=0.05)
    rng = np.random.default_rng(2)
    for rows in (shapes[0][0], 1):
        x = rng.normal(size=(rows, *shapes[0][1:])).astype(np.float32)
        y = twin(torch.tensor(x))
        np.testing.assert_allclose(trainer.predict(x), y.detach().numpy(), rtol=1e-4, atol=1e-5)
        loss = torch.nn.functional.mse_loss(y, torch.zeros_like(y))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, np.zeros(y.shape, np.float32)) == pytest.approx(loss.item(), rel=1e-5)
    for name, value in trainer.state_dict().items():
        np.testing.assert_allclose(value, twin.state_dict()[name].numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
