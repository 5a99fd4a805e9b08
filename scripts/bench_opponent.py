"""The opponent of `assay bench`: plain PyTorch programs, measured in the same run.

Reads one JSON command a line on standard input and answers with one JSON line:
  {"do": "hello"}                                   -> versions
  {"do": "forward", "mode": "eager"|"torchscript", "net": "resnet18", "batch": 8, "seconds": 3}
                                                    -> {"rate": images a second}
  {"do": "train", "mode": "eager"|"channels-last", "net": "cifar-resnet20"|"cnn3-fashion", "batch": 128, "seconds": 3}
                                                    -> {"rate": images a second}
  {"do": "trace-plain", "net": "resnet18"|"cifar-resnet20"|"efficientnet-lite0", "edge": 7, "iterations": 2}
                                                    -> {"secondsPerIteration": ...}
Weights are random: the cost does not depend on them. The plain loop scores all
2(t+1) masked images of every candidate of simulated annealing, as published.
"""
import json
import sys
import time

import torch
import torchvision


class InvertedResidual(torch.nn.Module):
    """EfficientNet-Lite's block: no squeeze-and-excitation, ReLU6."""

    def __init__(self, inputs, outputs, expansion, stride, kernel):
        super().__init__()
        nn, wide = torch.nn, inputs * expansion
        layers = [] if expansion == 1 else [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(True)]
        layers += [nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False), nn.BatchNorm2d(wide),
                   nn.ReLU6(True), nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers, self.residual = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.residual else self.layers(x)


def efficientnet_lite0():
    nn, inputs = torch.nn, 32
    layers = [nn.Conv2d(3, inputs, 3, 2, 1, bias=False), nn.BatchNorm2d(inputs), nn.ReLU6(True)]
    for expansion, outputs, count, stride, kernel in (
            (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(count):
            layers.append(InvertedResidual(inputs, outputs, expansion, stride if i == 0 else 1, kernel))
            inputs = outputs
    layers += [nn.Conv2d(inputs, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               nn.Linear(1280, 1000)]
    return nn.Sequential(*layers)


def net(name, cache={}):
    if name not in cache:
        torch.manual_seed(0)
        if name == "efficientnet-lite0":
            model = efficientnet_lite0()
        elif name == "cifar-resnet20":
            from golden_nets import CifarResNet

            model = CifarResNet(3)
        else:
            model = getattr(torchvision.models, name)()
        cache[name] = model.eval()
    return cache[name]


def scripted(name, batch, cache={}):
    if (name, batch) not in cache:
        with torch.no_grad():
            traced = torch.jit.trace(net(name), torch.randn(batch, 3, 224, 224))
            cache[name, batch] = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
    return cache[name, batch]


def forward(command):
    batch = command["batch"]
    model = scripted(command["net"], batch) if command["mode"] == "torchscript" else net(command["net"])
    x = torch.randn(batch, 3, 224, 224)
    with torch.inference_mode():
        for _ in range(2):
            model(x)
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < command["seconds"] or count == 0:
            model(x)
            count += 1
        return {"rate": count * batch / (time.perf_counter() - start)}


def trained(name, mode, cache={}):
    """A net, its examples in 8 bits, labels and an optimiser."""
    if (name, mode) not in cache:
        from golden_nets import CifarResNet, Cnn3

        torch.manual_seed(0)
        model, shape = (CifarResNet(3), (3, 32, 32)) if name == "cifar-resnet20" else (Cnn3(1, 28), (1, 28, 28))
        if mode == "channels-last":
            model = model.to(memory_format=torch.channels_last)
        cache[name, mode] = (model.train(), torch.randint(0, 256, (1024, *shape), dtype=torch.uint8),
                             torch.arange(1024) % 10,
                             torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4))
    return cache[name, mode]


def train(command):
    batch = command["batch"]
    model, images, labels, optimizer = trained(command["net"], command["mode"])
    criterion = torch.nn.CrossEntropyLoss()

    def step(number):
        chosen = (torch.arange(batch) + number * batch) * 7 % len(images)
        x = images[chosen].float().div_(255).sub_(0.5).div_(0.25)
        if command["mode"] == "channels-last":
            x = x.contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        loss = criterion(model(x), labels[chosen])
        loss.backward()
        optimizer.step()
        return loss.item()

    for number in range(2):
        step(number)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < command["seconds"] or count == 0:
        step(count)
        count += 1
    return {"rate": count * batch / (time.perf_counter() - start)}


def trace_plain(command):
    model, edge = net(command["net"]), command["edge"]
    side = 32 if command["net"] == "cifar-resnet20" else 224
    t, rows = edge * edge, torch.clamp(torch.arange(side) // (side // edge), max=edge - 1)
    x = torch.randn(1, 3, side, side)
    generator = torch.Generator().manual_seed(0)

    def mask(deleted):
        grid = torch.ones(edge * edge)
        grid[list(deleted)] = 0
        return grid.view(edge, edge)[rows][:, rows]

    def value(order):
        masks = [mask(order[:k]) for k in range(t + 1)] + [mask(order[t - k:]) for k in range(t + 1)]
        with torch.inference_mode():
            p = model(x * torch.stack(masks)[:, None]).softmax(1)[:, 0]
        return (p[: t + 1].sum() - p[t + 1:].sum()).item()

    order = torch.randperm(t, generator=generator).tolist()
    value(order)  # warms up
    current, temperature = value(order), 0.1
    start = time.perf_counter()
    for _ in range(command["iterations"]):
        i, j = torch.randperm(t, generator=generator)[:2].tolist()
        candidate = list(order)
        candidate[i], candidate[j] = candidate[j], candidate[i]
        v = value(candidate)
        if v >= current or torch.rand(1, generator=generator).item() < torch.tensor((v - current) / temperature).exp().item():
            order, current = candidate, v
        temperature *= 0.999
    return {"secondsPerIteration": (time.perf_counter() - start) / command["iterations"]}


def hello(command):
    torch.set_num_threads(command["threads"])
    return {"torch": torch.__version__, "torchvision": torchvision.__version__, "threads": torch.get_num_threads()}


ACTIONS = {"hello": hello, "forward": forward, "train": train, "trace-plain": trace_plain}

if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(ACTIONS[request["do"]](request)), flush=True)
