"""Our random draws again, in numpy: Philox4x32-10 (Salmon et al., SC 2011) keyed
by the image, and what csrc/attribution/draws.h makes of it.
"""

import numpy as np
import torch


def philox(key, low, high):
    """Words [4] of counters (low, high), arrays of uint64, under a 64-bit key."""
    mask = np.uint64(0xFFFFFFFF)
    low, high = np.broadcast_arrays(np.asarray(low, np.uint64), np.asarray(high, np.uint64))
    shift = np.uint64(32)
    c = [low & mask, low >> shift, high & mask, high >> shift]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> shift) ^ c[1] ^ np.uint64(k0), p1 & mask, (p0 >> shift) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def unit(first, second):
    """U[0,1), a multiple of 2^-53."""
    return ((first | second << np.uint64(32)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


NOISE, INTERPOLATION = 1, 2


class Draws:
    def __init__(self, key):
        self.key = key

    def normal(self, sample, shape):
        """Element 4b + 2p + i: the cosine (i = 0) or sine of pair p of block b."""
        count = int(np.prod(shape))
        words = philox(self.key, np.arange((count + 3) // 4), NOISE << 56 | sample)
        u = [(w.astype(np.float64) + 0.5) * 2.0**-32 for w in words]
        values = []
        for p in (0, 2):
            radius, angle = np.sqrt(-2 * np.log(u[p])), 2 * np.pi * u[p + 1]
            values += [radius * np.cos(angle), radius * np.sin(angle)]
        return torch.from_numpy(np.stack(values, 1).ravel()[:count].copy()).reshape(shape)

    def uniform(self, sample):
        first, second, _, _ = philox(self.key, sample, INTERPOLATION << 56)
        return float(unit(first, second))
