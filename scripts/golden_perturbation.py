#!/usr/bin/env python3
"""Makes testdata/golden_perturbation.json: maps of RISE and LIME on the samples
that assay draws, and of the filters, from other implementations in float64.

Philox is written again in Python; the net is PyTorch's, enlarging and filters are
SciPy's, the lasso is scikit-learn's. Run by hand:
    python scripts/golden_perturbation.py testdata/golden_perturbation.json
"""

import json
import sys
from importlib.metadata import version

import numpy as np
import scipy.ndimage
import torch
from sklearn.linear_model import Lasso

from golden_nets import fill, parameter

CHANNELS, HEIGHT, WIDTH = 3, 13, 11
KEYS = [11, 12]
TARGETS = [2, 1]


def philox(key, low, high):
    """Philox4x32-10 of Salmon et al. 2011: four 32-bit words."""
    c = [low % 2**32, low >> 32, high % 2**32, high >> 32]
    k = [key % 2**32, key >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q % 2**32, (p >> 32) ^ c[3] ^ k[1], p % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def uniform(key, index, draw):
    words = philox(key, index, draw)
    return ((words[0] | words[1] << 32) >> 11) * 2.0**-53


def below(key, index, draw, n):
    """Lemire's unbiased integer in 0..n-1."""
    attempt = 0
    while True:
        words = philox(key, index, draw | attempt << 32)
        for word in (words[0] | words[1] << 32, words[2] | words[3] << 32):
            if word * n % 2**64 >= 2**64 % n:
                return word * n >> 64
        attempt += 1


class Net(torch.nn.Module):
    """image_net of csrc/test/explaining.h."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(CHANNELS, 8, 3, 1, 1, bias=False)
        self.conv2 = torch.nn.Conv2d(8, 8, 3, 2, bias=False)
        self.fc = torch.nn.Linear(32, 4)
        self.load_state_dict({n: parameter(n, p.shape) for n, p in self.named_parameters()})

    def forward(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        return self.fc(torch.nn.functional.adaptive_avg_pool2d(x, 2).flatten(1))


def rise_mask(key, sample, cells, p):
    grid = np.array([[uniform(key, sample, r * cells + c) < p for c in range(cells)] for r in range(cells)], float)
    starts, at = [], []
    for axis, size in enumerate((HEIGHT, WIDTH)):
        cell = -(-size // cells)
        start = below(key, sample, cells * cells + axis, cell)
        at.append((np.arange(start, start + size) + 0.5) * cells / ((cells + 1) * cell) - 0.5)
        starts.append(start)
    # mirror: about the centre of the outermost cell.
    return scipy.ndimage.map_coordinates(grid, np.meshgrid(*at, indexing="ij"), order=1, mode="mirror")


def rise(net, x, target, key, samples, cells, p, torchray, baseline):
    total = np.zeros((HEIGHT, WIDTH))
    for sample in range(samples):
        mask = rise_mask(key, sample, cells, p)
        m = torch.from_numpy(mask)
        with torch.no_grad():
            logits = net((x * m + baseline * (1 - m)).unsqueeze(0))[0]
        out = torch.sigmoid(logits)[target] if torchray else torch.softmax(logits, 0)[target]
        total += out.item() * mask
    return total / samples / (1 if torchray else p)


def patches(edge):
    along = [np.arange(size) * edge // size for size in (HEIGHT, WIDTH)]
    return along[0][:, None] * edge + along[1][None, :]


def lime(net, x, target, key, samples, edge, alpha, width, baseline):
    feature = patches(edge)
    design, outputs, weights = [], [], []
    for sample in range(samples):
        z = np.array([philox(key, sample, f // 128)[f // 32 % 4] >> (f % 32) & 1 for f in range(edge * edge)])
        row = torch.where(torch.from_numpy(z[feature] == 1), x, baseline)
        with torch.no_grad():
            outputs.append(net(row.unsqueeze(0))[0][target].item())
        cosine = torch.nn.functional.cosine_similarity(x.flatten(), row.flatten(), dim=0).item()
        weights.append(np.exp(-((1 - cosine) ** 2) / (2 * width**2)))
        design.append(z)
    model = Lasso(alpha=alpha, tol=1e-15, max_iter=10**7)
    model.fit(np.array(design, float), np.array(outputs), sample_weight=np.array(weights))
    assert 2 <= np.count_nonzero(model.coef_) < edge * edge, model.coef_
    return model.coef_[feature]


def main(path):
    net = Net().double()
    x = fill("x", (2, CHANNELS, HEIGHT, WIDTH), 1, 0).double()
    zero, mean = torch.zeros(2, 1, 1, 1).double(), x.mean((1, 2, 3), keepdim=True)
    maps = []

    def add(method, rows):
        maps.append({"method": method, "maps": [np.asarray(row).ravel().tolist() for row in rows]})

    for method, baseline in [({"id": "rise", "samples": 300, "cells": 3, "p": 0.4}, zero),
                             ({"id": "rise", "samples": 200, "cells": 4, "torchray": True, "baseline": "mean"}, mean),
                             ({"id": "rise", "samples": 50, "cells": 1, "p": 0.7}, zero)]:
        add(method, [rise(net, x[n], TARGETS[n], KEYS[n], method["samples"], method["cells"], method.get("p", 0.5),
                          method.get("torchray", False), baseline[n]) for n in range(2)])
    for method, baseline in [({"id": "lime", "edge": 4, "alpha": 0.002}, zero),
                             ({"id": "lime", "edge": 3, "samples": 30, "alpha": 0.001, "width": 0.5,
                               "baseline": "mean"}, mean)]:
        add(method, [lime(net, x[n], TARGETS[n], KEYS[n], method.get("samples", 50), method["edge"], method["alpha"],
                          method.get("width", 1), baseline[n]) for n in range(2)])

    inputs = x.clone().requires_grad_(True)
    net(inputs)[[0, 1], TARGETS].sum().backward()
    gradient = inputs.grad.numpy()
    add({"id": "blurred"}, [[scipy.ndimage.gaussian_filter(c, 1) for c in g] for g in gradient])
    add({"id": "blurred", "sigma": 2.5, "reduction": "square-sum"},
        [scipy.ndimage.gaussian_filter((g**2).sum(0), 2.5) for g in gradient])
    add({"id": "blurred", "kind": "max", "kernel": 5, "reduction": "abs-max"},
        [scipy.ndimage.maximum_filter(abs(g).max(0), 5) for g in gradient])
    add({"id": "sobel"}, [sum(scipy.ndimage.sobel(c, axis, mode="nearest") ** 2 for c in row for axis in (0, 1))
                          for row in x.numpy()])

    with open(path, "w", encoding="utf-8") as file:
        versions = {p: version(p) for p in ("torch", "numpy", "scipy", "scikit-learn")}
        head = {"script": "scripts/golden_perturbation.py", "versions": versions, "keys": KEYS, "targets": TARGETS}
        file.write(json.dumps(head)[:-1] + ', "maps": [\n')
        file.write(",\n".join(json.dumps(m) for m in maps) + "\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
