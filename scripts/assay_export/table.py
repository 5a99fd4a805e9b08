"""The table of ops in PyTorch, x being [N,...]; csrc/graph/ops.cc is the other one.
What was exported is interpreted by it and compared with the model."""

import torch
from torch.nn import functional as F

from .netfile import DEFAULTS

TABLE = {
    "conv2d": lambda a, x, p: F.conv2d(
        F.pad(x, [a["padding"][i] for i in (1, 3, 0, 2)]),
        *p,
        stride=a["stride"],
        dilation=a["dilation"],
        groups=a["groups"]
    ),
    "conv_transpose2d": lambda a, x, p: F.conv_transpose2d(
        x,
        *(p if a["bias"] else [p[0], None]),
        a["stride"],
        a["padding"][:2],
        a["output_padding"],
        a["groups"],
        a["dilation"]
    ),
    "linear": lambda a, x, p: F.linear(x, *p),
    "matmul": lambda a, x, y, p: x @ (y.transpose(-2, -1) if a["transpose"] else y),
    "batch_norm": lambda a, x, p: F.batch_norm(x, p[2], p[3], p[0], p[1], False, 0.0, a["epsilon"]),
    "layer_norm": lambda a, x, p: F.layer_norm(x, p[0].shape, p[0], p[1], a["epsilon"]),
    "group_norm": lambda a, x, p: F.group_norm(x, a["groups"], p[0], p[1], a["epsilon"]),
    "relu": lambda a, x, p: F.relu(x),
    "relu6": lambda a, x, p: F.relu6(x),
    "leaky_relu": lambda a, x, p: F.leaky_relu(x, a["slope"]),
    "elu": lambda a, x, p: F.elu(x, a["slope"]),
    "gelu": lambda a, x, p: F.gelu(x, approximate="tanh" if a["approximate"] else "none"),
    "silu": lambda a, x, p: F.silu(x),
    "sigmoid": lambda a, x, p: torch.sigmoid(x),
    "tanh": lambda a, x, p: torch.tanh(x),
    "hardswish": lambda a, x, p: F.hardswish(x),
    "hardsigmoid": lambda a, x, p: F.hardsigmoid(x),
    "softmax": lambda a, x, p: torch.softmax(x, a["axis"] + 1),
    "dropout": lambda a, x, p: x,
    "max_pool": lambda a, x, p: F.max_pool2d(x, a["kernel"], a["stride"], a["padding"][:2], a["dilation"], a["ceil"]),
    "avg_pool": lambda a, x, p: F.avg_pool2d(
        x, a["kernel"], a["stride"], a["padding"][:2], a["ceil"], a["count_padding"]
    ),
    "adaptive_avg_pool": lambda a, x, p: F.adaptive_avg_pool2d(x, a["output"]),
    "adaptive_max_pool": lambda a, x, p: F.adaptive_max_pool2d(x, a["output"]),
    "mean": lambda a, x, p: x.mean([axis + 1 for axis in a["axes"]], a["keep"]),
    "upsample": lambda a, x, p: (
        F.interpolate(x, a["output"], mode="bilinear", align_corners=a["align_corners"])
        if a["bilinear"]
        else F.interpolate(x, a["output"])
    ),
    "add": lambda a, x, y, p: x + y,
    "sub": lambda a, x, y, p: x - y,
    "mul": lambda a, x, y, p: x * y,
    "div": lambda a, x, y, p: x / y,
    "affine": lambda a, x, p: x * a["factor"] + a["shift"],
    "concat": lambda a, *xs_p: torch.cat(
        [x.expand(max(len(x) for x in xs_p[:-1]), *x.shape[1:]) for x in xs_p[:-1]], a["axis"] + 1
    ),
    "parameter": lambda a, p: p[0].reshape(1, *a["shape"]),
    "flatten": lambda a, x, p: x.flatten(1),
    "reshape": lambda a, x, p: x.reshape(len(x), *a["shape"]),
    "permute": lambda a, x, p: x.permute(0, *(axis + 1 for axis in a["axes"])),
    "slice": lambda a, x, p: x[(slice(None),) * (a["axis"] + 1) + (slice(a["begin"], a["end"], a["step"]),)],
    "pad": lambda a, x, p: F.pad(x, [a["padding"][i] for i in (1, 3, 0, 2)]),
}


def interpret(file, tensors, x):
    """What a net file computes: logits [N,classes] of x [N,...]."""
    values = {"input": x}
    # Counters are no parameter of the arithmetic.
    tensors = {name: tensor.to(x.dtype) for name, tensor in tensors.items() if tensor.is_floating_point()}
    for op in file["ops"]:
        inputs = [values[name] for name in op["inputs"]]
        parameters = [tensors[name] for name in op.get("parameters", []) if name in tensors]
        values[op["name"]] = TABLE[op["op"]]({**DEFAULTS, **op}, *inputs, parameters)
    return values[file["output"]]
