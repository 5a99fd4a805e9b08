#!/usr/bin/env python3
"""The opponent of part road of `assay bench`: ROAD without retraining as one writes it
with SciPy and PyTorch, one sparse system an image, measured in the same run.

Reads one JSON command a line on standard input and answers with one JSON line;
with --all it reads none and answers DEFAULTS, each after its command.
  {"do": "hello", "threads": 2}        -> versions and threads of PyTorch; comes first
  {"do": "solve", "side": 224, "removed": 0.5 | "square" | "half", "seconds": 3}
      -> {"milliseconds": an image, median; "images": how many were solved}: three channels,
         scattered pixels, the middle of 3/4 of each side or the left half, equations and SciPy's spsolve, on one core
  {"do": "road", "net": "cifar-resnet20"|"resnet18", "imputer": "noisy-linear"|"channel-mean",
   "methods": 8, "fractions": [0.1, ...], "orders": ["morf", "lerf"], "batch": 100, "workers": 0, "seconds": 10}
      -> {"secondsPerEvaluation": of an image at one fraction in one order of one method,
          "evaluations": how many were run, "ranking", "imputation", "forward": shares of the time}
         Maps are given. Batches of images go through all methods, orders and fractions until the
         seconds are over, one method of one batch at least. workers: processes that impute, 0 for
         this one alone.
  {"do": "forward", "net": ..., "batch": 100, "seconds": 3} -> {"secondsPerImage": of the net alone}
A command that fails is answered {"error": why}.
Weights, images and maps are random: the cost does not depend on them but for the holes,
and random maps scatter those as gradients do.
"""

import json
import os
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # SciPy's and NumPy's; PyTorch's threads are set by "hello"

import numpy as np

import road_imputation

SIDES = {"cifar-resnet20": 32, "resnet18": 224}
FRACTIONS, ORDERS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9], ["morf", "lerf"]
SIGMA, MEAN, STD = 0.01, 0.5, 0.25
DEFAULTS = [{"do": "hello", "threads": os.cpu_count()},
            *({"do": "solve", "side": side, "removed": p, "seconds": 3} for side in (32, 224) for p in (0.1, 0.5, 0.9)),
            *({"do": what, "net": net, "batch": batch, "seconds": 5, **more} for net, batch in (("cifar-resnet20", 100), ("resnet18", 8))
              for what, more in (("forward", {}), ("road", {"imputer": "noisy-linear"}), ("road", {"imputer": "channel-mean"})))]


def hello(command):
    import scipy
    import torch
    import torchvision

    torch.set_num_threads(command["threads"])
    return {"torch": torch.__version__, "torchvision": torchvision.__version__, "scipy": scipy.__version__, "numpy": np.__version__,
            "threads": torch.get_num_threads()}


def hole(what, side, rng):
    removed = np.zeros((side, side), bool)
    if what == "square":
        removed[side // 8 : side - side // 8, side // 8 : side - side // 8] = True
    elif what == "half":
        removed[:, : side // 2] = True
    else:
        removed.flat[rng.permutation(side * side)[: int(what * side * side + 0.5)]] = True
    return removed


def solve(command):
    rng, side = np.random.default_rng(0), command["side"]
    times, start = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < command["seconds"]:
        image, removed = rng.random((3, side, side)), hole(command["removed"], side, rng)
        before = time.perf_counter()
        road_imputation.solve(image, removed)
        times.append(time.perf_counter() - before)
    return {"milliseconds": 1e3 * float(np.median(times)), "images": len(times)}


def net(name, cache={}):
    if name not in cache:
        import torch
        import torchvision

        torch.manual_seed(0)
        if name == "cifar-resnet20":
            from golden_nets import CifarResNet

            cache[name] = CifarResNet(3).eval()
        else:
            cache[name] = getattr(torchvision.models, name)().eval()
    return cache[name]


def imputed(job):
    """One image with the pixels of `chosen` removed and imputed: float32, in the net's scale."""
    image, chosen, imputer, seed = job
    removed = np.zeros(image[0].size, bool)
    removed[chosen] = True
    removed = removed.reshape(image.shape[1:])
    if imputer == "noisy-linear":
        out = road_imputation.solve(image, removed)
        out[:, removed] += SIGMA * np.random.default_rng(seed).standard_normal((len(image), removed.sum()))
    else:
        out = road_imputation.channel_mean(image, removed)
    return ((out - MEAN) / STD).astype(np.float32)


def pool(workers, cache={}):
    if workers not in cache:
        import multiprocessing

        cache[workers] = multiprocessing.get_context("spawn").Pool(workers)
    return cache[workers]


def road(command):
    import torch

    name, batch, workers = command["net"], command["batch"], command.get("workers", 0)
    model, side = net(name), SIDES[name]
    pixels, rng = side * side, np.random.default_rng(0)
    apply = (lambda jobs: pool(workers).map(imputed, jobs)) if workers else (lambda jobs: [imputed(job) for job in jobs])
    spent, evaluations = {"ranking": 0.0, "imputation": 0.0, "forward": 0.0}, 0
    clock = time.perf_counter

    def evaluate(images, maps, orders, fractions, count):
        nonlocal evaluations
        at = clock()
        ranked = [np.argsort(-m.ravel(), kind="stable") for m in maps]
        spent["ranking"] += clock() - at
        for order in orders:
            for fraction in fractions:
                at = clock()
                k = int(fraction * pixels + 0.5)
                jobs = [(image, r[:k] if order == "morf" else r[pixels - k :], command.get("imputer", "noisy-linear"), i)
                        for i, (image, r) in enumerate(zip(images, ranked))]
                filled = np.stack(apply(jobs))
                spent["imputation"] += clock() - at
                at = clock()
                with torch.inference_mode():
                    model(torch.from_numpy(filled)).softmax(1)
                spent["forward"] += clock() - at
                evaluations += count * len(images)

    images = rng.random((batch, 3, side, side))
    evaluate(images[:2], rng.random((2, side, side)), ["morf"], [0.1], 0)  # warms up
    spent = dict.fromkeys(spent, 0.0)
    start = clock()
    while evaluations == 0 or clock() - start < command["seconds"]:
        for _ in range(command.get("methods", 8)):
            evaluate(images, rng.random((batch, side, side)), command.get("orders", ORDERS), command.get("fractions", FRACTIONS), 1)
            if clock() - start >= command["seconds"]:
                break
    total = sum(spent.values())
    return {"secondsPerEvaluation": total / evaluations, "evaluations": evaluations, **{what: t / total for what, t in spent.items()}}


def forward(command):
    import torch

    model, side = net(command["net"]), SIDES[command["net"]]
    x = torch.rand(command["batch"], 3, side, side)
    with torch.inference_mode():
        model(x)
        count, start = 0, time.perf_counter()
        while count == 0 or time.perf_counter() - start < command["seconds"]:
            model(x).softmax(1)
            count += 1
        return {"secondsPerImage": (time.perf_counter() - start) / (count * len(x))}


ACTIONS = {"hello": hello, "solve": solve, "road": road, "forward": forward}


def answer(command):
    try:
        return ACTIONS[command["do"]](command)
    except Exception as problem:  # a command's trouble is not the next one's
        return {"error": f"{type(problem).__name__}: {problem}"}


if __name__ == "__main__":
    if sys.argv[1:] == ["--all"]:
        for request in DEFAULTS:
            print(json.dumps({**request, **answer(request)}), flush=True)
    else:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
