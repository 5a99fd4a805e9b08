#!/usr/bin/env python3
"""Makes testdata/torchscript: small TorchScript files, traced and scripted, with
the logits and the gradients of the input that PyTorch gives.

Needs torch and numpy; run by hand:
    python scripts/golden_torchscript.py testdata/torchscript
"""

import json
import math
import os
import sys

import torch
from torch import nn

from golden_nets import fill, parameter


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


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.place = nn.Parameter(torch.zeros(1, 17, 16))
        self.norm = nn.LayerNorm(16)
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.scale = nn.Parameter(torch.ones(16))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(n, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c)) * self.scale
        x = x + self.mlp(x)
        return self.head(x[:, 0])


class Heads(Transformer):
    """The same with heads that are cut out of an axis of their own."""

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.place
        n, t, c = x.shape
        q, k, v = (part.view(n, t, 2, c // 2).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, 2))
        y = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(c // 2), -1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c)) * self.scale
        x = x + self.mlp(x)
        return self.head(x[:, 0])


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.LeakyReLU(0.1), nn.Dropout(0.5),
                                    nn.Linear(16, 16), nn.ELU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


class Branches(nn.Module):
    """What a network description cannot say: the way depends on the input."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = self.conv(x)
        if bool((x.sum() > 1e9).item()):
            x = x * 2
        return self.head(torch.erf(x).mean((2, 3)))


CASES = [  # name, module, how, input, black box
    ("residual-traced", Residual, "trace", (3, 16, 16), False),
    ("residual-scripted", Residual, "script", (3, 16, 16), False),
    ("gated-traced", Gated, "trace", (3, 16, 16), False),
    ("gated-scripted", Gated, "script", (3, 16, 16), False),
    ("heads-traced", Heads, "trace", (3, 16, 16), False),
    ("transformer-traced", Transformer, "trace", (3, 16, 16), True),
    ("table-scripted", Table, "script", (6,), False),
    ("branches-scripted", Branches, "script", (3, 16, 16), True),
]


def main(folder):
    os.makedirs(folder, exist_ok=True)
    cases = []
    for name, module, how, shape, black_box in CASES:
        net = module()
        net.load_state_dict({n: parameter(n, v.shape, 1.2).to(v.dtype) for n, v in net.state_dict().items()})
        net.eval()
        x = fill("input", (2, *shape), math.sqrt(3), 0)
        script = torch.jit.script(net) if how == "script" else torch.jit.trace(net, x)
        script.save(os.path.join(folder, name + ".pt"))
        x = x.double().requires_grad_(True)
        logits = net.double()(x)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), x)
        cases.append({"name": name, "input": shape, "blackBox": black_box,
                      "parameters": sorted(net.state_dict()),
                      "logits": logits.tolist(), "gradient": gradient.flatten().tolist()[::37],
                      "gradientSum": gradient.abs().sum().item()})
    with open(os.path.join(folder, "golden.json"), "w") as file:
        file.write('{"script": "scripts/golden_torchscript.py", "torch": "' + torch.__version__ + '", "cases": [\n')
        file.write(",\n".join(json.dumps(case) for case in cases))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
