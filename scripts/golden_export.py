#!/usr/bin/env python3
"""Makes testdata/own_models: five models as net files of export_torch.py, and
logits.json, what PyTorch computes of them in double precision.

Needs torch; run by hand:
    python scripts/golden_export.py testdata/own_models
Parameters and inputs come from the formula of golden_nets.py.
"""

import copy
import json
import math
import os
import platform
import sys

import torch
from torch import nn
from torch.nn import functional as F

from export_torch import export
from golden_nets import fill, parameter


class UNetHead(nn.Module):
    """A U-Net-like encoder and decoder, then a head on the finest maps."""

    def __init__(self, classes=5):
        super().__init__()
        self.down1, self.down2 = self.stage(3, 6), self.stage(6, 8)
        self.bottom = self.stage(8, 10)
        self.up2 = nn.ConvTranspose2d(10, 8, 2, stride=2)
        self.merge2 = self.stage(16, 8)
        self.merge1 = self.stage(14, 6)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(6, classes)

    def stage(self, before, after):
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1, bias=False), nn.GroupNorm(2, after), nn.LeakyReLU(0.1, inplace=True)
        )

    def forward(self, x):
        fine = self.down1(x)
        middle = self.down2(self.pool(fine))
        x = self.up2(self.bottom(self.pool(middle)))
        x = self.merge2(torch.cat([x, middle], dim=1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.merge1(torch.cat([x, fine], dim=1))
        return self.head(x.mean(dim=(2, 3)))


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels):
        super().__init__()
        self.reduce = nn.Conv2d(channels, channels // 4, 1)
        self.expand = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        gate = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.expand(F.relu(self.reduce(gate))))


class DepthwiseBlock(nn.Module):
    def __init__(self, channels, kernel, dilation):
        super().__init__()
        self.expand = nn.Conv2d(channels, 2 * channels, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(2 * channels, momentum=0.01)
        self.depthwise = nn.Conv2d(
            2 * channels, 2 * channels, kernel, padding="same", dilation=dilation, groups=2 * channels, bias=False
        )
        self.norm2 = nn.BatchNorm2d(2 * channels, eps=1e-3)
        self.gate = Gate(2 * channels)
        self.project = nn.Conv2d(2 * channels, channels, 1)

    def forward(self, x):
        y = F.hardswish(self.norm1(self.expand(x)))
        y = F.relu6(self.norm2(self.depthwise(y)))
        return x + self.project(self.gate(y))


class DepthwiseNet(nn.Module):
    """A depthwise net with gates that normalises its input itself."""

    def __init__(self, classes=4):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.1, -0.2, 0.3]).view(1, 3, 1, 1), persistent=False)
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(DepthwiseBlock(8, (1, 5), 1), DepthwiseBlock(8, (5, 1), 1), DepthwiseBlock(8, 3, 2))
        self.classifier = nn.Sequential(
            nn.AdaptiveAvgPool2d((2, 1)), nn.Flatten(), nn.Dropout(0.2), nn.Linear(16, classes)
        )

    def forward(self, x):
        x = (x - self.mean) / torch.tensor([0.5, 0.6, 0.7])[None, :, None, None]
        return self.classifier(self.blocks(self.stem(x)))


class Attention(nn.Module):
    """Attention written out, with a learnt bias for each pair of tokens."""

    def __init__(self, width, heads, tokens):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.bias = nn.Parameter(torch.zeros(heads, tokens, tokens))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5 + self.bias
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(n, tokens, width))


class SmallTransformer(nn.Module):
    """Patches, a class token, positions, one encoder layer of PyTorch's and one
    written out with layer scale."""

    def __init__(self, classes=6, width=12, heads=3):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, 10, width))
        self.encoder = nn.TransformerEncoderLayer(
            width, heads, 16, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, 10)
        self.scale = nn.Parameter(torch.ones(width))
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Dropout(0.1), nn.Linear(16, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        x = self.encoder(x)
        x = x + self.scale * self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.head(x[:, 0])


class TwoBranch(nn.Module):
    """Two branches on parts of the channels that share a convolution, then
    joined, shuffled and pooled to the largest value."""

    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, bias=False), nn.ELU(0.5))
        self.shared = nn.Conv2d(4, 4, 3, padding=1)
        self.left = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.right = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.slope = nn.PReLU(8)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        left, right = self.stem(F.pad(x, (0, 1, 0, 1))).chunk(2, dim=1)
        left = self.left(torch.tanh(self.shared(left)))
        right = self.right(torch.sigmoid(self.shared(right)))
        x = torch.cat([left, right], dim=1)
        n, c, h, w = x.shape
        x = self.slope(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w) - 0.25)
        return self.fc(torch.cat([x.amax(dim=(2, 3)), x.mean(dim=(2, 3))], dim=1))


class Columns(nn.Module):
    """An MLP with dropout and batch norm."""

    def __init__(self, columns=12, classes=2):
        super().__init__()
        self.layers = nn.Sequential()
        for i, width in enumerate((20, 10)):
            self.layers.append(nn.Linear(columns, width, bias=i > 0))
            self.layers.append(nn.BatchNorm1d(width))
            self.layers.append(nn.SELU() if i else nn.ReLU())
            self.layers.append(nn.Dropout(0.5))
            columns = width
        self.out = nn.Linear(columns, classes)

    def forward(self, x):
        return self.out(self.layers(x))


MODELS = {
    "unet_head": (
        UNetHead,
        (3, 16, 16),
        {"resize": "squash", "height": 16, "width": 16, "channels": 3, "mean": [0.5] * 3, "std": [0.25] * 3},
    ),
    "depthwise": (DepthwiseNet, (3, 18, 14), "cifar10-half"),
    "transformer": (SmallTransformer, (1, 12, 12), "digits"),
    "two_branch": (TwoBranch, (1, 11, 11), "mnist"),
    "columns": (Columns, (12,), "table"),
}


def main(folder):
    os.makedirs(folder, exist_ok=True)
    models = []
    for name, (make, shape, preset) in MODELS.items():
        model = make().eval()
        model.load_state_dict(
            {key: parameter(key, value.shape).to(value.dtype) for key, value in model.state_dict().items()}
        )
        export(
            model,
            torch.zeros(2, *shape),
            os.path.join(folder, name),
            preset=preset,
            class_names=["no", "yes"] if name == "columns" else None,
        )
        x = fill("input", (2, *shape), math.sqrt(3), 0).double()
        with torch.no_grad():
            logits = copy.deepcopy(model).double()(x)
        print(f"{name}: largest {logits.abs().max():.4g}, rows differ by {(logits[0] - logits[1]).abs().max():.4g}")
        models.append(
            {
                "model": name,
                "input": list(shape),
                "parameters": sum(p.numel() for p in model.parameters()),
                "logits": logits.tolist(),
            }
        )
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with open(os.path.join(folder, "logits.json"), "w") as file:
        file.write('{"script": "scripts/golden_export.py", "versions": ' + json.dumps(versions) + ', "models": [\n')
        file.write(",\n".join(json.dumps(model) for model in models))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
