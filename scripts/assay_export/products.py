"""Matrix products and attention."""

import math

import torch

from .mapper import maps
from .values import BATCH, Constant, Refused, Row


def linear(c, x, weight, bias, transposed=False):
    if not isinstance(weight, Constant) or not isinstance(bias, (Constant, type(None))):
        raise Refused("weights that depend on the input")
    c.unbatched(x, len(x.dims) - 1, "a product")
    x = c.arranged(x)
    parameters = [c.parameter(weight, "weight", transposed)]
    outputs = weight.tensor.shape[1 if transposed else 0]
    if bias is not None:
        # Of [outputs], or one number for all of them.
        flat = bias if bias.tensor.shape == (outputs,) else Constant(bias.tensor.expand(outputs).contiguous(), None)
        parameters.append(c.parameter(flat, "bias"))
    plane = x.plane if x.plane and len(x.sizes) - 1 not in x.plane else None
    return c.row(
        "linear",
        [x.id],
        x.sizes[:-1] + [outputs],
        x.dims,
        plane,
        {"channels": outputs, "bias": bias is not None},
        parameters,
    )


@maps("linear")
def _(c, a):
    return linear(c, a["input"], a["weight"], a["bias"])


@maps("addmm", "baddbmm", "addbmm")
def _(c, a):
    x, y = a.get("mat1", a.get("batch1")), a.get("mat2", a.get("batch2"))
    bias = a["self"]
    if (
        a["beta"] == 1
        and a["alpha"] == 1
        and isinstance(x, Row)
        and isinstance(y, Constant)
        and y.tensor.dim() == 2
        and isinstance(bias, Constant)
        and bias.tensor.dim() == 1
    ):
        return linear(c, x, y, bias, transposed=True)
    return c.binary(
        "add", c.affine(product(c, x, y), a["alpha"]) if a["alpha"] != 1 else product(c, x, y), bias, a["beta"]
    )


@maps("mm", "bmm", "matmul")
def _(c, a):
    return product(c, a["self"], a.get("mat2", a.get("other")))


def product(c, x, y):
    """Matrix products of the last two dimensions."""
    if isinstance(y, Constant) and y.tensor.dim() > 2:
        # One matrix for all, as PyTorch's decompositions repeat it.
        matrix = y.tensor.flatten(0, -3)[0]
        if torch.equal(y.tensor, matrix.expand_as(y.tensor)):
            y = Constant(matrix, y.origin)
    if isinstance(x, Row) and isinstance(y, Constant) and y.tensor.dim() <= 2:
        if y.tensor.dim() == 1:
            out = linear(c, x, Constant(y.tensor[None], y.origin), None)
            return out.seen_as(out.dims[:-1], c.place)  # the last axis has size 1
        return linear(c, x, y, None, transposed=True)
    if isinstance(x, Constant) and x.tensor.dim() == 2 and len(y.dims) >= 2:
        # (x y)^T = y^T x^T
        turned = y.seen_as(y.dims[:-2] + [y.dims[-1], y.dims[-2]], c.place)
        out = linear(c, turned, x, None)
        return out.seen_as(out.dims[:-2] + [out.dims[-1], out.dims[-2]], c.place)
    rank = max(c.rank(x), c.rank(y))
    if min(c.rank(x), c.rank(y)) < 2:
        raise Refused("a product of vectors")
    # The second factor transposed where that spares a permute.
    transpose = False
    if isinstance(y, Row):
        swapped = y.seen_as(y.dims[:-2] + [y.dims[-1], y.dims[-2]], y.place)
        if c.turned(y) and not c.turned(swapped):
            y, transpose = swapped, True
    sides = []
    for v in (x, y):
        if isinstance(v, Row):
            for dim in (-1, -2):
                c.unbatched(v, len(v.dims) + dim, "a product")
            v = c.arranged(v)
        sides.append((v, c.slots(v, rank)))
    shapes, dims, sizes = ([], []), [], []
    for dim in range(rank - 2):
        p, q = sides[0][1][dim], sides[1][1][dim]
        pattern = p if BATCH in p else q if BATCH in q else p if q == [1] else q
        for shape, s in zip(shapes, (p, q)):
            if s != pattern and s != [1]:
                raise Refused("the two factors have the batch in different places: rows would be mixed")
            shape += [n for n in pattern if n != BATCH]
        axes = []
        for s in pattern:
            axes.append(BATCH if s == BATCH else len(sizes))
            if s != BATCH:
                sizes.append(s)
        dims.append(tuple(axes))
    ids = []
    if sum(BATCH in d for d in dims) != 1:
        raise Refused("the two factors have the batch in different places: rows would be mixed")
    for (v, slots), shape in zip(sides, shapes):
        last = [s[0] for s in slots[-2:]]
        if isinstance(v, Constant):
            own = [n for s, d in zip(slots[:-2], dims) for n in ([1] * (len(d) - 1) if BATCH in d else s)]
            ids.append(
                c.constant(
                    Constant(v.tensor.reshape(own + last).expand(shape + last).contiguous(), v.origin), shape + last
                )
            )
        else:
            ids.append(spread(c, v, shape + last))
    sizes += [sides[0][1][-2][0], sides[1][1][-2 if transpose else -1][0]]
    dims += [(len(sizes) - 2,), (len(sizes) - 1,)]
    return c.row("matmul", ids, sizes, dims, None, {"transpose": transpose})


def spread(c, v, sizes):
    """The id of an arranged value with sizes of 1 repeated to the sizes wanted."""
    if v.sizes == sizes:
        return v.id
    inner = [1] * (len(sizes) - len(v.sizes)) + v.sizes
    id = v.id if inner == v.sizes else c.emit("reshape", [v.id], inner, {"shape": inner})
    missing = [w if w != s else 1 for w, s in zip(sizes, inner)]
    ones = c.constant(Constant(torch.ones(missing)), missing)
    return c.emit("mul", [id, ones], sizes)


@maps(
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
)
def _(c, a):
    """softmax(q k^T / sqrt(d) + mask) v, as PyTorch documents it."""
    if a["is_causal"]:
        raise Refused("a causal mask (is_causal=True): rows of later tokens would have to be hidden")
    if a.get("dropout_p"):
        raise Refused("dropout is at work in eval mode: pass dropout_p=self.p if self.training else 0.0")
    if a.get("enable_gqa"):
        raise Refused("enable_gqa=True")
    mask = a.get("attn_mask", a.get("attn_bias"))
    if (
        isinstance(mask, Row)
        or isinstance(mask, Constant)
        and not (mask.tensor.is_floating_point() and torch.isfinite(mask.tensor).all())
    ):
        raise Refused("a mask that is not of fixed finite numbers to be added")
    q, k, v = a["query"], a["key"], a["value"]
    scale = (
        a["scale"]
        if a.get("scale") is not None
        else 1 / math.sqrt(q.size(-1) if isinstance(q, Row) else q.tensor.shape[-1])
    )
    if not isinstance(k, Row) or not isinstance(v, Row):
        raise Refused("keys or values that do not depend on the input")
    turned = k.seen_as(k.dims[:-2] + [k.dims[-1], k.dims[-2]], k.place)
    q = c.affine(q, scale) if isinstance(q, Row) else Constant(q.tensor * scale)
    # Arranged first, so that the product takes it transposed.
    k = c.arranged(k)
    turned = k.seen_as(k.dims[:-2] + [k.dims[-1], k.dims[-2]], k.place)
    weights = product(c, q, turned)
    if mask is not None:
        weights = c.binary("add", weights, mask)
    weights = c.unary(weights, "softmax", axis=weights.dims[-1][0])
    return product(c, weights, v)
