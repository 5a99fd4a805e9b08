#!/usr/bin/env python3
"""Golden values of what study road reports: places, spreads, agreement of settings
and rank correlations, with ties, few values and constants, from SciPy and NumPy.

    python scripts/golden_road_statistics.py > metrics/testdata/road.json

null stands for NaN: not measured, or not defined.
"""
import json
import warnings

import numpy as np
import scipy
from scipy import stats

warnings.simplefilter("ignore")  # SciPy's about constants, NumPy's about one value
rng = np.random.default_rng(11)
nan = float("nan")


def plain(value):
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    return None if np.isnan(value) else float(value)


def correlation(x, y):
    return {"x": plain(x), "y": plain(y), "spearman": plain(stats.spearmanr(x, y).statistic) if len(x) > 1 else None,
            "kendall": plain(stats.kendalltau(x, y).statistic) if len(x) > 1 else None, "ranks": plain(stats.rankdata(x))}


def spread(values):
    v = np.array(values)[~np.isnan(values)]
    return {"values": plain(values), "mean": plain(v.mean() if len(v) else nan), "deviation": plain(v.std(ddof=1) if len(v) > 1 else nan),
            "error": plain(stats.sem(v) if len(v) > 1 else nan), "n": len(v)}


def places(scores, higher):
    scores = np.array(scores)
    there = ~np.isnan(scores)
    out = np.zeros(len(scores))
    out[there] = stats.rankdata(-scores[there] if higher else scores[there])
    return out


def agreement(a, a_higher, b, b_higher):
    """Tables [repeat][method]."""
    spearman, kendall = [], []
    for x, y in zip(np.array(a), np.array(b)):
        both = ~np.isnan(x) & ~np.isnan(y)
        x, y = places(x[both], a_higher), places(y[both], b_higher)
        defined = both.sum() > 1 and len(set(x)) > 1 and len(set(y)) > 1
        spearman.append(stats.spearmanr(x, y).statistic if defined else nan)
        kendall.append(stats.kendalltau(x, y).statistic if defined else nan)
    return {"a": {"scores": plain(a), "higherIsBetter": a_higher}, "b": {"scores": plain(b), "higherIsBetter": b_higher},
            "spearman": spread(spearman), "kendall": spread(kendall), "undefined": int(np.isnan(spearman).sum())}


def kept(values, higher):
    """The share of 40000 bootstrap samples in which a place stays."""
    v = np.asarray(values, float)
    rank = lambda means: places(means, higher)
    picks = rng.integers(0, v.shape[1], (40000, v.shape[1]))
    drawn = np.array([rank(v[:, p].mean(1)) for p in picks])
    return {"values": plain(v), "higher": higher, "kept": plain((drawn == rank(v.mean(1))).mean(0))}


normal, few = lambda *shape: np.round(rng.normal(size=shape), 6), lambda n, levels: rng.integers(0, levels, n).astype(float)
methods = np.array([0.3, 0.1, 0.5, 0.2, 0.25, 0.7, 0.65, 0.4])
lerf = np.round(methods + 0.1 * normal(35, 8), 2)  # hundredths: ties
morf = np.round(1 - methods + 0.1 * normal(35, 8), 2)
holes, flat = lerf.copy(), morf.copy()
holes[:3, 2] = nan
holes[4, 1:] = nan
holes[5] = nan
flat[7] = 0.5
print(json.dumps({
    "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
    "correlations": [correlation(*pair) for pair in [
        ([], []), ([1.], [2.]), ([1., 1.], [1., 2.]), ([1., 2.], [2., 1.]), ([3., 3., 3.], [1., 2., 3.]), ([5.] * 4, [7.] * 4), ([0., -0.], [1., 2.]),
        ([1., 2., 3.], [1., 2., 3.]), (few(8, 2), few(8, 2)), (few(8, 3), normal(8)), (few(200, 3), few(200, 5)), (normal(301), normal(301)),
        (normal(64) * 1e-300, normal(64) * 1e300)]],
    "spreads": [spread(v) for v in ([], [nan], [2.5], [2.5, nan], [1., 1., 1.], [0.1, 0.1, 0.1], [1., 2.], normal(5), [nan, *normal(35), nan], 1e8 + normal(10))],
    "places": [{"scores": plain(s), "higher": h, "places": plain(places(s, h))} for h in (True, False)
               for s in ([], [1.], [nan], [2., 2., 2.], [.3, .1, nan, .3, .7], normal(8), few(8, 3))],
    "agreements": [agreement(a, ah, b, bh) for a, ah, b, bh in [
        (lerf, True, morf, False), (lerf, True, lerf, True), (lerf, True, lerf, False), (holes, True, morf, False), (lerf, True, flat, False),
        (holes, True, flat, False), (lerf[:1], True, morf[:1], False), (lerf[:, :2], True, morf[:, :2], False), (lerf[:, :1], True, morf[:, :1], False),
        ([[1., 1.], [1., 2.]], True, [[1., 2.], [1., 2.]], True)]],
    "kept": [kept(np.round(normal(4, 30) + [[.3], [.2], [0], [-.6]], 3), h) for h in (True, False)] +
            [kept((rng.random((3, 40)) < [[.7], [.6], [.6]]).astype(float), False)],
}, indent=None, separators=(",", ":")))
