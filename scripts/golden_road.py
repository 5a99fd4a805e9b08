#!/usr/bin/env python3
"""Makes testdata/golden_road.json: what a CIFAR ResNet-20 answers on 500 test images
of CIFAR-10 after ROAD's removals and imputations, without assay.

    python scripts/golden_road.py ../shared/data testdata/golden_road.json

{"versions": {...}, "net", "weights", "preset", "seed", "noise": sigma in [0,1],
 "images": ids, those that a limit of 500 chooses, class by class; "labels": one digit each,
 "fractions": [...], "points": one for each of method x order x imputer, {
   "method": assay's spec of the map, "" where the order needs none,
   "order": "morf"|"lerf"|"random", "imputer": "noisy-linear"|"channel-mean",
   "noise": 0, or sigma,
   "predictions": one string a fraction, the predicted class of each image,
   "probability": mean softmax of the label, one number a fraction,
   "variation": mean total variation of the masks, one number a fraction}}

The label is explained. Maps are made in float64 and rounded to float32, a pixel's
relevance is their sum over channels, in float32 again; imputation is in float64, the net runs in float32.
"""

import io
import json
import sys
import tarfile
import time
from importlib.metadata import version

import numpy as np
import torch
from PIL import Image

import road_oracle as road

WEIGHTS = "weights/resnet20-12fca82f.th"
LIMIT, SEED, SIGMA = 500, 3, 0.01
FRACTIONS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9]
METHODS = {  # few steps and samples: what is compared is removal, not attribution
    "gradient": road.gradient,
    "integrated-gradients(steps=10)": lambda *a: road.integrated_gradients(*a, steps=10),
    "smoothgrad(samples=8)": lambda *a: road.smoothgrad(*a, samples=8),
    "random": road.random_map,
}
IMPUTERS = [("noisy-linear", 0), ("noisy-linear", SIGMA), ("channel-mean", 0)]


def images(path):
    """Ids, classes and pixels [3,H,W] in [0,1]: classes in name order, of each the first files."""
    with tarfile.open(path) as archive:
        files = {}
        for member in archive.getmembers():
            split, _, name = member.name.removeprefix("./").partition("/")
            if split == "test" and member.isfile():
                files.setdefault(name.split("/")[0], []).append((name, member))
        for label, of in enumerate(sorted(files)):
            for name, member in sorted(files[of])[: LIMIT // len(files)]:
                picture = Image.open(io.BytesIO(archive.extractfile(member).read())).convert("RGB")
                yield name, label, np.asarray(picture, np.float64).transpose(2, 0, 1) / 255


def rankings(net, name, label, pixels):
    """{(method, order): pixels in that order, most relevant first}, of one image."""
    ties = road.permutation(road.key(SEED, "ties", name), pixels[0].size)
    x = road.normalised(torch.from_numpy(pixels)[None].float())[0].double()  # what nets are usually given: float32
    found = {("", "random"): ties}
    for spec, method in METHODS.items():
        relevance = method(net, x, label, road.key(SEED, "attribution", name)).float().double().sum(0).float().numpy()
        for order in ("morf", "lerf"):
            found[spec, order] = road.ranking(relevance, ties)
    return found


def main():
    shared, out = sys.argv[1:]
    torch.set_num_threads(1)
    rows = list(images(f"{shared}/cifar10.tgz"))
    assert len(rows) == LIMIT
    started = time.time()
    wide = road.cifar_resnet20(f"{shared}/{WEIGHTS}", torch.float64)
    ranked = [rankings(wide, *row) for row in rows]
    print(f"maps: {time.time() - started:.0f} s", file=sys.stderr)
    added = [SIGMA * road.noise(SEED, name, pixels.shape) for name, _, pixels in rows]
    labels = torch.tensor([label for _, label, _ in rows])
    net = road.cifar_resnet20(f"{shared}/{WEIGHTS}")

    def answers(imputed):
        with torch.no_grad():
            return net(road.normalised(torch.from_numpy(np.stack(imputed))).float()).double().softmax(1)

    points = []
    for method, order in ranked[0]:
        group = [{"method": method, "order": order, "imputer": imputer, "noise": sigma, "predictions": [], "probability": [], "variation": []}
                 for imputer, sigma in IMPUTERS]
        for fraction in FRACTIONS:
            masks = [road.removed(r[method, order], order, fraction, (32, 32)) for r in ranked]
            solved = [road.impute(pixels, mask, "noisy-linear") for (_, _, pixels), mask in zip(rows, masks)]
            filled = {"noisy-linear": solved,
                      "channel-mean": [road.impute(pixels, mask, "channel-mean") for (_, _, pixels), mask in zip(rows, masks)]}
            for point in group:
                point["variation"].append(round(float(np.mean([road.variation(mask) for mask in masks])), 12))
                batch = filled[point["imputer"]]
                if point["noise"]:
                    batch = [image + mask * extra for image, mask, extra in zip(batch, masks, added)]
                p = answers(batch)
                point["predictions"].append("".join(map(str, p.argmax(1).tolist())))
                point["probability"].append(round(p[torch.arange(LIMIT), labels].mean().item(), 9))
        points += group
        right = [np.mean([int(a) == int(b) for a, b in zip(p, labels)]) for p in group[0]["predictions"]]
        print(f"{time.time() - started:.0f} s: {method} {order}: {np.round(right, 3)}", file=sys.stderr)

    golden = {"versions": {name: version(name) for name in ("torch", "numpy", "scipy", "pillow")},
              "net": "cifar-resnet20", "weights": WEIGHTS, "preset": "cifar10", "seed": SEED, "noise": SIGMA,
              "images": [name for name, _, _ in rows], "labels": "".join(map(str, labels.tolist())),
              "fractions": FRACTIONS, "points": points}
    with open(out, "w") as file:
        json.dump(golden, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
