#!/usr/bin/env python3
"""Writes dataset/testdata: small files of every format, with known values.

Every array holds i/4 for its i-th element (i modulo 256 for integers), and
every image (7 n + 11 c + 5 y + 3 x) modulo 256 (n: its number in its file), so
that the tests need no second list of values. What torchvision reads, its
readers are held against here. Run from the repository root.
"""
import gzip
import io
import json
import pathlib
import pickle
import struct
import tarfile
import tempfile

import numpy as np
import scipy
import scipy.io
import sklearn
import torchvision
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


def images(count, channels, height, width, first=0):
    n, c, y, x = np.ogrid[first:first + count, :channels, :height, :width]
    return ((7 * n + 11 * c + 5 * y + 3 * x) % 256).astype(np.uint8)


def tar_gz(path, files):
    """files: name -> bytes. The same bytes at every run."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(raw.getvalue(), mtime=0))


def unpacked(path):
    folder = tempfile.TemporaryDirectory()
    with tarfile.open(path) as tar:
        tar.extractall(folder.name, filter="data")
    return folder


# idx: the header of http://yann.lecun.com/exdb/mnist.
IDX = OUT / "idx"
IDX.mkdir(exist_ok=True)
for part, count in [("train", 5), ("t10k", 3)]:
    pixels = images(count, 1, 6, 4)
    content = struct.pack(">IIII", 0x803, count, 6, 4) + pixels.tobytes()
    labels = struct.pack(">II", 0x801, count) + bytes(i % 3 for i in range(count))
    if part == "train":
        with gzip.GzipFile(IDX / "train-images-idx3-ubyte.gz", "wb", mtime=0) as f:
            f.write(content)
        with gzip.GzipFile(IDX / "train-labels-idx1-ubyte.gz", "wb", mtime=0) as f:
            f.write(labels)
    else:
        (IDX / "t10k-images-idx3-ubyte").write_bytes(content)
        (IDX / "t10k-labels-idx1-ubyte").write_bytes(labels)
        read = torchvision.datasets.mnist.read_image_file(str(IDX / "t10k-images-idx3-ubyte"))
        assert (read.numpy() == pixels[:, 0]).all()
        read = torchvision.datasets.mnist.read_label_file(str(IDX / "t10k-labels-idx1-ubyte"))
        assert read.tolist() == [i % 3 for i in range(count)]

# CIFAR, binary: label(s), then red, green, blue.
CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
COARSE = [f"coarse{i}" for i in range(20)]
FINE = [f"fine{i}" for i in range(100)]


def labels10(count, first=0):
    return [(3 * i + 1) % 10 for i in range(first, first + count)]


def labels100(count):
    return [(37 * i + 5) % 100 for i in range(count)]


def rows(pixels, *labels):
    return b"".join(bytes(l) + p.tobytes() for p, l in zip(pixels, zip(*labels)))


batches10 = {f"data_batch_{b}": (images(2, 3, 32, 32, 2 * b), labels10(2, 2 * b)) for b in range(1, 6)}
batches10["test_batch"] = (images(3, 3, 32, 32), labels10(3))
top = "cifar-10-batches-bin"
files = {f"{top}/batches.meta.txt": ("\n".join(CIFAR10) + "\n\n").encode()}
for name, (pixels, labels) in batches10.items():
    files[f"{top}/{name}.bin"] = rows(pixels, labels)
tar_gz(OUT / "cifar-10-binary.tar.gz", files)

batches100 = {"train": (images(4, 3, 32, 32), labels100(4)), "test": (images(2, 3, 32, 32), labels100(2))}
top = "cifar-100-binary"
files = {f"{top}/coarse_label_names.txt": ("\n".join(COARSE) + "\n").encode(),
         f"{top}/fine_label_names.txt": ("\n".join(FINE) + "\n").encode()}
for name, (pixels, labels) in batches100.items():
    files[f"{top}/{name}.bin"] = rows(pixels, [l // 5 for l in labels], labels)
tar_gz(OUT / "cifar-100-binary.tar.gz", files)

# CIFAR, pickled. Python 2 wrote the published files (protocol 2, str); Python 3
# can write str as Python 2 did only by hand, so: its own protocols, with keys
# of both kinds, as files that were read and written again have them.


def py2(value, out):
    """Protocol 2 as Python 2's pickler wrote it: SHORT_BINSTRING and BINSTRING."""
    if isinstance(value, dict):
        out += b"}("
        for k, v in value.items():
            py2(k, out), py2(v, out)
        out += b"u"
    elif isinstance(value, list):
        out += b"]("
        for v in value:
            py2(v, out)
        out += b"e"
    elif isinstance(value, str):
        out += b"U" + bytes([len(value)]) + value.encode()
    elif isinstance(value, int):
        out += b"K" + bytes([value])
    else:
        raw = value.tobytes()
        out += b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\x01b\x87R(K\x01"
        out += b"J" + struct.pack("<i", value.shape[0]) + b"J" + struct.pack("<i", value.shape[1]) + b"\x86"
        out += b"cnumpy\ndtype\nU\x02u1K\0K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
        out += b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb"


def dumps2(value):
    out = bytearray(b"\x80\x02")
    py2(value, out)
    return bytes(out + b".")


def batch(pixels, labels, fine=True):
    data = pixels.reshape(len(pixels), -1)
    names = [f"{i}.png" for i in range(len(labels))]
    if not fine:
        return {"batch_label": "batch", "labels": labels, "data": data, "filenames": names}
    return {"filenames": names, "batch_label": "batch", "fine_labels": labels,
            "coarse_labels": [l // 5 for l in labels], "data": data}


def byte_keys(d):
    return {k.encode(): v for k, v in d.items()}


top = "cifar-10-batches-py"
files = {f"{top}/batches.meta": dumps2({"num_cases_per_batch": 2, "label_names": CIFAR10, "num_vis": 255})}
writers = [dumps2, lambda d: pickle.dumps(d, 2), lambda d: pickle.dumps(d, 3), lambda d: pickle.dumps(byte_keys(d), 4),
           lambda d: pickle.dumps(d | {"data": np.asfortranarray(d["data"])}, 5), dumps2]
for (name, (pixels, labels)), write in zip(batches10.items(), writers, strict=True):
    files[f"{top}/{name}"] = write(batch(pixels, labels, fine=False))
    assert (pickle.loads(files[f"{top}/{name}"], encoding="latin1").get("data", pixels.reshape(len(pixels), -1)) == pixels.reshape(len(pixels), -1)).all()
tar_gz(OUT / "cifar-10-python.tar.gz", files)

top = "cifar-100-python"
files = {f"{top}/meta": dumps2({"fine_label_names": FINE, "coarse_label_names": COARSE})}
for name, (pixels, labels) in batches100.items():
    files[f"{top}/{name}"] = dumps2(batch(pixels, labels))
tar_gz(OUT / "cifar-100-python.tar.gz", files)

for cls, path in [(torchvision.datasets.CIFAR10, "cifar-10-python.tar.gz"), (torchvision.datasets.CIFAR100, "cifar-100-python.tar.gz")]:
    cls._check_integrity = lambda self: True
    torchvision.datasets.cifar.check_integrity = lambda *_: True
    batches = batches10 if cls is torchvision.datasets.CIFAR10 else batches100
    if cls is torchvision.datasets.CIFAR10:  # it has no patience with keys in bytes
        cls.train_list = [e for e in cls.train_list if e[0] != "data_batch_4"]
    with unpacked(OUT / path) as folder:
        for train in [True, False]:
            read = cls(folder, train=train)
            want = [v for k, v in batches.items() if ("test" in k) != train and k != "data_batch_4"]
            assert (read.data.transpose(0, 3, 1, 2) == np.concatenate([p for p, _ in want])).all()
            assert read.targets == [l for _, ls in want for l in ls]
            assert read.classes == (CIFAR10 if cls is torchvision.datasets.CIFAR10 else FINE)

# SVHN: MATLAB files as SciPy writes them, compressed and not.
SVHN = OUT / "svhn"
SVHN.mkdir(exist_ok=True)
digits = {"train": [1, 10, 3, 9], "test": [10, 2, 7], "extra": [5]}
for part, y in digits.items():
    pixels = images(len(y), 3, 32, 32)
    x = pixels.transpose(2, 3, 1, 0)  # [H,W,C,N]
    y = np.array(y, "u1" if part == "train" else "f8")[:, None]
    other = {"note": "digits", "cells": np.array([1, "a"], object)} if part == "test" else {}
    scipy.io.savemat(SVHN / f"{part}_32x32.mat", {**other, "X": x, "y": y}, do_compression=part != "test")
torchvision.datasets.svhn.check_integrity = lambda *_: True
for part, y in digits.items():
    read = torchvision.datasets.SVHN(SVHN, split=part)
    assert (read.data == images(len(y), 3, 32, 32)).all()
    assert np.atleast_1d(read.labels).tolist() == [d % 10 for d in y]
for path in SVHN.iterdir():  # the header says when it was written
    b = path.read_bytes()
    path.write_bytes(b"MATLAB 5.0 MAT-file, SciPy".ljust(116) + b[116:])

# ImageNet's development kit: meta.mat as scipy writes it, with the fields of the
# published one (readme.txt 2.3), for the classes of the first three validation
# images and two groups of classes; torchvision reads the same from it.
DEVKIT = OUT / "devkit"
DEVKIT.mkdir(exist_ok=True)
SYNSETS = [(171, "n02105855", "Shetland sheepdog, Shetland sheep dog, Shetland"), (361, "n09193705", "alp"),
           (490, "n01751748", "sea snake"), (1001, "n00001740", "entity"), (1002, "n00001930", "physical entity")]
fields = ["ILSVRC2012_ID", "WNID", "words", "gloss", "num_children", "children", "wordnet_height", "num_train_images"]
synsets = np.zeros((len(SYNSETS), 1), [(f, object) for f in fields])
for row, (number, wnid, words) in zip(synsets, SYNSETS):
    group = number > 1000
    children = np.array([171.0, 361.0]) if group else np.array([])
    row[0] = (float(number), wnid, words, "what it is" * 20, 2.0 if group else 0.0, children, float(group), 1300.0)
GROUND_TRUTH = [490, 361, 171, 490]
for name, compress in [("meta.mat", True), ("plain.mat", False)]:
    scipy.io.savemat(DEVKIT / name, {"other": np.ones((2, 2)), "synsets": synsets}, do_compression=compress)
    b = (DEVKIT / name).read_bytes()
    (DEVKIT / name).write_bytes(b"MATLAB 5.0 MAT-file, SciPy".ljust(116) + b[116:])
    with tempfile.TemporaryDirectory() as folder:
        tar_gz(pathlib.Path(folder) / "ILSVRC2012_devkit_t12.tar.gz", {
            "ILSVRC2012_devkit_t12/data/meta.mat": (DEVKIT / name).read_bytes(),
            "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": "".join(f"{n}\n" for n in GROUND_TRUTH).encode()})
        torchvision.datasets.imagenet._verify_archive = lambda *_: None
        torchvision.datasets.imagenet.check_integrity = lambda *_: True
        torchvision.datasets.imagenet.parse_devkit_archive(folder)
        _, val = torchvision.datasets.imagenet.load_meta_file(folder)
        assert val == ["n01751748", "n09193705", "n02105855", "n01751748"], val
