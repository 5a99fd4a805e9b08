"""Golden values of the references (imputers that do not depend on the mask).

Run by hand: python scripts/golden_references.py > torchx/testdata/references.json
Oracles: torchvision.transforms.functional.gaussian_blur for the blur (its
kernel is the normalised Gaussian density at the integers, its border
reflected), NumPy in float64 for the means.
"""
import json

import numpy as np
import torch
import torchvision
from torchvision.transforms.functional import gaussian_blur

N, C, H, W = 2, 3, 20, 24
EDGE = 7  # patches of 2x3 pixels, the last row and column larger

index = np.arange(N * C * H * W, dtype=np.uint64)
values = ((index * np.uint64(2654435761)) % np.uint64(2**32)).astype(np.float64) / 2**32 * 4 - 2
x = torch.tensor(values.reshape(N, C, H, W).astype(np.float32))
xd = x.double()
rows = np.minimum(np.arange(H) // (H // EDGE), EDGE - 1)
columns = np.minimum(np.arange(W) // (W // EDGE), EDGE - 1)
patches = rows[:, None] * EDGE + columns[None, :]


def patch_mean(per_channel):
    out = xd.numpy().copy()
    for n in range(N):
        for p in range(EDGE * EDGE):
            where = patches == p
            if per_channel:
                for c in range(C):
                    out[n, c][where] = xd[n, c].numpy()[where].mean()
            else:
                out[n][:, where] = xd[n].numpy()[:, where].mean()
    return out


def cases():
    yield {"id": "mean"}, np.broadcast_to(xd.numpy().mean((1, 2, 3), keepdims=True), xd.shape)
    yield {"id": "channel-mean"}, np.broadcast_to(xd.numpy().mean((2, 3), keepdims=True), xd.shape)
    yield {"id": "patch-mean"}, patch_mean(False)
    yield {"id": "patch-mean", "perChannel": True}, patch_mean(True)
    for k, s in ((31, 56.0), (9, 2.5), (1, 3.0)):
        yield {"id": "blur", "kernel": k, "sigma": s}, gaussian_blur(xd, [k, k], [s, s]).numpy()
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    for v in (0.0, 1.0, 0.25):
        colour = ((v - mean) / std)[None, :, None, None]
        yield {"id": "constant", "value": v}, np.broadcast_to(colour, xd.shape)


positions = list(range(0, N * C * H * W, 37))
json.dump(
    {
        "versions": {"torch": torch.__version__, "torchvision": torchvision.__version__, "numpy": np.__version__},
        "shape": [N, C, H, W],
        "edge": EDGE,
        "positions": positions,
        "cases": [{"spec": s, "values": [float(f"{v:.9g}") for v in np.asarray(r).reshape(-1)[positions]]} for s, r in cases()],
    },
    __import__("sys").stdout,
    indent=None,
    separators=(",", ":"),
)
