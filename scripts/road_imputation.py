"""Removal and imputation of ROAD (Rong et al. 2022, section 5.2) in NumPy and
SciPy, one image at a time: what goldens and benchmarks hold assay against.

Images are [C,H,W] in [0,1]; a mask is [H,W] of bool, True where a pixel is removed.
"""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

DIRECT, DIAGONAL = 1 / 6, 1 / 12
NEIGHBOURS = [(dy, dx, DIAGONAL if dy and dx else DIRECT) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]


def system(image, removed):
    """The equations of the removed pixels (in row-major order), a sparse matrix and one
    column of right-hand sides a channel: a pixel is the weighted mean of those of its
    8 neighbours that are on the image, as the sum over them of weight * (pixel -
    neighbour) = 0."""
    channels, height, width = image.shape
    ys, xs = np.nonzero(removed)
    unknown = np.full((height, width), -1)
    unknown[ys, xs] = np.arange(len(ys))
    diagonal = np.zeros(len(ys))
    right = np.zeros((len(ys), channels))
    rows, columns, values = [], [], []
    for dy, dx, weight in NEIGHBOURS:
        y, x = ys + dy, xs + dx
        here = np.nonzero((y >= 0) & (y < height) & (x >= 0) & (x < width))[0]
        diagonal[here] += weight
        neighbour = unknown[y[here], x[here]]
        solved = neighbour >= 0
        known = here[~solved]
        right[known] += weight * image[:, y[known], x[known]].T
        rows.append(here[solved])
        columns.append(neighbour[solved])
        values.append(np.full(solved.sum(), -weight))
    each = np.arange(len(ys))
    entries = (np.concatenate([*values, diagonal]), (np.concatenate([*rows, each]), np.concatenate([*columns, each])))
    return scipy.sparse.csc_matrix(entries, shape=(len(ys), len(ys))), right


def solve(image, removed):
    """image with the removed pixels as their neighbours' weighted means (float64).
    At least one pixel must be left: without one every constant solves the system."""
    if removed.all():
        raise ValueError("every pixel is removed: nothing to impute from")
    out = np.array(image, np.float64)
    if removed.any():
        matrix, right = system(out, removed)
        out[:, removed] = scipy.sparse.linalg.spsolve(matrix, right).reshape(right.shape).T
    return out


def channel_mean(image, removed):
    """image with each channel's mean over the whole of the original image."""
    out = np.array(image, np.float64)
    out[:, removed] = out.mean((1, 2))[:, None]
    return out
