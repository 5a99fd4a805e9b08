#!/usr/bin/env python3
"""Golden files of package weights: writes weights/testdata.

Run by hand from the repository's root, with torch and safetensors installed:
    python scripts/golden_weights.py
expected.json holds, for each file that can be read, the names in order, types,
shapes and bytes (base64; contiguous, little-endian) as torch itself loads them.
"""

import base64
import collections
import json
import os
import pickle
import shutil
import sys
import zipfile

import safetensors
import safetensors.torch
import torch
from torch import nn

OUT = "weights/testdata"
DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
    torch.bool: "bool",
}
expected = {"made with": f"torch {torch.__version__}, safetensors {safetensors.__version__}, Python {sys.version.split()[0]}"}


def ramp(*shape, dtype=torch.float32):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.float64) * 0.75 - 2).to(dtype).reshape(shape)


def raw(t):
    t = t.detach().clone(memory_format=torch.contiguous_format).contiguous()
    return bytes(t.reshape(-1).view(torch.uint8).numpy()) if t.numel() else b""


def expect(name, state):
    expected[name] = [
        {"name": k, "dtype": DTYPES[v.dtype], "shape": list(v.shape), "data": base64.b64encode(raw(v)).decode()}
        for k, v in state.items()
    ]


def path(name):
    return os.path.join(OUT, name)


def mixed():
    d = collections.OrderedDict()
    d["conv.weight"] = nn.Parameter(ramp(2, 3, 1, 2))
    d["half"] = ramp(5, dtype=torch.float16)
    d["brain"] = ramp(2, 2, dtype=torch.bfloat16)
    d["double"] = ramp(3, dtype=torch.float64)
    d["bn.num_batches_tracked"] = torch.tensor(1234567890123)
    d["u8"] = torch.arange(250, 256, dtype=torch.uint8)
    d["i8"] = torch.arange(-3, 3, dtype=torch.int8)
    d["i16"] = torch.arange(-300, 300, 200, dtype=torch.int16)
    d["i32"] = torch.arange(-70000, 70000, 60000, dtype=torch.int32)
    d["flags"] = torch.tensor([True, False, True])
    d["empty"] = torch.zeros(0, 3)
    d["scalar"] = torch.tensor(2.5)
    base = ramp(4, 6)
    d["transposed"] = base.t()
    d["window"] = base[1:3, 1:6:2]
    d["shared"] = base
    d["tail"] = base.reshape(-1)[20:]
    d["channels_last"] = ramp(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    d["expanded"] = ramp(3, 1).expand(3, 4)
    marked = nn.Parameter(ramp(2))
    marked.note = "an attribute"
    d["attributed"] = marked
    return d


def rewrite_zip(src, dst, change, zip64=False):
    """Copies a zip record by record; change(name, data) -> (name, data) or None."""
    with zipfile.ZipFile(src) as a, zipfile.ZipFile(dst, "w", zipfile.ZIP_STORED) as b:
        for info in a.infolist():
            changed = change(info.filename, a.read(info))
            if changed is None:
                continue
            fresh = zipfile.ZipInfo(changed[0], (1980, 1, 1, 0, 0, 0))
            with b.open(fresh, "w", force_zip64=zip64) as f:
                f.write(changed[1])


class Run:
    """Pickles as a call of os.system."""

    def __reduce__(self):
        return (os.system, ("touch weights-test-was-here",))


class Python2Dict:
    """Pickles as Python 2 did an OrderedDict: entries as an argument."""

    def __init__(self, state):
        self.state = state

    def __reduce__(self):
        return (collections.OrderedDict, ([[k, v] for k, v in self.state.items()],))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)

    state = mixed()
    for name, options in {
        "zip.pth": {},
        "legacy.pth": {"_use_new_zipfile_serialization": False},
        "zip-protocol4.pth": {"pickle_protocol": 4},
        "legacy-protocol4.pth": {"pickle_protocol": 4, "_use_new_zipfile_serialization": False},
    }.items():
        torch.save(state, path(name), **options)
        expect(name, torch.load(path(name), weights_only=False))

    # Another folder name, zip64 records.
    rewrite_zip(path("zip.pth"), path("zip64.pth"), lambda n, d: ("another/" + n.split("/", 1)[1], d), zip64=True)
    expected["zip64.pth"] = expected["zip.pth"]

    small = collections.OrderedDict(weight=ramp(2, 3), bias=ramp(2), steps=torch.tensor(258))
    torch.save(small, path("small.pth"))
    expect("small.pth", small)
    torch.save(small, path("small-legacy.pth"), _use_new_zipfile_serialization=False)
    expect("small-legacy.pth", small)
    sizes = {str(i): t.element_size() for i, t in enumerate(small.values())}

    def big(name, data):
        folder, _, rest = name.partition("/")
        if rest == "byteorder":
            return name, b"big"
        if rest.startswith("data/"):
            n = sizes[rest[5:]]
            data = b"".join(data[i:i + n][::-1] for i in range(0, len(data), n))
        return name, data

    rewrite_zip(path("small.pth"), path("bigendian.pth"), big)
    loaded = torch.load(path("bigendian.pth"))
    assert all(torch.equal(loaded[k], small[k]) for k in small)
    expect("bigendian.pth", loaded)

    torch.serialization.set_crc32_options(False)
    torch.save(small, path("nocrc.pth"))
    torch.serialization.set_crc32_options(True)
    expect("nocrc.pth", small)

    torch.save(Python2Dict(small), path("python2.pth"), _use_new_zipfile_serialization=False)
    expect("python2.pth", small)

    # A training script's checkpoint of a net under DataParallel.
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(ramp(*p.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net(ramp(5, 3)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    parallel = collections.OrderedDict(("module." + k, v) for k, v in net.state_dict().items())
    checkpoint = {
        "epoch": 3, "arch": "mlp", "best_prec1": torch.tensor(81.5), "state_dict": parallel,
        "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
        "device": torch.device("cpu"), "size": torch.Size([2, 3]), "rng": b"\x01\x02", "seen": {1, 2},
    }
    for name, options in {
        "checkpoint.pth": {},
        "checkpoint-legacy.pth": {"_use_new_zipfile_serialization": False},
    }.items():
        torch.save(checkpoint, path(name), **options)
        expect(name, net.state_dict())
    torch.save({"epoch": 1, "model": {"state_dict": net.state_dict(), "ema": None}}, path("nested.pth"))
    expect("nested.pth", net.state_dict())

    # Adversarial nets in one file, as ROAD's public code keeps its generator.
    generator = nn.Sequential(nn.utils.spectral_norm(nn.Conv2d(2, 3, 1)), nn.BatchNorm2d(3))
    generator.load_state_dict({k: ramp(*v.shape, dtype=v.dtype) for k, v in generator.state_dict().items()})
    gan = {"generator": collections.OrderedDict(("net." + k, v) for k, v in generator.state_dict().items()), "mfv": ramp(1, 2, 3)}
    torch.save(gan, path("generator.pth"))
    expect("generator.pth", {**{"generator." + k: v for k, v in gan["generator"].items()}, "mfv": gan["mfv"]})

    # Not to be read.
    torch.save({"state_dict": small, "hook": Run()}, path("malicious.pth"))
    torch.save(Run(), path("malicious-legacy.pth"), _use_new_zipfile_serialization=False)
    for protocol in (0, 2, 4):
        with open(path(f"malicious-{protocol}.pkl"), "wb") as f:
            pickle.dump(Run(), f, protocol=protocol)
    torch.save(nn.Linear(2, 2), path("module.pth"))
    torch.save({"epoch": 3}, path("no-tensors.pth"))
    torch.save(ramp(2), path("one-tensor.pth"))
    torch.save({"w": torch.zeros(2, dtype=torch.complex64)}, path("complex.pth"))
    torch.save({"w": torch.zeros(2, dtype=torch.uint16)}, path("uint16.pth"))
    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), ramp(1, 2)), path("traced.pt"))
    # Without the debug records: they name files of the machine.
    rewrite_zip(path("traced.pt"), path("script.pt"), lambda n, d: None if n.endswith(".debug_pkl") else (n, d))
    os.remove(path("traced.pt"))
    with open(path("plain.pkl"), "wb") as f:
        pickle.dump({"a": [1, 2]}, f, protocol=2)

    # safetensors: all types, and a plain one that our writer has to equal.
    contiguous = {k: v.detach().clone(memory_format=torch.contiguous_format).contiguous() for k, v in state.items()}
    safetensors.torch.save_file(contiguous, path("all.safetensors"), metadata={"format": "pt"})
    with safetensors.safe_open(path("all.safetensors"), "pt") as f:
        expect("all.safetensors", {k: f.get_tensor(k) for k in sorted(contiguous)})
    plain = {"fc.weight": ramp(2, 3), "fc.bias": ramp(2), "a\"<é>": ramp(1)}
    safetensors.torch.save_file(plain, path("plain.safetensors"), metadata={"by": "assay <test>"})
    expect("plain.safetensors", plain)

    with open(path("expected.json"), "w") as f:
        json.dump(expected, f, indent=0, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()
