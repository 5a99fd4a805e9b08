#!/usr/bin/env python3
"""Makes testdata/golden_impute.json: small images with holes, and what SciPy's direct
sparse solver (float64) fills them with by noisy-linear imputation without its noise.

    python scripts/golden_impute.py testdata/golden_impute.json

{"versions": {...}, "cases": [{"name", "channels": C, "height": H, "width": W,
  "image": C*H*W integers 0..255, row-major [C,H,W]; a pixel is one of them / 255,
  "mask": H strings of W characters, "1" where the pixel is removed,
  "solution": one list a channel, the values of the removed pixels in row-major order
              ([0,1] scale, 11 decimals); null where every pixel is removed: no system}]}

Every solution is checked here against its defining property, and against a dense solve
of equations that are written down pixel by pixel.
"""

import json
import sys

import numpy as np
import scipy

from road_imputation import NEIGHBOURS, solve

SIZES = [(1, 1), (1, 5), (5, 1), (2, 2), (3, 3), (5, 7), (8, 8), (17, 13), (32, 32)]
LARGE = 1000  # pixels: from here on only what a small image does not show
LARGE_HOLES = ("random", "square", "left half", "all but one", "everything")


def masks(rng, height, width):
    """Names and masks, no mask twice."""
    pixels = height * width
    grid = np.zeros((height, width), bool)

    def with_pixels(*where):
        mask = grid.copy()
        for at in where:
            mask[at] = True
        return mask

    corners = [(0, 0), (0, -1), (-1, 0), (-1, -1)]
    yield "nothing", grid
    for name, corner in zip(("top left", "top right", "bottom left", "bottom right"), corners):
        yield name, with_pixels(corner)
    yield "corners", with_pixels(*corners)
    yield "top", with_pixels(np.s_[0, :])
    yield "bottom", with_pixels(np.s_[-1, :])
    yield "left", with_pixels(np.s_[:, 0])
    yield "right", with_pixels(np.s_[:, -1])
    yield "border", with_pixels(np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1])
    yield "all but the border", ~with_pixels(np.s_[0, :], np.s_[-1, :], np.s_[:, 0], np.s_[:, -1])
    yield "centre", with_pixels((height // 2, width // 2))
    for percent in (10, 50, 90, 99):
        mask = grid.copy()
        mask.flat[rng.permutation(pixels)[: int(pixels * percent / 100 + 0.5)]] = True
        yield f"random {percent} %", mask
    side = max(1, 3 * min(height, width) // 4)
    y, x = (height - side) // 2, (width - side) // 3
    yield "square", with_pixels(np.s_[y : y + side, x : x + side])
    yield "left half", with_pixels(np.s_[:, : (width + 1) // 2])
    yield "top half", with_pixels(np.s_[: (height + 1) // 2, :])
    yield "checkerboard", np.indices((height, width)).sum(0) % 2 == 1
    yield "stripes", np.indices((height, width))[1] % 2 == 0
    yield "all but one corner", ~with_pixels((0, 0))
    yield "all but the last corner", ~with_pixels((-1, -1))
    yield "all but one pixel", ~with_pixels((height // 2, width // 2))
    yield "all but two pixels", ~with_pixels((0, 0), (-1, -1))
    yield "everything", ~grid


def check(image, mask, filled):
    """filled solves the equations as they are said in words."""
    channels, height, width = image.shape
    assert np.array_equal(filled[:, ~mask], image[:, ~mask])
    where = list(zip(*np.nonzero(mask)))
    index = {at: i for i, at in enumerate(where)}
    matrix, right = np.zeros((len(where), len(where))), np.zeros((len(where), channels))
    for i, (y, x) in enumerate(where):
        around = [((y + dy, x + dx), w) for dy, dx, w in NEIGHBOURS if 0 <= y + dy < height and 0 <= x + dx < width]
        total = sum(w for _, w in around)
        mean = sum(w / total * filled[:, a, b] for (a, b), w in around)
        assert np.abs(mean - filled[:, y, x]).max() < 1e-12
        matrix[i, i] = 1
        for at, w in around:
            if at in index:
                matrix[i, index[at]] -= w / total
            else:
                right[i] += w / total * image[:, at[0], at[1]]
    if where:
        assert np.abs(np.linalg.solve(matrix, right).T - filled[:, mask]).max() < 1e-10


def main():
    rng = np.random.default_rng(20)
    cases = []
    for height, width in SIZES:
        seen = set()
        # Large images have three channels only now and then, which keeps the file small.
        for name, mask in masks(rng, height, width):
            if mask.tobytes() in seen or height * width >= LARGE and not name.startswith(LARGE_HOLES):
                continue
            seen.add(mask.tobytes())
            three = height * width < 100 and len(cases) % 2 == 0 or name in ("random 50 %", "square")
            channels = 3 if three else 1
            image = rng.integers(0, 256, (channels, height, width))
            case = {"name": f"{height}x{width} {name}", "channels": channels, "height": height, "width": width,
                    "image": image.ravel().tolist(), "mask": ["".join("01"[v] for v in row) for row in mask.astype(int)], "solution": None}
            if not mask.all():
                filled = solve(image / 255, mask)
                check(image / 255, mask, filled)
                case["solution"] = [[round(v, 11) for v in filled[c][mask].tolist()] for c in range(channels)]
            cases.append(case)
    with open(sys.argv[1], "w") as out:
        json.dump({"versions": {"numpy": np.__version__, "scipy": scipy.__version__}, "cases": cases}, out, separators=(",", ":"))
        out.write("\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
