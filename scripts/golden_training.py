#!/usr/bin/env python3
"""Makes testdata/golden_training.json: what some steps of training in double
precision come to in PyTorch (torch.optim, CrossEntropyLoss), with parameters and
examples from a formula.

Of every tensor of the state dict and of the optimiser it keeps the norm, the
inner product with the formula's numbers ("projection", whose name is the tensor's
name), and some elements: enough that no tensor can be wrong unseen.

Needs what scripts/golden_nets.py needs; run by hand:
    python scripts/golden_training.py testdata/golden_training.json
"""

import json
import math
import platform
import sys

import torch
from golden_nets import CifarResNet, Mlp, fill, parameter
from torch import nn


class Small(nn.Module):
    """What the nets of the registry do not have together: biases before batch
    norm, batch norm of columns, GELU, layer norm."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.fc1 = nn.Linear(6 * 3 * 3, 12)
        self.bn2 = nn.BatchNorm1d(12, momentum=0.25)
        self.ln = nn.LayerNorm(12)
        self.fc2 = nn.Linear(12, 4)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv(x))), 2)
        x = self.bn2(self.fc1(x.flatten(1)))
        return self.fc2(self.ln(nn.functional.gelu(x)))


def order(count, examples):
    """Indices of the examples, `count` of them."""
    return [(i * 7 + i // examples * 3) % examples for i in range(count)]


def summary(name, value):
    value = value.detach().double().flatten()
    count = value.numel()
    places = sorted({0, count // 3, count // 2, count - 1})
    return {"norm": value.norm().item(),
            "projection": torch.dot(value, fill("projection " + name, (count,), 1, 0).double()).item(),
            "places": places, "values": value[places].tolist()}


def train(case, module, rates):
    state = module.state_dict()
    module.load_state_dict({name: parameter(name, value.shape).to(value.dtype) for name, value in state.items()})
    module.double().train()
    examples, batch, steps = case["examples"], case["batch"], len(rates)
    count = steps * batch - case["fewer"]
    raw = fill("examples", (examples, *case["shape"]), case["amplitude"], case["offset"])
    if case["bytes"]:
        raw = raw.to(torch.uint8)
    shape = [-1] + [1] * (len(case["shape"]) - 1)
    x = (raw.double() / case["scale"] - torch.tensor(case["mean"], dtype=torch.float64).view(shape)) / torch.tensor(
        case["std"], dtype=torch.float64).view(shape)
    labels = torch.tensor([(i * i + i // 5) % case["classes"] for i in range(examples)])
    o = case["optimizer"]
    if o["id"] == "sgd":
        optimizer = torch.optim.SGD(module.parameters(), lr=1, momentum=o["momentum"], nesterov=o["nesterov"],
                                    weight_decay=o["weightDecay"])
        kinds = {"momentum": "momentum_buffer"} if o["momentum"] else {}
    else:
        optimizer = torch.optim.Adam(module.parameters(), lr=1, betas=(o["beta1"], o["beta2"]), eps=o["epsilon"],
                                     weight_decay=o["weightDecay"])
        kinds = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    criterion = nn.CrossEntropyLoss(label_smoothing=case["labelSmoothing"])
    indices, losses, correct = torch.tensor(order(count, examples)), [], 0
    for step, rate in enumerate(rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        now = indices[step * batch:min(count, (step + 1) * batch)]
        optimizer.zero_grad()
        logits = module(x[now])
        loss = criterion(logits, labels[now])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        correct += (logits.argmax(1) == labels[now]).sum().item()
    module.eval()
    with torch.no_grad():
        logits = module(x)
    print(f"{case['net']} {o['id']}: losses {losses[0]:.4f} to {losses[-1]:.4f}, {correct} of {count} right")
    return {**case, "rates": rates, "losses": losses, "correct": correct,
            "evaluation": {"loss": nn.functional.cross_entropy(logits, labels).item(),
                           "correct": (logits.argmax(1) == labels).sum().item()},
            "parameters": {name: {"batches": value.item()} if name.endswith(".num_batches_tracked") else summary(name, value)
                           for name, value in module.state_dict().items()},
            "optimizerState": {f"{name}/{kind}": summary(f"{name}/{kind}", optimizer.state[p][theirs])
                               for name, p in module.named_parameters() for kind, theirs in kinds.items()}}


def cases():
    image = {"amplitude": 127.5, "offset": 127.5, "bytes": True, "scale": 255}
    plain = {"amplitude": math.sqrt(3), "offset": 0, "bytes": False, "scale": 1, "mean": [0], "std": [1]}
    sgd = {"id": "sgd", "momentum": 0.9, "nesterov": True, "weightDecay": 5e-4}
    adam = {"id": "adam", "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-6, "weightDecay": 1e-3}
    cosine = lambda peak, steps: [peak * (1 + math.cos(math.pi * i / steps)) / 2 for i in range(steps)]
    yield {"net": "cifar-resnet20", "shape": [3, 32, 32], "classes": 10, "examples": 50, "batch": 8, "fewer": 3,
           **image, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "optimizer": sgd,
           "labelSmoothing": 0.1}, CifarResNet(3), cosine(0.05, 20)
    yield {"net": "small", "shape": [2, 6, 6], "classes": 4, "examples": 30, "batch": 8, "fewer": 0, **plain,
           "optimizer": adam, "labelSmoothing": 0}, Small(), cosine(0.02, 20)
    yield {"net": "small", "shape": [2, 6, 6], "classes": 4, "examples": 30, "batch": 7, "fewer": 2, **plain,
           "optimizer": {"id": "sgd", "momentum": 0, "nesterov": False, "weightDecay": 0}, "labelSmoothing": 0.2}, \
        Small(), cosine(0.1, 20)
    yield {"net": "mlp", "shape": [64], "classes": 10, "examples": 40, "batch": 16, "fewer": 5, **plain,
           "optimizer": {**adam, "weightDecay": 0}, "labelSmoothing": 0.05}, Mlp(64, 10), cosine(0.003, 20)
    yield {"net": "mlp", "shape": [64], "classes": 10, "examples": 40, "batch": 16, "fewer": 0, **plain, "scale": 2,
           "mean": [0.25], "std": [1.5], "optimizer": {**sgd, "nesterov": False}, "labelSmoothing": 0}, \
        Mlp(64, 10), cosine(0.05, 20)


def main(path):
    torch.set_num_threads(1)
    made = [train(*case) for case in cases()]
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with open(path, "w") as file:
        file.write('{"script": "scripts/golden_training.py", "versions": ' + json.dumps(versions) + ', "cases": [\n')
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in made))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
