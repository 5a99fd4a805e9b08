"""Golden values of metrics: SciPy's rank correlations, with ties and tiny inputs.

Run by hand: python scripts/golden_metrics.py > metrics/testdata/correlation.json
"""
import json

import numpy as np
import scipy
from scipy import stats

r = np.random.default_rng(0)
pairs = [([1, 2], [5, 3]), ([1, 2, 3], [1, 3, 2]), ([1, 1, 2], [3, 4, 4]), ([1, 2, 2, 2, 5], [2, 2, 7, 1, 9])]
for n in (5, 12, 49):
    pairs.append((r.normal(size=n).tolist(), r.normal(size=n).tolist()))
    pairs.append((r.integers(0, 4, n).tolist(), r.integers(0, 4, n).tolist()))
cases = [
    {"x": x, "y": y, "spearman": float(stats.spearmanr(x, y).statistic), "kendall": float(stats.kendalltau(x, y).statistic),
     "ranks": stats.rankdata(x).tolist()}
    for x, y in pairs
]
print(json.dumps({"versions": {"scipy": scipy.__version__, "numpy": np.__version__}, "cases": cases}))
