"""Elementwise operations."""

from .mapper import maps
from .values import Constant, Refused, axis_of, number

for _name in ("relu", "relu6", "silu", "sigmoid", "tanh", "hardswish", "hardsigmoid"):
    maps(_name)(lambda c, a, op=_name: c.unary(a["self"], op))


@maps("clone", "contiguous", "detach", "alias", "lift_fresh_copy", "positive", "lift", "expand_copy")
def _(c, a):
    return a["self"]


@maps("to", "_to_copy", "type_as", "float", "double")
def _(c, a):
    if a.get("dtype") is not None and not a["dtype"].is_floating_point:
        raise Refused(f"values become {a['dtype']}")
    return a["self"]


@maps("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
def _(c, a):
    if a["train"]:
        raise Refused("it is at work in eval mode: use nn.Dropout, or pass training=self.training")
    return c.unary(a["input"], "dropout", probability=float(a["p"]))


@maps("leaky_relu")
def _(c, a):
    return c.unary(a["self"], "leaky_relu", slope=float(a["negative_slope"]))


@maps("elu")
def _(c, a):
    x = c.affine(a["self"], a["input_scale"])
    if a["input_scale"] != 1:  # the positive side is scaled back
        raise Refused("an ELU with an input scale")
    return c.affine(c.unary(x, "elu", slope=float(a["alpha"])), a["scale"])


@maps("selu")
def _(c, a):
    return c.affine(c.unary(a["self"], "elu", slope=1.6732632423543772), 1.0507009873554805)


@maps("celu")
def _(c, a):
    alpha = float(a["alpha"])
    return c.affine(c.unary(c.affine(a["self"], 1 / alpha), "elu", slope=1.0), alpha)


@maps("gelu")
def _(c, a):
    return c.unary(a["self"], "gelu", approximate=a["approximate"] == "tanh")


@maps("prelu", "_prelu_kernel")
def _(c, a):
    x, weight = a["self"], a["weight"]
    if not isinstance(weight, Constant):
        raise Refused("a slope that depends on the input")
    if weight.tensor.dim() == 1:
        shape = [1] * len(x.dims)
        shape[min(1, len(shape) - 1)] = weight.tensor.numel()
        weight = Constant(weight.tensor.reshape(shape), weight.origin)
    positive = c.unary(x, "relu")
    return c.binary("add", positive, c.binary("mul", c.binary("sub", x, positive), weight))


@maps("hardtanh", "clamp", "clamp_min", "clamp_max")
def _(c, a):
    low, high = a.get("min_val", a.get("min")), a.get("max_val", a.get("max"))
    low, high = (None if v is None else number(v) for v in (low, high))
    if a.get("min") is not None and low is None or a.get("max") is not None and high is None:
        raise Refused("bounds that are no numbers")
    x = a["self"]
    if low is not None and high is not None:
        # relu6 between other bounds.
        scale = (high - low) / 6
        if scale <= 0:
            raise Refused(f"bounds {low} and {high}")
        return c.affine(c.unary(c.affine(x, 1 / scale, -low / scale), "relu6"), scale, low)
    if low is not None:
        return c.affine(c.unary(c.affine(x, 1, -low), "relu"), 1, low)
    return c.affine(c.unary(c.affine(x, -1, high), "relu"), -1, high)


@maps("softmax", "_softmax", "special_softmax")
def _(c, a):
    x = a["self"]
    dim = axis_of(a["dim"], len(x.dims))
    c.unbatched(x, dim, "a softmax")
    if len(x.dims[dim]) != 1:
        x = c.arranged(x)
    return c.unary(x, "softmax", axis=x.dims[dim][0])


# ---- handlers: arithmetic

for _name in ("add", "sub", "mul", "div"):

    @maps(_name)
    def _(c, a, op=_name):
        if a.get("rounding_mode"):
            raise Refused("a division that rounds")
        return c.binary(op, a["self"], a["other"], a.get("alpha", 1))


maps("true_divide")(lambda c, a: c.binary("div", a["self"], a["other"]))
maps("multiply")(lambda c, a: c.binary("mul", a["self"], a["other"]))
maps("rsub")(
    lambda c, a: (
        c.binary("sub", a["other"], a["self"])
        if a["alpha"] == 1
        else c.binary("sub", a["other"], c.affine(a["self"], a["alpha"]))
    )
)
maps("neg")(lambda c, a: c.affine(a["self"], -1))
maps("square")(lambda c, a: c.binary("mul", a["self"], a["self"]))
maps("reciprocal")(lambda c, a: c.binary("div", 1.0, a["self"]))
maps("maximum")(lambda c, a: c.binary("add", a["self"], c.unary(c.binary("sub", a["other"], a["self"]), "relu")))
maps("minimum")(lambda c, a: c.binary("sub", a["self"], c.unary(c.binary("sub", a["self"], a["other"]), "relu")))


@maps("pow")
def _(c, a):
    exponent = a["exponent"] if isinstance(a["exponent"], (int, float)) else None
    if exponent not in (1, 2, 3, 4, -1):
        raise Refused("assay has no such op: powers 2, 3, 4 and -1 alone")
    x = a["self"]
    if exponent == -1:
        return c.binary("div", 1.0, x)
    square = c.binary("mul", x, x) if exponent > 1 else x
    return {
        1: lambda: x,
        2: lambda: square,
        3: lambda: c.binary("mul", square, x),
        4: lambda: c.binary("mul", square, square),
    }[exponent]()
