#!/usr/bin/env python3
"""Writes dataset/testdata: small arrays as NumPy saves them, with known values.

Every array holds i/4 for its i-th element (i modulo 256 for integers), so that
the test needs no second list of values. Run from the repository root.
"""
import gzip
import json
import pathlib

import numpy as np
import sklearn
from sklearn import datasets

OUT = pathlib.Path("dataset/testdata")
OUT.mkdir(parents=True, exist_ok=True)


def ramp(shape, dtype):
    n = int(np.prod(shape))
    values = np.arange(n) / 4 if np.dtype(dtype).kind == "f" else np.arange(n) % 256
    return values.astype(dtype).reshape(shape)


for name, shape, dtype in [
    ("f4-nchw", (3, 2, 2, 2), "<f4"),
    ("f8-nf", (4, 5), "<f8"),
    ("f8-big-endian", (4, 5), ">f8"),
    ("u1-nhw", (3, 4, 4), "|u1"),
    ("i8", (4, 2), "<i8"),
    ("f2", (2, 2), "<f2"),
    ("scalar", (), "<f4"),
    ("flat", (7,), "<f4"),
]:
    np.save(OUT / f"{name}.npy", ramp(shape, dtype))
np.save(OUT / "fortran.npy", np.asfortranarray(ramp((4, 5), "<f4")))
with gzip.GzipFile(OUT / "f4-nf.npy.gz", "wb", mtime=0) as f:
    np.save(f, ramp((2, 3), "<f4"))
np.savez(OUT / "xy.npz", x=ramp((6, 3), "<f4"), y=np.array([0, 1, 2, 0, 1, 2]))
np.savez_compressed(OUT / "splits.npz", x_train=ramp((3, 2), "<f4"), y_train=np.array([0, 1, 0], "u1"),
                    x_test=ramp((2, 2), "<f4"), y_test=np.array([[1], [0]], "<i4"))
np.savez(OUT / "other.npz", weights=ramp((2, 2), "<f4"))

tables = {}
for name in ["digits", "breast_cancer", "iris", "wine"]:
    d = getattr(datasets, "load_" + name)()
    tables[name] = {
        "shape": list(d.data.shape),
        "mean": d.data.mean(0).tolist(),
        "std": d.data.std(0).tolist(),
        "counts": np.bincount(d.target).tolist(),
        "names": [str(n).removesuffix(" (cm)") for n in d.feature_names],
        "first": d.data[0].tolist(),
        "classes": [str(n) for n in d.target_names],
    }
tables["made by"] = f"scripts/golden_dataset.py, scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
(OUT / "tables.json").write_text(json.dumps(tables, indent=1) + "\n")
