"""Convolutions, norms, pooling and resizing."""

import math

import torch

from .mapper import HANDLERS, maps
from .values import BATCH, Constant, IMAGE, Missing, Refused, Row, axes_of, pair


def convolution(c, x, weight, bias, stride, padding, dilation, groups, transposed=False, output_padding=(0, 0)):
    if not isinstance(weight, Constant) or not isinstance(bias, (Constant, type(None))):
        raise Refused("weights that depend on the input")
    if weight.tensor.dim() != 4:
        raise Refused(f"a convolution over {weight.tensor.dim() - 2} axes: want 2, height and width")
    x = c.rows_first(x, 4)
    kernel = list(weight.tensor.shape[2:])
    stride, dilation = pair(stride), pair(dilation)
    if isinstance(padding, str):
        total = [d * (k - 1) if padding == "same" else 0 for k, d in zip(kernel, dilation)]
        sides = [total[0] // 2, total[1] // 2, total[0] - total[0] // 2, total[1] - total[1] // 2]
    else:
        sides = pair(padding) * 2
    channels = weight.tensor.shape[1] * groups if transposed else weight.tensor.shape[0]
    extra = pair(output_padding)
    sizes = [channels]
    for axis in range(2):
        size, room = x.sizes[axis + 1], sides[axis] + sides[axis + 2]
        extent = dilation[axis] * (kernel[axis] - 1) + 1
        sizes.append(
            (size - 1) * stride[axis] - room + extent + extra[axis]
            if transposed
            else (size + room - extent) // stride[axis] + 1
        )
    attributes = {
        "channels": channels,
        "bias": bias is not None,
        "kernel": kernel,
        "stride": stride,
        "padding": sides,
        "dilation": dilation,
        "groups": groups,
    }
    if transposed:
        attributes["output_padding"] = extra
    parameters = [c.parameter(weight, "weight")] + ([] if bias is None else [c.parameter(bias, "bias")])
    return c.row("conv_transpose2d" if transposed else "conv2d", [x.id], sizes, x.dims, IMAGE, attributes, parameters)


@maps("conv2d")
def _(c, a):
    return convolution(c, a["input"], a["weight"], a["bias"], a["stride"], a["padding"], a["dilation"], a["groups"])


@maps("conv_transpose2d")
def _(c, a):
    return convolution(
        c,
        a["input"],
        a["weight"],
        a["bias"],
        a["stride"],
        a["padding"],
        a["dilation"],
        a["groups"],
        True,
        a["output_padding"],
    )


@maps("convolution", "conv1d", "conv3d")
def _(c, a):
    return convolution(
        c,
        a["input"],
        a["weight"],
        a["bias"],
        a["stride"],
        a["padding"],
        a["dilation"],
        a["groups"],
        a.get("transposed", False),
        a.get("output_padding", (0, 0)),
    )


def norm_parameters(c, shape, *named):
    """Indices of a norm's parameters; where the module has none, neutral ones."""
    indices = []
    for value, suffix, neutral in named:
        if value is None:
            value = Constant(torch.full(shape, neutral))
        if not isinstance(value, Constant):
            raise Refused("weights that depend on the input")
        indices.append(c.parameter(value, suffix))
    return indices


def with_statistics(out, a):
    """The native forms of norms also return what they normalised by."""
    return out if a["out"] is not None else [out] + [Missing("statistics of a norm")] * 4


@maps(
    "batch_norm",
    "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit",
    "native_batch_norm",
    "cudnn_batch_norm",
)
def _(c, a):
    x = c.rows_first(a["input"])
    mean, var = a.get("running_mean"), a.get("running_var")
    if a.get("training") or mean is None or var is None:
        raise Refused(
            "a batch norm that normalises by the batch at hand: rows of the batch would be mixed; want track_running_stats=True and eval()"
        )
    indices = norm_parameters(
        c,
        [x.sizes[0]],
        (a["weight"], "weight", 1.0),
        (a["bias"], "bias", 0.0),
        (mean, "running_mean", 0.0),
        (var, "running_var", 1.0),
    )
    counter = (mean.origin or "").removesuffix("running_mean") + "num_batches_tracked"
    if mean.origin and counter in c.state:
        indices.append(c.named(counter))
    # In training only; 0 is a module's word for a mean over all batches, which files cannot say.
    momentum = {"momentum": float(a["momentum"])} if a.get("momentum") else {}
    out = c.row(
        "batch_norm",
        [x.id],
        x.sizes,
        x.dims,
        x.plane,
        {"epsilon": float(a.get("eps", a.get("epsilon"))), **momentum},
        indices,
    )
    return with_statistics(out, a)


@maps("layer_norm", "native_layer_norm")
def _(c, a):
    x, shape = a["input"], [int(s) for s in a["normalized_shape"]]
    for dim in range(1, len(shape) + 1):
        c.unbatched(x, len(x.dims) - dim, "a layer norm")
    x = c.arranged(x)
    indices = norm_parameters(c, shape, (a["weight"], "weight", 1.0), (a["bias"], "bias", 0.0))
    out = c.row(
        "layer_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a["eps"]), "dimensions": len(shape)}, indices
    )
    return with_statistics(out, a)


@maps("group_norm", "native_group_norm")
def _(c, a):
    x = c.rows_first(a["input"])
    indices = norm_parameters(c, [x.sizes[0]], (a["weight"], "weight", 1.0), (a["bias"], "bias", 0.0))
    out = c.row(
        "group_norm",
        [x.id],
        x.sizes,
        x.dims,
        x.plane,
        {"epsilon": float(a["eps"]), "groups": int(a.get("num_groups", a.get("group")))},
        indices,
    )
    return with_statistics(out, a)


@maps("instance_norm")
def _(c, a):
    if not a["use_input_stats"]:
        return HANDLERS["aten::batch_norm"](c, {**a, "training": False})
    x = c.rows_first(a["input"])
    indices = norm_parameters(c, [x.sizes[0]], (a["weight"], "weight", 1.0), (a["bias"], "bias", 0.0))
    return c.row(
        "group_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a["eps"]), "groups": x.sizes[0]}, indices
    )


# ---- handlers: pooling and resizing


def pooled(c, a, op, **more):
    x = c.rows_first(a["self"], 4)
    kernel = pair(a["kernel_size"])
    padding = pair(a["padding"])
    attributes = {
        "kernel": kernel,
        "stride": pair(a["stride"] or [], kernel),
        "padding": padding * 2,
        "ceil": bool(a["ceil_mode"]),
        **more,
    }
    out = a["out"] if a["out"] is not None else a["outs"]
    return c.row(op, [x.id], out[1:], x.dims, IMAGE, attributes)


def pooled_size(size, kernel, stride, padding, dilation, ceil):
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    positions = (room + (stride - 1 if ceil else 0)) // stride + 1
    return positions - 1 if ceil and (positions - 1) * stride >= size + padding else positions


@maps("max_pool2d", "max_pool2d_with_indices")
def _(c, a):
    dilation = pair(a["dilation"])
    tuple_of = a["out"] is None
    if tuple_of:
        kernel, padding = pair(a["kernel_size"]), pair(a["padding"])
        stride = pair(a["stride"] or [], kernel)
        x = c.rows_first(a["self"], 4)
        a["outs"] = [0, x.sizes[0]] + [
            pooled_size(x.sizes[i + 1], kernel[i], stride[i], padding[i], dilation[i], a["ceil_mode"]) for i in range(2)
        ]
    out = pooled(c, a, "max_pool", dilation=dilation)
    return [out, Missing("indices of a maximum")] if tuple_of else out


@maps("avg_pool2d")
def _(c, a):
    kernel = pair(a["kernel_size"])
    if a["divisor_override"] not in (None, kernel[0] * kernel[1]):
        raise Refused(f"divisor_override={a['divisor_override']}")
    return pooled(c, a, "avg_pool", count_padding=bool(a["count_include_pad"]))


@maps("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def _(c, a):
    x = c.rows_first(a["self"], 4)
    return c.row("adaptive_avg_pool", [x.id], a["out"][1:], x.dims, IMAGE, {"output": a["out"][2:]})


@maps("adaptive_max_pool2d")
def _(c, a):
    x = c.rows_first(a["self"], 4)
    output = [int(s) for s in a["output_size"]]
    return [
        c.row("adaptive_max_pool", [x.id], [x.sizes[0]] + output, x.dims, IMAGE, {"output": output}),
        Missing("indices of a maximum"),
    ]


@maps("avg_pool1d", "max_pool1d", "adaptive_avg_pool1d", "conv_transpose1d", "conv_transpose3d")
def _(c, a):
    raise Refused("assay knows images and tables, no sequences: use the 2-D op on [N,C,1,L]")


@maps("upsample_nearest2d", "upsample_bilinear2d")
def _(c, a):
    x = c.rows_first(a["input"] if "input" in a else a["self"], 4)
    output = a["out"][2:]
    scales = a.get("scale_factors") or [a.get("scales_h"), a.get("scales_w")]
    for size, wanted, scale in zip(x.sizes[1:], output, scales):
        if scale is not None and abs(size * scale - wanted) > 1e-6:
            raise Refused(f"a scale of {scale} for {size} pixels: want a whole number of pixels")
    bilinear = "align_corners" in a
    return c.row(
        "upsample",
        [x.id],
        a["out"][1:],
        x.dims,
        IMAGE,
        {"output": output, "bilinear": bilinear, "align_corners": bool(a.get("align_corners"))},
    )


def mean(c, a, total=False):
    x = a["self"]
    dims = axes_of(a.get("dim"), len(x.dims)) or list(range(len(x.dims)))
    for dim in dims:
        c.unbatched(x, dim, "a sum" if total else "a mean")
    axes = sorted(axis for dim in dims for axis in x.dims[dim])
    keep = bool(a.get("keepdim"))
    out = x.seen_as(x.dims, x.place)
    count = math.prod(x.sizes[axis] for axis in axes)
    if axes:
        sizes = [s for i, s in enumerate(x.sizes) if i not in axes]
        new = {old: i for i, old in enumerate(i for i in range(len(x.sizes)) if i not in axes)} | {BATCH: BATCH}
        kept = [() if i in dims else tuple(new[axis] for axis in d) for i, d in enumerate(x.dims)]
        plane = tuple(new[axis] for axis in x.plane) if x.plane and not set(x.plane) & set(axes) else None
        out = c.row("mean", [x.id], sizes, kept, plane, {"axes": axes})
    if not keep:
        out = out.seen_as([d for i, d in enumerate(out.dims) if i not in dims], c.place)
    return c.affine(out, count) if total else out


maps("mean")(mean)
maps("sum")(lambda c, a: mean(c, a, total=True))


@maps("amax", "max")
def _(c, a):
    """The maximum over an image's height and width."""
    x = a["self"]
    if not isinstance(x, Row) or "other" in a or a.get("dim") is None:
        raise Refused("assay has no such op")
    dims = axes_of(a["dim"], len(x.dims))
    if dims != [2, 3] or len(x.dims) != 4:
        raise Refused("assay has no such op: a maximum over height and width alone")
    x = c.rows_first(x, 4)
    out = c.row("adaptive_max_pool", [x.id], [x.sizes[0], 1, 1], x.dims, IMAGE, {"output": [1, 1]})
    if a["keepdim"]:
        return out
    return out.seen_as(out.dims[:2], c.place)
