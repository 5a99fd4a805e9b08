#!/usr/bin/env python3
"""Makes testdata/golden_gain.json: steps of GAN imputation's training in PyTorch, in double precision
(torch.nn.utils.spectral_norm, torch.optim.Adam), and images imputed with what comes of them. Parameters and
images are from a formula, what training draws is from scripts/golden_attribution_draws.py's Philox.

The nets and losses are those of Kachuee et al. 2020, which ROAD (appendix B) uses. Of every tensor it keeps what
scripts/golden_training.py keeps.

Needs what scripts/golden_nets.py needs; run by hand:
    python scripts/golden_gain.py testdata/golden_gain.json
"""

import hashlib
import json
import platform
import struct
import sys

import numpy as np
import torch
from golden_attribution_draws import philox, unit
from golden_nets import fill, parameter
from golden_training import order, summary
from torch import nn
from torch.nn.utils import spectral_norm


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        layers = []
        for _ in range(2):
            layers += [spectral_norm(nn.Conv2d(channels, channels, 3, padding=1)), nn.BatchNorm2d(channels), nn.ReLU()]
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        return self.conv(x) + x


class Gan(nn.Module):
    def __init__(self, size, inputs, outputs, width, last):
        super().__init__()
        layers = [spectral_norm(nn.Conv2d(inputs, width, 7, padding=3)), nn.BatchNorm2d(width), nn.ReLU(),
                  spectral_norm(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)), nn.BatchNorm2d(2 * width), nn.ReLU()]
        layers += [Block(2 * width) for _ in range(4)]
        extra = tuple(1 - n % 2 for n in size)
        layers += [spectral_norm(nn.ConvTranspose2d(2 * width, width, 3, stride=2, padding=1, output_padding=extra)),
                   nn.BatchNorm2d(width), nn.ReLU(), spectral_norm(nn.Conv2d(width, outputs, 7, padding=3)), last]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def key(seed, purpose, what):
    text = struct.pack("<QQ", seed, len(purpose)) + purpose.encode() + what.encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


class Draws:
    """What is drawn for n images of a step (or of a part, from a place on)."""

    def __init__(self, seed, purpose, number, place, shape):
        self.keys = {what: key(seed, purpose, what) for what in ("rate", "mask", "noise", "hint")}
        self.number, self.place, self.shape = number, place, shape  # shape: n, height, width
        n, height, width = shape
        self.elements = np.arange(n * height * width, dtype=np.uint64) + np.uint64(place * height * width)

    def uniforms(self, what, draw):
        first, second, _, _ = philox(self.keys[what], self.elements, draw)
        return torch.from_numpy(unit(first, second)).view(self.shape[0], 1, *self.shape[1:])

    def removed(self, maximum):
        images = np.arange(self.shape[0], dtype=np.uint64) + np.uint64(self.place)
        first, second, _, _ = philox(self.keys["rate"], images, self.number)
        rates = maximum * torch.from_numpy(unit(first, second)).view(-1, 1, 1, 1)
        return self.uniforms("mask", self.number) < rates

    def hint(self, passing, rate, known):
        told = (self.uniforms("hint", 2 * self.number + passing) < rate).double()
        return told * known + 0.5 * (1 - told)

    def noise(self, passing):
        return normals(self.keys["noise"], self.elements, 2 * self.number + passing).view(
            self.shape[0], 1, *self.shape[1:])


def normals(stream, index, draw):
    a, b, c, d = philox(stream, index, draw)
    u, v = unit(a, b), unit(c, d)
    return torch.from_numpy(np.sqrt(-2 * np.log1p(-u)) * np.cos(2 * np.pi * v))


def put(module, prefix):
    state = {name: parameter(prefix + name, value.shape).to(value.dtype) for name, value in module.state_dict().items()}
    module.load_state_dict(state)
    return module.double().train()


def generate(generator, x, known, noise):
    return generator(torch.cat([x * known, known, noise * (1 - known)], 1))


def judge(discriminator, x, known, made, hint):
    return discriminator(torch.cat([torch.where(known > 0, x, made), hint], 1))


def train(case):
    channels, height, width = case["input"]
    generator = put(Gan((height, width), channels + 2, channels, case["width"], nn.Tanh()), "generator.")
    discriminator = put(Gan((height, width), channels + 1, channels, case["width"], nn.Sigmoid()), "discriminator.")
    raw = fill("examples", (case["examples"], channels, height, width), 127.5, 127.5).to(torch.uint8)
    x = raw.double() / case["scale"]
    mean = x.mean(0)
    optimizers = [torch.optim.Adam(m.parameters(), lr=1, betas=(0.5, 0.999)) for m in (generator, discriminator)]
    tiny, losses, correct = 1e-8, [], 0
    indices = order(len(case["rates"]) * case["batch"] - case["fewer"], case["examples"])
    for number, rate in enumerate(case["rates"]):
        rows = x[indices[number * case["batch"]:(number + 1) * case["batch"]]] - mean
        draws = Draws(case["seed"], "gain", number, 0, (len(rows), height, width))
        known = (~draws.removed(case["maximumRate"])).double()
        for o in optimizers:
            o.param_groups[0]["lr"] = rate
            o.zero_grad()
        made = generate(generator, rows, known, draws.noise(0)).detach()
        said = judge(discriminator, rows, known, made, draws.hint(0, case["hintRate"], known))
        loss = -(known * torch.log(said + tiny) + (1 - known) * torch.log(1 - said + tiny)).mean()
        loss.backward()
        optimizers[1].step()
        correct += int(((said > 0.5) == (known > 0)).sum())
        optimizers[0].zero_grad()
        made = generate(generator, rows, known, draws.noise(1))
        said = judge(discriminator, rows, known, made, draws.hint(1, case["hintRate"], known))
        share = known.mean()
        loss = -((1 - known) * torch.log(said + tiny)).mean() / (1 - share)
        loss = loss + case["alpha"] * (known * (rows - made) ** 2).mean() / share
        loss.backward()
        optimizers[0].step()
        losses.append(loss.item())
    parameters, state = {"mfv": summary("mfv", mean)}, {}
    for prefix, module, optimizer in (("generator.", generator, optimizers[0]),
                                      ("discriminator.", discriminator, optimizers[1])):
        for name, value in module.state_dict().items():
            name = prefix + name
            parameters[name] = {"batches": value.item()} if name.endswith("num_batches_tracked") else summary(name, value)
        for name, value in module.named_parameters():
            for kind in ("exp_avg", "exp_avg_sq"):
                full = f"{prefix}{name}/{kind}"
                state[full] = summary(full, optimizer.state[value][kind])
    generator.eval()
    discriminator.eval()
    with torch.no_grad():
        draws = Draws(case["seed"], "gain/evaluation", 0, 0, (len(x), height, width))
        known = (~draws.removed(case["maximumRate"])).double()
        made = generate(generator, x - mean, known, draws.noise(1))
        said = judge(discriminator, x - mean, known, made, draws.hint(1, case["hintRate"], known))
        imputed = torch.where(known > 0, x - mean, made)
        evaluation = {"loss": ((x - mean - imputed) ** 2).mean().item(),
                      "correct": int(((said > 0.5) == (known > 0)).sum())}
        rows = x[:case["imputed"]]
        gone = fill("removed", (len(rows), height, width), 1, 0) > 0
        noise = torch.stack([normals(k, np.arange(height * width), 0).view(1, height, width) for k in case["keys"]])
        known = (~gone).double().unsqueeze(1)
        made = generate(generator, rows - mean, known, noise)
        imputed = torch.where(known > 0, rows, made + mean)
    return case | {"losses": losses, "correct": correct, "parameters": parameters, "optimizerState": state,
                   "evaluation": evaluation, "images": imputed.flatten().tolist()}


CASES = [
    # All that may go wrong: odd height, even width, several channels, batches of two sizes.
    {"input": [3, 7, 10], "width": 3, "examples": 11, "scale": 255.0, "batch": 4, "fewer": 1, "rates": [5e-4, 1e-3, 2e-3],
     "alpha": 10.0, "hintRate": 0.3, "maximumRate": 0.5, "seed": 17, "imputed": 3, "keys": [5, 2**63 + 1, 77]},
    {"input": [1, 8, 8], "width": 4, "examples": 6, "scale": 255.0, "batch": 6, "fewer": 0, "rates": [5e-4] * 4,
     "alpha": 100.0, "hintRate": 0.01, "maximumRate": 1.0, "seed": 0, "imputed": 2, "keys": [1, 2]},
]


def main(path):
    torch.set_num_threads(1)
    made = [train(case) for case in CASES]
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with open(path, "w") as file:
        file.write('{"script": "scripts/golden_gain.py", "versions": ' + json.dumps(versions) + ', "cases": [\n')
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in made))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
