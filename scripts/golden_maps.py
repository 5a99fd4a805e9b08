"""Maps of attribution as numpy writes them, for dataset/maps_test.go.

Run by hand with numpy: python scripts/golden_maps.py. It writes
dataset/testdata/maps/{0000.npz,0001.npz,expected.json}: arrays of several shapes
and types by image id, and their means over channels as numpy computes them.
"""
import json
import pathlib

import numpy as np

out = pathlib.Path(__file__).parent.parent / "dataset" / "testdata" / "maps"
out.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(0)
first = {
    "a/0000.jpg": rng.normal(size=(3, 4, 6)).astype(np.float32),
    "a/0001.jpg": rng.normal(size=(1, 4, 6)),
    "b.c/x y.png": rng.normal(size=(4, 6)).astype(">f4"),
}
second = {"000007": rng.normal(size=(5,)), "b/int.jpg": rng.integers(-9, 9, size=(2, 4, 6))}
np.savez(out / "0000.npz", **first)
np.savez_compressed(out / "0001.npz", **second)
expected = {}
for name, a in {**first, **second}.items():
    mean = a.astype(np.float64)
    mean = mean.mean(axis=0) if a.ndim == 3 else mean
    expected[name] = {"shape": list(mean.shape), "values": mean.ravel().tolist()}
text = {"versions": {"numpy": np.__version__}, "maps": expected}
(out / "expected.json").write_text(json.dumps(text) + "\n")
