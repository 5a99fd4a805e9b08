"""ROAD without retraining (Rong et al. 2022) again, in PyTorch and SciPy: draws,
rankings, imputers and maps, each from its definition. What assay draws from Philox
is drawn here from the same counters, so that both look at the same images.
"""

import hashlib
import struct

import numpy as np
import torch

import road_imputation
from golden_attribution_draws import Draws, philox, unit
from golden_nets import CifarResNet

CIFAR_MEAN, CIFAR_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # what these weights were trained with


def key(seed, purpose, image):
    """rng.Key: the first 8 bytes of SHA-256 of seed, the purpose with its length, the image's id."""
    text = purpose.encode()
    digest = hashlib.sha256(struct.pack("<QQ", seed, len(text)) + text + image.encode()).digest()
    return struct.unpack("<Q", digest[:8])[0]


def normals(stream, count):
    """Standard normal numbers 0..count-1 of draw 0, by Box and Muller."""
    w = philox(stream, np.arange(count), 0)
    return np.sqrt(-2 * np.log1p(-unit(w[0], w[1]))) * np.cos(2 * np.pi * unit(w[2], w[3]))


def permutation(stream, n):
    """Fisher and Yates from the last place down; place i's partner is draw (0, i), made
    an integer in 0..i by the upper half of a 128-bit product (Lemire 2019)."""
    places = np.arange(1, n, dtype=np.uint64)
    w = philox(stream, 0, places)
    word, bound, half = w[0] | w[1] << np.uint64(32), places + np.uint64(1), np.uint64(32)
    low = word & np.uint64(0xFFFFFFFF)
    partner = ((word >> half) * bound + (low * bound >> half)) >> half  # exact for bounds below 2^32
    # Lemire rejects a word whose product's lower half is below 2^64 mod bound: once in 2^64 / bound.
    assert (word * bound >= (np.uint64(2**64 - 1) - bound + np.uint64(1)) % bound).all()
    order = list(range(n))
    for i in range(n - 1, 0, -1):
        j = int(partner[i - 1])
        order[i], order[j] = order[j], order[i]
    return np.array(order)


def ranking(relevance, ties):
    """Pixels from the most to the least relevant, equal ones in the order of ties."""
    return ties[np.argsort(-relevance.ravel()[ties], kind="stable")]


def count(order, fraction, pixels):
    """Pixels that are removed at a fraction: rounded, halves up, and down for "lerf"."""
    exact = round(fraction * pixels, 9)
    return int(np.ceil(exact - 0.5) if order == "lerf" else np.floor(exact + 0.5))


def removed(ranked, order, fraction, shape):
    """The mask. "lerf" takes the ranking from its other end: what morf of 1-fraction leaves."""
    chosen = count(order, fraction, len(ranked))
    mask = np.zeros(len(ranked), bool)
    mask[ranked[len(ranked) - chosen :] if order == "lerf" else ranked[:chosen]] = True
    return mask.reshape(shape)


def variation(mask):
    """Total variation: how often neighbours differ, vertical ones and horizontal ones."""
    return np.abs(np.diff(mask.astype(float), axis=0)).mean() + np.abs(np.diff(mask.astype(float), axis=1)).mean()


def noise(seed, image, shape):
    return normals(key(seed, "impute", image), int(np.prod(shape))).reshape(shape)


def impute(image, mask, imputer, added=None):
    """image [C,H,W] in [0,1] with its removed pixels imputed, and noise added to those; not clipped."""
    out = {"noisy-linear": road_imputation.solve, "channel-mean": road_imputation.channel_mean}[imputer](image, mask)
    if added is not None:
        out[:, mask] += added[:, mask]
    return out


def normalised(images):
    shape = (1, 3, 1, 1)
    return (images - torch.tensor(CIFAR_MEAN, dtype=images.dtype).view(shape)) / torch.tensor(CIFAR_STD, dtype=images.dtype).view(shape)


def cifar_resnet20(path, dtype=torch.float32):
    net = CifarResNet(3)
    state = torch.load(path, map_location="cpu")["state_dict"]
    net.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})
    return net.eval().to(dtype).requires_grad_(False)


def gradients(net, x, target):
    """Of the target's logit by each row of x."""
    x = x.clone().requires_grad_(True)
    return torch.autograd.grad(net(x)[:, target].sum(), x)[0]


def gradient(net, x, target, stream):
    return gradients(net, x[None], target)[0]


def integrated_gradients(net, x, target, stream, steps):
    """From zero in normalised space, by Gauss and Legendre's rule."""
    at, weight = np.polynomial.legendre.leggauss(steps)
    at, weight = (torch.from_numpy(v / 2).view(-1, 1, 1, 1) for v in (at + 1, weight))
    return x * (weight * gradients(net, at * x, target)).sum(0)


def smoothgrad(net, x, target, stream, samples, level=0.15):
    """The mean gradient of noisy copies; the deviation is a share of the image's range."""
    spread = level * (x.max() - x.min())
    drawn = torch.stack([Draws(stream).normal(s, x.shape) for s in range(samples)])
    return gradients(net, x + spread * drawn, target).mean(0)


def random_map(net, x, target, stream):
    return torch.from_numpy(normals(stream, x[0].numel()).reshape(1, *x.shape[1:]))
