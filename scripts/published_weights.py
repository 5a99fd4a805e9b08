#!/usr/bin/env python3
"""Makes weights/testdata/published.json: what torchvision says about its
published weights, against which the Go table is tested, and the SHA-256 of the
float32 values [3,H,W] that the weights' own transforms make of a photograph.

Needs torchvision and Pillow; run by hand from the repository's root:
    python scripts/published_weights.py weights/testdata/published.json
"""

import hashlib
import json
import sys

import torchvision
from PIL import Image
from torchvision.models import get_model_weights

NETS = """resnet18 resnet34 resnet50 resnet101 vgg11 vgg11_bn vgg16 vgg16_bn vgg19 vgg19_bn alexnet googlenet
inception_v3 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large densenet121 densenet161 squeezenet1_1
efficientnet_b0 convnext_tiny vit_b_16""".split()


PHOTOGRAPH = "testdata/embedded/chelsea.png"


def main(path):
    rows = []
    photograph = Image.open(PHOTOGRAPH).convert("RGB")
    for net in NETS:
        for weights in get_model_weights(net):
            t = weights.transforms()
            rows.append({"net": net.replace("_", "-"), "version": weights.name, "url": weights.url,
                         "mib": weights.meta["_file_size"], "parameters": weights.meta["num_params"],
                         "top1": weights.meta["_metrics"].get("ImageNet-1K", {}).get("acc@1"),
                         "resize": t.resize_size[0], "crop": t.crop_size[0],
                         "licence": weights.meta.get("license"),
                         "interpolation": t.interpolation.value, "mean": t.mean, "std": t.std,
                         "values": hashlib.sha256(t(photograph).contiguous().numpy().astype("<f4").tobytes()).hexdigest()})
    for row in rows:
        if row["top1"] != row["top1"]:
            row["top1"] = None  # NaN: not a classifier's weights
    with open(path, "w") as file:
        file.write('{"script": "scripts/published_weights.py", "torchvision": "' + torchvision.__version__
                   + '", "photograph": "' + PHOTOGRAPH + '", "files": [\n')
        file.write(",\n".join(json.dumps(row) for row in rows))
        file.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
