"""Golden values of tests, adjustments and ranks of package metrics.

Run by hand: python scripts/golden_statistics.py > metrics/testdata/statistics.json
SciPy for Wilcoxon's test and ranks; Holm's adjustment as the closure of Bonferroni's
(the largest adjusted probability of all sets of tests that hold one); ranks in
bootstrap samples by NumPy, of other random numbers than ours and many more.
"""
import itertools
import json

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(4)


def wilcoxon(name, d):
    d = np.asarray(d, float)
    nonzero = d[d != 0]
    exact = len(nonzero) <= 50
    tied = len(np.unique(np.abs(nonzero))) < len(nonzero)
    if exact and tied:  # all assignments of signs
        assert len(nonzero) <= 14, name
        method = stats.PermutationMethod(n_resamples=np.inf)
    else:
        method = "exact" if exact else "asymptotic"
    r = stats.wilcoxon(nonzero, zero_method="wilcox", correction=False, method=method)
    return {"name": name, "differences": d.tolist(), "statistic": float(r.statistic), "p": float(r.pvalue), "n": len(nonzero), "exact": exact}


def holm(p):
    p = np.asarray(p, float)
    out = []
    for i in range(len(p)):
        sets = (s for k in range(len(p)) for s in itertools.combinations([j for j in range(len(p)) if j != i], k))
        out.append(max(float(min(1, (len(s) + 1) * min(p[[i, *s]]))) for s in sets))
    return out


def standings(values, higher):
    v = np.asarray(values, float)
    sign = -1 if higher else 1
    place = lambda m: stats.rankdata(sign * m)
    picks = rng.integers(0, v.shape[1], (40000, v.shape[1]))
    drawn = np.array([place(np.nanmean(v[:, p], axis=1)) for p in picks])
    first = drawn == drawn.min(axis=1, keepdims=True)
    return {"values": [[None if np.isnan(x) else float(x) for x in row] for row in v], "higher": higher, "ranks": place(np.nanmean(v, axis=1)).tolist(),
            "lo": np.quantile(drawn, .025, axis=0, method="inverted_cdf").tolist(), "hi": np.quantile(drawn, .975, axis=0, method="inverted_cdf").tolist(),
            "best": (first / first.sum(axis=1, keepdims=True)).mean(axis=0).tolist()}


round3 = lambda x: np.round(x, 3)
near = round3(rng.normal(0, 1, (4, 30)) + np.array([[.3], [.2], [0], [-.6]]))
holes = near.copy()
holes[1, :7] = np.nan
print(json.dumps({
    "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
    "wilcoxon": [
        wilcoxon("one", [2.5]),
        wilcoxon("small", round3(rng.normal(.4, 1, 9))),
        wilcoxon("all positive", [1, 2, 3, 4, 5]),
        wilcoxon("fifty", round3(rng.normal(.3, 1, 50)) + np.arange(50) * 1e-5),
        wilcoxon("shared ranks", [1, 1, -1, 2, 2, 3, -3, 4, 5, 5, -2, 1]),
        wilcoxon("zeros", [0, 0, 1.5, -2.5, 3.5, 0, 4.5, 5.5, 6.5]),
        wilcoxon("zeros and shared ranks", [0, 1, 1, -1, 2, 0, 2, 3, 3, 4]),
        wilcoxon("eighty", round3(rng.normal(.2, 1, 80)) + np.arange(80) * 1e-5),
        wilcoxon("eighty with shared ranks and zeros", rng.integers(-3, 5, 80)),
    ],
    "holm": [{"p": p, "adjusted": holm(p)} for p in ([.01, .04, .03, .005], [.5], [.2, .2, .2], [.001, .9, .01, .02, .6, .04], [1, 0])],
    "standings": [standings(near, True), standings(near, False), standings(holes, True)],
}, indent=1))
