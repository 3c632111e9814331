"""Small networks that the tests share; their gains, shifts and statistics are drawn at order 1."""

import torch
from torch import nn


def conv_bn(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, inner: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.main = nn.Sequential(
            *conv_bn(inputs, inner), nn.ReLU(), *conv_bn(inner, inner, 3, stride), nn.ReLU(), *conv_bn(inner, outputs)
        )
        projects = stride > 1 or inputs != outputs
        self.shortcut = nn.Sequential(*conv_bn(inputs, outputs, 1, stride)) if projects else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.main(x) + self.shortcut(x))


class TinyResNet(nn.Module):
    """Stem, two stages of 2 and 3 bottlenecks, classifier: 32x32 images, 5 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_bn(3, 16, 3, 2), nn.ReLU())
        self.stages = nn.Sequential(
            Bottleneck(16, 16, 32), Bottleneck(32, 16, 32), Bottleneck(32, 24, 48, 2),
            Bottleneck(48, 24, 48), Bottleneck(48, 24, 48),
        )  # fmt: skip
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.stages(self.stem(x)))


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2d(channels, 8, 1), nn.Conv2d(8, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3), keepdim=True)))))


class InvertedResidual(nn.Module):
    def __init__(
        self, inputs: int, inner: int, outputs: int, stride: int = 1, gate: bool = False, kernel: int = 3
    ) -> None:
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        self.main = nn.Sequential(
            *conv_bn(inputs, inner), nn.ReLU6(), *conv_bn(inner, inner, kernel, stride, inner), nn.ReLU6(),
            Gate(inner) if gate else nn.Identity(), *conv_bn(inner, outputs),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.main(x) if self.adds else self.main(x)


class TinyMobileNet(nn.Module):
    """Inverted residuals with and without a skip, one with a gate; 32x32 images, 5 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *conv_bn(3, 16, 3, 2), nn.ReLU6(),
            InvertedResidual(16, 64, 24, 2, kernel=5), InvertedResidual(24, 96, 24),
            InvertedResidual(24, 96, 24, gate=True, kernel=7),
            *conv_bn(24, 64), nn.ReLU6(),
        )  # fmt: skip
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x).mean((2, 3)))


class Grouped(nn.Module):
    """Grouped convolutions, a concatenation and a flattened map, which need index sets that are no prefixes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_bn(3, 32, 3, 4), nn.ReLU())
        self.main = nn.Sequential(
            *conv_bn(32, 64), nn.ReLU(), *conv_bn(64, 64, 3, groups=8), nn.ReLU(), *conv_bn(64, 32)
        )
        self.left, self.right = nn.Conv2d(32, 16, 1), nn.Conv2d(32, 24, 3, padding=1)
        self.mix = nn.Conv2d(40, 8, 1)
        self.head = nn.Linear(8 * 8 * 8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.relu(x + self.main(x))
        return self.head(self.mix(torch.cat([self.left(x), self.right(x)], 1)).flatten(1))


class SelfAttention(nn.Module):
    """Attention with a fused projection, values that may be wider than keys, and an optional bias by position."""

    def __init__(self, width: int, heads: int, key: int, value: int, positions: int = 0) -> None:
        super().__init__()
        self.heads, self.sizes = heads, (key, key, value)
        self.project, self.out = nn.Linear(width, heads * sum(self.sizes)), nn.Linear(heads * value, width)
        self.bias = nn.Parameter(torch.randn(heads, positions, positions)) if positions else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, _ = x.shape
        parts = self.project(x).view(n, length, self.heads, -1).split(self.sizes, dim=3)
        q, k, v = (part.transpose(1, 2) for part in parts)
        scores = q @ k.transpose(2, 3) * self.sizes[0] ** -0.5
        scores = scores if self.bias is None else scores + self.bias
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, -1))


class TinyTransformer(nn.Module):
    """Patches, a class token, position embeddings, three pre-norm blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 24, 8, 8)
        self.token, self.positions = nn.Parameter(torch.randn(1, 1, 24)), nn.Parameter(torch.randn(1, 17, 24))
        self.attention = nn.ModuleList(SelfAttention(24, 4, 8, 16, 17) for _ in range(3))
        self.feed_forward = nn.ModuleList(
            nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.Linear(96, 24)) for _ in range(3)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(24) for _ in range(7))
        self.head = nn.Linear(24, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for i, (attention, feed_forward) in enumerate(zip(self.attention, self.feed_forward, strict=True)):
            x = x + attention(self.norms[2 * i](x))
            x = x + feed_forward(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x)[:, 0])


class Shuffled(nn.Module):
    """Channel shuffle and split: half of the channels pass a block untouched (Ma et al., 2018)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_bn(3, 32, 3, 2), nn.ReLU())
        self.branches = nn.ModuleList(
            nn.Sequential(*conv_bn(16, 24), nn.ReLU(), *conv_bn(24, 24, 3, groups=24), *conv_bn(24, 16), nn.ReLU())
            for _ in range(3)
        )
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for branch in self.branches:
            kept, changed = x.chunk(2, 1)
            x = torch.cat([kept, branch(changed)], 1)
            n, _, h, w = x.shape
            x = x.view(n, 2, 16, h, w).transpose(1, 2).reshape(n, 32, h, w)
        return self.head(x.mean((2, 3)))


NETWORKS = {"resnet": TinyResNet, "mobilenet": TinyMobileNet, "grouped": Grouped, "transformer": TinyTransformer}
MORE_NETWORKS = {"shuffled": Shuffled}
SPACES = {
    "resnet": {
        "divisor": 4, "resolution": [20, 24, 32], "depth": [0, 1], "width": [0.5, 0.75, 1.0],
        "blocks": {"Bottleneck": {"expand_ratio": [0.25, 0.375, 0.5]}},
    },
    "mobilenet": {
        "divisor": 4, "resolution": [24, 32], "depth": [0, 1, 2], "width": [0.5, 1.0],
        "blocks": {
            "InvertedResidual": {"expand_ratio": [2, 3, 4], "kernel_size": [3, 5]},
            "block3": {"kernel_size": [3, 5, 7]},
        },
    },
    "transformer": {
        "divisor": 4, "resolution": [16, 24, 32], "depth": [0, 1, 2], "width": [0.5, 1.0],
        "blocks": {"TransformerBlock": {"heads": [1, 2, 4], "v_scale": [1.0, 1.5, 2.0], "expand_ratio": [1, 2, 4]}},
    },
    "grouped": {"width": [0.5, 1.0], "blocks": {"Bottleneck": {"expand_ratio": [0.5, 1.0, 2.0]}}},
}  # fmt: skip


def make(name: str, seed: int = 0) -> nn.Module:
    """A network whose parameters and statistics are all of order 1, so that wrong slices show."""
    torch.manual_seed(seed)
    network = (NETWORKS | MORE_NETWORKS)[name]().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
        elif isinstance(module, nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    return network


class Waves(nn.Module):
    """Two convolutions around the arc tangent, which has no rule."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.second(torch.atan(self.first(x)))))


class Inside(nn.Module):
    """Turns colours round and standardises the image itself, which ncnn crashes over once it is converted."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((1, 3, 1, 1), 0.5))
        self.stem, self.head = nn.Conv2d(3, 8, 3, 2, 1), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.stem((x[:, [2, 1, 0]] / 2 - self.mean) / self.mean)).mean((2, 3)))
