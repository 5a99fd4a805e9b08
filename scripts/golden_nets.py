#!/usr/bin/env python3
"""Makes testdata/golden_nets.json: logits of every net, with parameters and
inputs from a formula, computed by other implementations in double precision.

Needs torch, torchvision and efficientnet-lite-pytorch; run by hand:
    python scripts/golden_nets.py testdata/golden_nets.json
"""

import json
import math
import platform
import sys
from importlib.metadata import version

import numpy as np
import torch
import torchvision
from torch import nn


def fill(name, shape, scale, offset):
    """The formula that internal/fill documents; returns float32."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % 2**64
    count = math.prod(shape)
    with np.errstate(over="ignore"):
        z = np.uint64(state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    v = (z >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
    return torch.from_numpy((v * scale + offset).astype(np.float32)).reshape(shape)


# Of the products' weights, for nets in which signals die away otherwise.
GAINS = {"vgg": 1.3, "mobilenet-v2": 1.3, "mobilenet-v3": 1.3, "densenet": 1.2, "squeezenet": 1.4,
         "efficientnet-b0": 1.4, "googlenet": 1.4, "inception": 1.5}


def gain(net):
    return next((value for start, value in GAINS.items() if net.startswith(start)), 1)


def parameter(name, shape, gain=1):
    if len(shape) == 0:
        return torch.zeros(())
    if len(shape) > 1:
        return fill(name, shape, gain * math.sqrt(3 / math.prod(shape[1:])), 0)
    if name.endswith((".running_var", ".weight")):
        return fill(name, shape, 0.25, 1)
    return fill(name, shape, 0.1, 0)


class CifarBlock(nn.Module):
    """Two 3x3 convolutions; where the shape changes the shortcut takes every
    second pixel and pads the channels with zeros on both sides."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.extra = after - before

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.extra:
            x = x[:, :, ::2, ::2]
            zeros = torch.zeros(x.shape[0], self.extra // 2, *x.shape[2:], dtype=x.dtype)
            x = torch.cat([zeros, x, zeros], 1)
        return torch.relu(x + y)


class CifarResNet(nn.Module):
    def __init__(self, blocks, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        stage = lambda before, after, stride: nn.Sequential(
            CifarBlock(before, after, stride), *(CifarBlock(after, after, 1) for _ in range(blocks - 1)))
        self.layer1 = stage(16, 16, 1)
        self.layer2 = stage(16, 32, 2)
        self.layer3 = stage(32, 64, 2)
        self.linear = nn.Linear(64, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 convolutions with four times the width at the end; the
    activations after the convolutions, or before them."""

    def __init__(self, before, width, stride, early):
        super().__init__()
        after = 4 * width
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(before if early else width)
        self.bn2 = nn.BatchNorm2d(width)
        self.bn3 = nn.BatchNorm2d(width if early else after)
        self.downsample = None
        if stride != 1 or before != after:
            conv = nn.Conv2d(before, after, 1, stride, bias=False)
            self.downsample = nn.Sequential(conv) if early else nn.Sequential(conv, nn.BatchNorm2d(after))
        self.early = early

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        if self.early:
            y = self.conv1(torch.relu(self.bn1(x)))
            y = self.conv2(torch.relu(self.bn2(y)))
            return self.conv3(torch.relu(self.bn3(y))) + shortcut
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        return torch.relu(self.bn3(self.conv3(y)) + shortcut)


class ResNet164(nn.Module):
    def __init__(self, early):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        if early:
            self.bn = nn.BatchNorm2d(256)
        else:
            self.bn1 = nn.BatchNorm2d(16)
        before = 16
        for stage, width in enumerate((16, 32, 64)):
            blocks = []
            for i in range(18):
                blocks.append(Bottleneck(before, width, 2 if stage and not i else 1, early))
                before = 4 * width
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(256, 10)
        self.early = early

    def forward(self, x):
        x = self.conv1(x)
        if not self.early:
            x = torch.relu(self.bn1(x))
        x = self.layer3(self.layer2(self.layer1(x)))
        if self.early:
            x = torch.relu(self.bn(x))
        return self.fc(nn.functional.avg_pool2d(x, 8).flatten(1))


def cifar_stem():
    """torchvision's ResNet-18 with another beginning."""
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
    net.maxpool = nn.Identity()
    return net


class Cnn3(nn.Module):
    def __init__(self, channels, side):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.conv3 = nn.Conv2d(64, 64, 3, padding=1)
        self.fc = nn.Linear(64 * (side // 4) ** 2, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv3(x)), 2)
        return self.fc(x.flatten(1))


class Mlp(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.fc1 = nn.Linear(features, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 128)
        self.fc4 = nn.Linear(128, classes)

    def forward(self, x):
        for layer in (self.fc1, self.fc2, self.fc3):
            x = torch.relu(layer(x))
        return self.fc4(x)


class Logistic(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.fc = nn.Linear(features, classes)

    def forward(self, x):
        return self.fc(x)


def cases():
    """(net, options, module, shape of one input)."""
    from efficientnet_lite_pytorch import EfficientNet

    for depth in (18, 34, 50, 101):
        yield f"resnet{depth}", {}, getattr(torchvision.models, f"resnet{depth}")(), (3, 224, 224)
    yield "resnet18", {"classes": 7}, torchvision.models.resnet18(num_classes=7), (3, 224, 224)
    yield "resnet18-cifar", {}, cifar_stem(), (3, 32, 32)
    for name in ("vgg11", "vgg11_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "alexnet", "mobilenet_v2",
                 "mobilenet_v3_small", "mobilenet_v3_large", "densenet121", "densenet161", "squeezenet1_1",
                 "efficientnet_b0", "convnext_tiny", "vit_b_16"):
        yield name.replace("_", "-"), {}, getattr(torchvision.models, name)(), (3, 224, 224)
    # As their published files are used: without auxiliary heads.
    options = {"aux_logits": False, "transform_input": True, "init_weights": False}
    yield "googlenet", {}, torchvision.models.googlenet(**options), (3, 224, 224)
    yield "inception-v3", {}, torchvision.models.inception_v3(**options), (3, 299, 299)
    yield "squeezenet1-1", {"classes": 7}, torchvision.models.squeezenet1_1(num_classes=7), (3, 224, 224)
    yield "vit-b-16", {"classes": 7}, torchvision.models.vit_b_16(num_classes=7), (3, 224, 224)
    yield "cifar-resnet164", {}, ResNet164(False), (3, 32, 32)
    yield "cifar-preresnet164", {}, ResNet164(True), (3, 32, 32)
    yield "efficientnet-lite0", {}, EfficientNet.from_name("efficientnet-lite0"), (3, 224, 224)
    for depth in (20, 32, 44, 56, 110):
        yield f"cifar-resnet{depth}", {}, CifarResNet((depth - 2) // 6), (3, 32, 32)
    yield "cifar-resnet20", {"classes": 100}, CifarResNet(3, 100), (3, 32, 32)
    yield "cnn3", {}, Cnn3(1, 8), (1, 8, 8)
    yield "cnn3-fashion", {}, Cnn3(1, 28), (1, 28, 28)
    yield "cnn3-cifar", {}, Cnn3(3, 32), (3, 32, 32)
    yield "mlp", {}, Mlp(64, 10), (64,)
    yield "mlp", {"classes": 2, "features": 30}, Mlp(30, 2), (30,)
    yield "logistic", {}, Logistic(64, 10), (64,)
    yield "logistic", {"classes": 3, "features": 13}, Logistic(13, 3), (13,)


def main(path):
    nets = []
    for net, options, module, shape in cases():
        state = module.state_dict()
        module.load_state_dict({name: parameter(name, value.shape, gain(net)).to(value.dtype)
                                for name, value in state.items()})
        x = fill("input", (2, *shape), math.sqrt(3), 0).double()
        with torch.no_grad():
            logits = module.double().eval()(x)
        print(f"{net} {options}: largest {logits.abs().max():.4g}, spread {logits.std(1).tolist()},"
              f" rows differ by {(logits[0] - logits[1]).abs().max():.4g}")
        nets.append({"net": net, **options, **({"gain": gain(net)} if gain(net) != 1 else {}), "input": list(shape),
                     "parameters": sum(p.numel() for p in module.parameters()),
                     "logits": [[float(f"{v:.7g}") for v in row] for row in logits.tolist()]})
    versions = {"python": platform.python_version(), "torch": torch.__version__,
                "torchvision": torchvision.__version__, "numpy": np.__version__,
                "efficientnet-lite-pytorch": version("efficientnet-lite-pytorch")}
    with open(path, "w") as file:
        file.write('{"script": "scripts/golden_nets.py", "versions": ' + json.dumps(versions) + ', "nets": [\n')
        file.write(",\n".join(json.dumps(net, separators=(",", ":")) for net in nets))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
