"""Operations that move values: views, parts, joins, padding."""

import torch

from .mapper import maps
from .values import BATCH, Constant, IMAGE, Refused, Row, axes_of, axis_of, number


@maps("view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as")
def _(c, a):
    return c.viewed(a["self"], a["out"])


@maps("permute")
def _(c, a):
    x = a["self"]
    return x.seen_as([x.dims[axis_of(d, len(x.dims))] for d in a["dims"]], c.place)


@maps("transpose", "swapaxes", "swapdims")
def _(c, a):
    x = a["self"]
    i, j = (axis_of(d, len(x.dims)) for d in (a.get("dim0", a.get("axis0")), a.get("dim1", a.get("axis1"))))
    dims = list(x.dims)
    dims[i], dims[j] = dims[j], dims[i]
    return x.seen_as(dims, c.place)


@maps("t", "numpy_T", "mT", "adjoint")
def _(c, a):
    x = a["self"]
    return x.seen_as(x.dims[:-2] + x.dims[-2:][::-1], c.place)


@maps("unsqueeze")
def _(c, a):
    x = a["self"]
    dim = axis_of(a["dim"], len(x.dims) + 1)
    return x.seen_as(x.dims[:dim] + [()] + x.dims[dim:], c.place)


@maps("squeeze")
def _(c, a):
    x = a["self"]
    dims = axes_of(a.get("dim"), len(x.dims))
    if c.batch == 1 and a.get("dim") is None:
        raise Refused("squeeze() without a dimension drops the batch where it is 1: say which dimension")
    gone = [d for d in dims if not x.batched(d) and x.size(d) == 1]
    return x.seen_as([d for i, d in enumerate(x.dims) if i not in gone], c.place)


@maps("expand", "expand_as", "broadcast_to")
def _(c, a):
    x, out = a["self"], a["out"]
    x = x.seen_as([()] * (len(out) - len(x.dims)) + x.dims, x.place)
    wanted = [1 if x.batched(i) or x.size(i) == s else s for i, s in enumerate(out)]
    if any(x.batched(i) and s % c.batch for i, s in enumerate(out)) or any(
        s != 1 and s % c.batch == 0 and c.batch > 1 for s in wanted
    ):
        raise Refused("it repeats along the batch")
    return x if max(wanted, default=1) == 1 else c.binary("mul", x, Constant(torch.ones(wanted)))


def sliced(c, x, dim, begin, end, step=1):
    size = x.size(dim)
    if (begin, end, step) == (0, size, 1):
        return x
    c.unbatched(x, dim, "a part")
    if end <= begin:
        raise Refused("nothing is left")
    if len(x.dims[dim]) != 1:
        x = c.arranged(x)
    axis = x.dims[dim][0]
    sizes = list(x.sizes)
    sizes[axis] = -(-(end - begin) // step)
    return c.row("slice", [x.id], sizes, x.dims, x.plane, {"axis": axis, "begin": begin, "end": end, "step": step})


@maps("slice", "narrow")
def _(c, a):
    x = a["self"]
    dim = axis_of(a["dim"], len(x.dims))
    if x.batched(dim):
        if (
            a.get("start") in (None, 0)
            and (a.get("end") is None or a["end"] >= 2**62 or a["end"] == c.batch)
            and a.get("step", 1) == 1
        ):
            return x
        raise Refused("a part of the batch: rows of the batch would be told apart")
    size = x.size(dim)
    begin = min(max((a["start"] or 0) + (size if (a["start"] or 0) < 0 else 0), 0), size)
    end = begin + a["length"] if "length" in a else size if a["end"] is None else a["end"]
    end = min(max(end + size if end < 0 else end, 0), size)
    return sliced(c, x, dim, begin, end, a.get("step", 1))


@maps("select")
def _(c, a):
    x = a["self"]
    dim = axis_of(a["dim"], len(x.dims))
    c.unbatched(x, dim, "one of")
    index = a["index"] + (x.size(dim) if a["index"] < 0 else 0)
    x = sliced(c, x, dim, index, index + 1)
    return x.seen_as(x.dims[:dim] + x.dims[dim + 1 :], c.place)


def parts(c, x, sizes, dim):
    dim, out, begin = axis_of(dim, len(x.dims)), [], 0
    for size in sizes:
        out.append(sliced(c, x, dim, begin, begin + size))
        begin += size
    return out


@maps("split", "split_with_sizes", "chunk", "unbind", "tensor_split")
def _(c, a):
    x = a["self"]
    dim = axis_of(a["dim"], len(x.dims))
    c.unbatched(x, dim, "parts")
    size = x.size(dim)
    if "chunks" in a:
        step = -(-size // a["chunks"])
        sizes = [min(step, size - i) for i in range(0, size, step)]
    elif isinstance(a.get("split_sizes", a.get("split_size")), (list, tuple)):
        sizes = a.get("split_sizes", a.get("split_size"))
    elif "split_size" in a:
        sizes = [min(a["split_size"], size - i) for i in range(0, size, a["split_size"])]
    elif "sections" in a or "indices" in a:
        raise Refused("use chunk or split")
    else:
        out = parts(c, x, [1] * size, dim)
        return [p.seen_as(p.dims[:dim] + p.dims[dim + 1 :], c.place) for p in out]
    return parts(c, x, sizes, dim)


@maps("cat", "concat", "concatenate")
def _(c, a):
    # Empty tensors of any rank count for nothing.
    values = [v for v in a["tensors"] if isinstance(v, Row) or v.tensor.numel()]
    dim = axis_of(a["dim"], len(a["out"]))
    return joined(c, values, dim)


def joined(c, values, dim):
    rows = [c.arranged(v) if isinstance(v, Row) else v for v in values]
    first = next(v for v in rows if isinstance(v, Row))
    batch = [i for i, d in enumerate(first.dims) if BATCH in d]
    if first.dims[batch[0]] != (BATCH,) or any(isinstance(v, Row) and v.dims != first.dims for v in rows):
        raise Refused("the batch is merged with another dimension: rows would be mixed")
    if dim in batch:
        raise Refused("values one after another along the batch: rows of the batch would be mixed")
    ids, total = [], 0
    for v in rows:
        if isinstance(v, Constant):
            shape = list(v.tensor.shape)
            total += shape[dim]
            ids.append(c.constant(v, shape[: batch[0]] + shape[batch[0] + 1 :]))
        else:
            total += v.size(dim)
            ids.append(v.id)
    axis = first.dims[dim][0]
    sizes = list(first.sizes)
    sizes[axis] = total
    plane = next((v.plane for v in rows if isinstance(v, Row) and v.plane), None)
    return c.row("concat", ids, sizes, first.dims, plane, {"axis": axis})


@maps("stack")
def _(c, a):
    rank = len(a["out"])
    dim = axis_of(a["dim"], rank)
    widened = [
        (
            v.seen_as(v.dims[:dim] + [()] + v.dims[dim:], c.place)
            if isinstance(v, Row)
            else Constant(v.tensor.unsqueeze(dim), v.origin)
        )
        for v in a["tensors"]
    ]
    return joined(c, widened, dim)


@maps("roll")
def _(c, a):
    x = a["self"]
    if not a["dims"]:
        raise Refused("a roll of the flattened tensor")
    for shift, dim in zip(a["shifts"], a["dims"]):
        dim = axis_of(dim, len(x.dims))
        c.unbatched(x, dim, "a roll")
        size = x.size(dim)
        begin = -shift % size
        if begin:
            x = joined(c, [sliced(c, x, dim, begin, size), sliced(c, x, dim, 0, begin)], dim)
    return x


@maps("pad", "constant_pad_nd")
def _(c, a):
    x, pad = a["self"], [int(p) for p in a["pad"]]
    value = number(a.get("value") if a.get("value") is not None else 0)
    if a.get("mode", "constant") != "constant":
        raise Refused(f"padding mode {a['mode']}: assay has zeros and constants")
    rank = len(x.dims)
    sides = [(0, 0)] * rank
    for i in range(len(pad) // 2):
        sides[rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    for dim, (before, after) in enumerate(sides):
        if before or after:
            c.unbatched(x, dim, "padding")
        if before < 0 or after < 0:
            x = sliced(c, x, dim, max(-before, 0), x.size(dim) - max(-after, 0))
            sides[dim] = (max(before, 0), max(after, 0))
    (top, bottom), (left, right) = sides[-2:] if rank == 4 else [(0, 0)] * 2
    if rank == 4 and (top or bottom or left or right) and x.dims[0] == (BATCH,):
        x = c.arranged(x)
        x = c.affine(x, 1, -value)
        sizes = [x.sizes[0], x.sizes[1] + top + bottom, x.sizes[2] + left + right]
        x = c.affine(c.row("pad", [x.id], sizes, x.dims, IMAGE, {"padding": [top, left, bottom, right]}), 1, value)
        sides[-2:] = [(0, 0)] * 2
    for dim, (before, after) in enumerate(sides):
        filled = []
        for count in (before, after):
            shape = [1 if x.batched(i) else x.size(i) for i in range(rank)]
            shape[dim] = count
            filled.append(Constant(torch.full(shape, value)))
        if before or after:
            x = joined(c, [v for v in (filled[0], x, filled[1]) if isinstance(v, Row) or v.tensor.numel()], dim)
    return x


def filled(name, value):
    def handler(c, a):
        shape = [s // c.batch if c.batch > 1 and s % c.batch == 0 else s for s in a["out"]]
        if c.batch > 1 and any(s % c.batch == 0 and s != c.batch for s in a["out"] if s):
            raise Refused("its shape depends on the size of the batch")
        return Constant(torch.full(shape, value if value is not None else number(a["fill_value"])))

    maps(name)(handler)


for _name, _value in (
    ("zeros_like", 0.0),
    ("ones_like", 1.0),
    ("full_like", None),
    ("new_zeros", 0.0),
    ("new_ones", 1.0),
    ("new_full", None),
):
    filled(_name, _value)
