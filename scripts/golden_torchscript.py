#!/usr/bin/env python3
"""Makes testdata/torchscript: small TorchScript files, traced and scripted, with
the logits and input gradients that PyTorch gives for them in double precision.
Parameters and inputs come from the formula of internal/fill.

Needs torch; run by hand:
    python scripts/golden_torchscript.py testdata/torchscript
"""

import io
import json
import math
import os
import platform
import sys
import zipfile

import torch
import torch.nn.functional as F
from torch import nn

from golden_nets import fill, parameter


class Block(nn.Module):
    """ResNet's basic block, with one in-place ReLU for both places."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Block(4, 4, 1))
        self.layer2 = nn.Sequential(Block(4, 6, 2), Block(6, 6, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = ((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, n, c))


class Layer(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, fused)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A small ViT with a class token and learned positions."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.positions = nn.Parameter(torch.zeros(1, 10, 8))
        self.layers = nn.ModuleList([Layer(8, 2, True), Layer(8, 4, False)])
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.act = nn.ReLU(inplace=True)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6())
        self.down = nn.Conv2d(8, 12, 1, stride=2)
        self.pool = nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = self.act(self.norm(self.stem(x)))
        x = self.body(x) + x
        x = self.pool(self.down(x))
        return self.head(x.mean((2, 3)))


class Gated(nn.Module):
    """Depthwise convolutions and squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(3, 12, 1, bias=False), nn.BatchNorm2d(12), nn.SiLU())
        self.depth = nn.Conv2d(12, 12, 3, stride=2, padding=1, groups=12)
        self.fc1 = nn.Conv2d(12, 4, 1)
        self.fc2 = nn.Conv2d(4, 12, 1)
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        x = nn.functional.hardswish(self.depth(self.expand(x)))
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(nn.functional.adaptive_avg_pool2d(x, 1)))))
        x = torch.cat([gate * x, x / 2 - 0.5], 1).chunk(2, 1)[0]
        return self.head(torch.flatten(nn.functional.avg_pool2d(x, x.shape[2]), 1))


class Heads(nn.Module):
    """Attention whose heads are cut out of an axis of their own."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.scale = nn.Parameter(torch.ones(16))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        n, t, c = x.shape
        q, k, v = [part.view(n, t, 2, c // 2).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, 2)]
        y = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(c // 2), -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c)) * self.scale
        return self.head(x[:, 0])


class Multihead(nn.Module):
    """PyTorch's own MultiheadAttention, which moves the rows to the second axis."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = x.flatten(2).transpose(1, 2)
        y = self.norm(x)
        y, _ = self.attention(y, y, y, need_weights=False)
        return self.head((x + y).mean(1))


class Encoder(nn.Module):
    """PyTorch's own layer, of which a trace without autograd holds one op."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, activation="gelu", norm_first=True),
            nn.TransformerEncoderLayer(6, 3, 8, batch_first=True),
        )
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        return self.head(self.layers(x.flatten(2).transpose(1, 2))[:, -1])


class SqueezeExcite(nn.Module):
    """As in the paper's code: linear layers and expand_as."""

    def __init__(self, channels, squeezed):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channels, squeezed, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(squeezed, channels, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


def shuffled(x, groups: int):
    b, c, h, w = x.shape
    return x.view(b, groups, c // groups, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)


class Branches(nn.Module):
    """What is left of the table: gates, two branches, transposed and grouped
    convolutions, other norms, other activations, resizing, shuffled channels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding="same")
        self.norm = nn.GroupNorm(2, 8)
        self.depthwise = nn.Conv2d(8, 8, (3, 1), padding=(1, 0), groups=8, dilation=1)
        self.se = SqueezeExcite(8, 4)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.act = nn.ModuleList([nn.Hardswish(), nn.SiLU(), nn.LeakyReLU(0.1), nn.ELU(0.7), nn.ReLU6()])
        self.dropout = nn.Dropout2d(0.3)
        self.scale = nn.Parameter(torch.ones(16, 1, 1))
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        x = 2 * x / 3 - 0.25
        for i, act in enumerate(self.act):
            if i == 0:
                x = self.norm(self.stem(x))
            x = act(x) + 0.1 * i
        x = self.se(self.depthwise(x))
        left, right = x.chunk(2, dim=1)
        right = F.interpolate(self.up(right), size=x.shape[2:], mode="bilinear", align_corners=False)
        left = F.avg_pool2d(F.pad(left, [1, 0, 0, 1]), 2, stride=1)
        both = [left, right]
        both.append(F.interpolate(F.max_pool2d(x, 2), scale_factor=2.0))
        x = self.dropout(shuffled(torch.cat(both, 1), 2)) * self.scale
        x = torch.tanh(x[:, ::1, 1:-1, :].mean([2, 3], keepdim=True)).squeeze(-1).squeeze(-1)
        return 1.5 - self.fc(x)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.5), nn.Linear(12, 3, bias=False)
        )

    def forward(self, x):
        return self.layers(x)


class Halving(nn.Module):
    """What it does depends on the values."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, 2)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = self.conv(x)
        while bool(x.abs().max() > 0.5):
            x = x / 2
        return self.fc(torch.relu(x).mean([2, 3]))


class Sums(nn.Module):
    """An op that assay has no counterpart of."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(torch.cumsum(x, 1))


class Map(nn.Module):
    """No classifier: an image comes out."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        return self.conv(x)


class Masked(nn.Module):
    """Traced before eval(), so that its dropout never rests."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return F.dropout(self.fc(x), 0.5, True)


def filled(model):
    with torch.no_grad():
        for name, value in model.state_dict().items():
            value.copy_(parameter(name, value.shape))
    return model.eval()


def numbers(tensor):
    return [float(f"{v:.8g}") for v in tensor.detach().flatten().tolist()]


def save(module, path):
    """torch.jit.save, without what only debuggers read."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry), zipfile.ZIP_DEFLATED)


def golden(folder, file, model, row, how, reason=""):
    x = fill("input", [2] + row, math.sqrt(3), 0)
    with torch.set_grad_enabled(how != "traced-without-grad"):
        module = torch.jit.script(model) if how == "scripted" else torch.jit.trace(model, x[:1], check_trace=False)
    save(module, os.path.join(folder, file))
    exact = model.double()
    x = x.double().requires_grad_()
    logits = exact(x)
    (gradient,) = torch.autograd.grad(logits[:, 1].sum(), x)
    entry = {
        "file": file,
        "input": row,
        "blackBox": reason,
        "parameterCount": sum(p.numel() for p in model.parameters()),
        "names": list(model.state_dict()),
        "modules": [
            name
            for name, part in model.named_modules()
            # Native ops hold no dropout.
            if name and not list(part.children()) and (how != "traced-without-grad" or list(part.parameters()))
        ],
        "logits": numbers(logits),
        "gradient": numbers(gradient.flatten()[::13]),
        "gradientSum": gradient.abs().sum().item(),
    }
    model.float()
    return entry


def main(folder):
    os.makedirs(folder, exist_ok=True)
    image = [3, 12, 12]
    files = []
    for name, make, row in [
        ("resnet", ResNet, image),
        ("transformer", Transformer, image),
        ("multihead", Multihead, [6, 2, 3]),
        ("branches", Branches, [3, 8, 8]),
        ("mlp", MLP, [6]),
    ]:
        for how in ("traced", "scripted"):
            files.append(golden(folder, f"{name}-{how}.pt", filled(make()), row, how))
    for name, make, how in [("residual", Residual, "traced"), ("gated", Gated, "scripted"), ("heads", Heads, "scripted")]:
        files.append(golden(folder, f"{name}-{how}.pt", filled(make()), image, how))
    for name, make in [("multihead", Multihead), ("encoder", Encoder)]:
        files.append(golden(folder, f"{name}-native.pt", filled(make()), [6, 2, 3], "traced-without-grad"))
    files.append(golden(folder, "halving-scripted.pt", filled(Halving()), image, "scripted", "aten::abs"))
    files.append(golden(folder, "sums-traced.pt", filled(Sums()), [6], "traced", "aten::cumsum"))
    save(torch.jit.trace(filled(Map()), torch.zeros(1, *image)), os.path.join(folder, "map.pt"))
    save(torch.jit.trace(filled(Masked()), torch.zeros(1, 6), check_trace=False), os.path.join(folder, "masked.pt"))
    torch.save(filled(MLP()).state_dict(), os.path.join(folder, "state.pth"))
    torch.save(filled(Sums()).state_dict(), os.path.join(folder, "legacy.pth"), _use_new_zipfile_serialization=False)
    torch.export.save(torch.export.export(filled(Sums()), (torch.zeros(1, 6),)), os.path.join(folder, "exported.pt2"))
    with open(os.path.join(folder, "golden.json"), "w") as out:
        made = f"scripts/golden_torchscript.py with torch {torch.__version__}, Python {platform.python_version()}"
        out.write(json.dumps({"made": made}, indent=1)[:-2] + ',\n "files": [\n')
        out.write(",\n".join("  " + json.dumps(entry) for entry in files) + "\n ]\n}\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    main(sys.argv[1])
