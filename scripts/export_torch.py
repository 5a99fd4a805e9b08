#!/usr/bin/env python3
"""Writes a PyTorch model as a net file for assay: NAME.json, the list of its
ops, and NAME.safetensors, its parameters (docs/own-models.md, csrc/graph/json.h).

    python export_torch.py my_models:make --input 3,224,224 --out mymodel --preset imagenet
    python export_torch.py model.pt2 --out mymodel

make() returns the model with its weights; model.pt2 is of torch.export.save.
From Python:

    from export_torch import export
    export(model, torch.randn(2, 3, 224, 224), "mymodel", preset="imagenet")

Needs torch 2.6 or newer and nothing else. The model is traced by torch.export
in eval mode; every ATen operation is mapped to ops of assay's table, or, where
there is no such op, named with the line of the model that asks for it. What was
written is then read back, interpreted and compared with the model.
"""

import argparse
import contextlib
import ctypes
import importlib
import importlib.util
import io
import json
import logging
import math
import operator
import os
import struct
import sys
import warnings

import torch
from torch.nn import functional as F
from torch.utils import _pytree as pytree


class ExportError(Exception):
    """A message for people: what cannot be exported, where, and what to do."""


class Refused(Exception):
    """Why one node cannot be mapped; its line in the model is added later."""


# ---- values
#
# A net file knows rows, not batches. So that models may move the batch about
# (attention merges it with the heads), a value is a value of the file together
# with a layout: for each dimension of the PyTorch tensor the axes of the row
# that it is made of, outer first; BATCH stands for the batch. View and permute
# change the layout alone; ops are written when something is computed.

BATCH = -1


class Row:
    """A value that depends on the input."""

    def __init__(self, id, sizes, dims, plane, place):
        self.id = id  # of the op that writes it; INPUT
        self.sizes = list(sizes)  # of the row's axes
        self.dims = [tuple(d) for d in dims]  # axes a dimension
        self.plane = plane  # the axes that are the image's height and width, or None
        self.place = place  # where in the model the layout comes from

    def size(self, dim):
        return math.prod(self.sizes[a] for a in self.dims[dim] if a != BATCH)

    def batched(self, dim):
        return BATCH in self.dims[dim]

    def seen_as(self, dims, place):
        """The same value as a tensor of other dimensions."""
        return Row(self.id, self.sizes, dims, self.plane, place)

    def natural(self):
        """Whether row and tensor agree: the batch first, then an axis a dimension."""
        return self.dims == [(BATCH,)] + [(i,) for i in range(len(self.sizes))]


class Constant:
    """A value that does not depend on the input: sizes of 1 stand for the batch too."""

    def __init__(self, tensor, origin=None):
        self.tensor = tensor
        self.origin = origin  # name in the state dict that it may still be equal to


class Missing:
    """What comes of a node that could not be mapped, or of an output that the
    table does not have (reason: said where it is used)."""

    def __init__(self, reason=None):
        self.reason = reason


INPUT = -1
IMAGE = (1, 2)  # the plane of rows [C,H,W]


def plane_of(x, groups):
    """Where the image's axes are when x's axes are grouped so."""
    if x.plane is None or any([axis] not in groups for axis in x.plane):
        return None
    return tuple(groups.index([axis]) for axis in x.plane)



class Place:
    """Where a node stands: module path, whether that is a module of torch.nn,
    which run of nodes within it, and the user's line."""

    def __init__(self, path, leaf, run, line):
        self.path, self.leaf, self.run, self.line = path, leaf, run, line


# ---- the handlers of ATen operations, by name without overload

HANDLERS = {}


def maps(*names):
    def register(handler):
        for name in names:
            HANDLERS["aten::" + name] = handler
        return handler

    return register


def axis_of(dim, rank):
    dim = dim + rank if dim < 0 else dim
    if not 0 <= dim < max(rank, 1):
        raise Refused(f"dimension {dim} of {rank}")
    return dim


def axes_of(dims, rank):
    if dims is None:
        return list(range(rank))
    return sorted(axis_of(d, rank) for d in ([dims] if isinstance(dims, int) else dims))


def pair(values, default=None):
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if not values and default is not None:
        values = list(default)
    return values * 2 if len(values) == 1 else values


def number(value, rank=0):
    """A Python number of a scalar or of a constant with one element (and at most
    so many dimensions) that is no parameter, else None."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, Constant) and value.origin is None and value.tensor.numel() == 1 and value.tensor.dim() <= rank:
        return float(value.tensor)
    return None


class Exporter:
    """Maps the nodes of an exported program to ops, in their order."""

    def __init__(self, batch):
        self.batch = batch  # what stands for the batch's size in shapes
        self.symbol = None  # and in symbolic ones
        self.state = {}  # the model's parameters and buffers by name
        self.trained = set()  # names of those that are parameters
        self.ops = []  # dicts; inputs are indices of ops or INPUT
        self.parameters = []  # dicts: tensor, origin or op and suffix
        self.cache = {}  # layouts and parameters that were written already
        self.complaints = []  # (what, line, source)
        self.modules = {}  # path: (kind, last value, node)
        self.place = None
        self.output = None

    # -- sizes

    def size(self, s):
        if isinstance(s, int):
            return s
        expr = s.node.expr
        if self.symbol is not None:
            expr = expr.subs(self.symbol, self.batch)
        if not expr.is_number:
            raise ExportError(f"the size {s} is not fixed: only the batch may be dynamic")
        return int(expr)

    def shape(self, fake):
        return [self.size(s) for s in fake.shape]

    # -- writing ops

    def emit(self, op, inputs, sizes, attributes=None, parameters=(), place=None):
        self.ops.append({"op": op, "inputs": list(inputs), "attributes": attributes or {}, "sizes": list(sizes),
                         "parameters": list(parameters), "place": place or self.place, "plane": None})
        if len(sizes) > 7:
            raise Refused(f"rows of {len(sizes)} axes: want at most 7")
        return len(self.ops) - 1

    def row(self, op, inputs, sizes, dims, plane=None, attributes=None, parameters=()):
        id = self.emit(op, inputs, sizes, attributes, parameters)
        self.ops[id]["plane"] = plane
        return Row(id, sizes, dims, plane, self.place)

    def unary(self, x, op, **attributes):
        return self.row(op, [x.id], x.sizes, x.dims, x.plane, attributes)

    def affine(self, x, factor=1., shift=0.):
        return x if (factor, shift) == (1, 0) else self.unary(x, "affine", factor=float(factor), shift=float(shift))

    # -- layouts

    def laid_out(self, x, groups):
        """The value whose row has one axis a group of x's axes, in that order."""
        order = [a for group in groups for a in group]
        shape = [math.prod(x.sizes[a] for a in group) for group in groups]
        large = [a for a in order if x.sizes[a] > 1]
        permuted = tuple(order + [a for a in range(len(x.sizes)) if a not in order]) if large != sorted(large) else None
        key = (x.id, permuted, tuple(shape))
        if key not in self.cache:
            id, sizes = x.id, x.sizes
            if permuted:
                sizes = [sizes[a] for a in permuted]
                id = self.emit("permute", [id], sizes, {"axes": list(permuted)}, place=x.place)
            if sizes != shape:
                flat = len(shape) == 1
                id = self.emit("flatten" if flat else "reshape", [id], shape, {} if flat else {"shape": shape}, place=x.place)
            if id != x.id:
                self.ops[id]["plane"] = plane_of(x, groups)
            self.cache[key] = id
        return self.cache[key]

    def turned(self, x):
        """Whether arranging x costs a permute."""
        large = [a for d in x.dims for a in d if a != BATCH and x.sizes[a] > 1]
        return large != sorted(large)

    def arranged(self, x):
        """x with its axes in the order of the dimensions: one a dimension, but in
        a dimension that holds the batch one before and one after the batch."""
        groups, dims = [], []
        for d in x.dims:
            if BATCH in d:
                dim, at = [], d.index(BATCH)
                for part in (d[:at], BATCH, d[at + 1:]):
                    if part == BATCH:
                        dim.append(BATCH)
                    elif math.prod(x.sizes[a] for a in part) > 1:
                        groups.append(list(part))
                        dim.append(len(groups) - 1)
                dims.append(tuple(dim))
            else:
                groups.append(list(d))
                dims.append((len(groups) - 1,))
        id = self.laid_out(x, groups)
        sizes = [math.prod(x.sizes[a] for a in group) for group in groups]
        return Row(id, sizes, dims, plane_of(x, groups), x.place)

    def rows_first(self, x, rank=None):
        """x arranged, where PyTorch too takes the first dimension for the batch."""
        if not isinstance(x, Row):
            raise Refused("its input does not depend on the net's input")
        if not x.dims or x.dims[0] != (BATCH,):
            raise Refused("it takes another dimension than the batch for the batch: rows would be mixed")
        if rank is not None and len(x.dims) != rank:
            raise Refused(f"an input of {len(x.dims)} dimensions: want {rank}, the batch first")
        return self.arranged(x)

    def unbatched(self, x, dim, what):
        if x.batched(dim):
            raise Refused(f"{what} along the batch: rows of the batch would be mixed")

    # -- constants

    def parameter(self, constant, suffix, transposed=False):
        """The index of a parameter equal to the constant (suffix: what it is to
        the op that is written next)."""
        tensor = constant.tensor.t() if transposed else constant.tensor
        stored = self.state.get(constant.origin)
        if stored is not None and stored.shape == tensor.shape and torch.equal(stored, tensor):
            return self.named(constant.origin)
        self.parameters.append({"tensor": tensor.detach().contiguous(), "origin": None, "op": len(self.ops), "suffix": suffix})
        return len(self.parameters) - 1

    def named(self, origin):
        for i, parameter in enumerate(self.parameters):
            if parameter["origin"] == origin:
                return i
        self.parameters.append({"tensor": self.state[origin].detach(), "origin": origin})
        return len(self.parameters) - 1

    def constant(self, c, shape):
        """The id of an op that gives a constant as rows of a shape."""
        shape = list(shape)
        tensor = c.tensor if c.tensor.is_floating_point() else c.tensor.to(torch.get_default_dtype())
        stored = self.state.get(c.origin)
        if stored is not None and stored.numel() == tensor.numel() and torch.equal(stored.flatten(), tensor.flatten()):
            index = self.named(c.origin)
        else:
            index = None
        key = ("constant", index if index is not None else id(c.tensor), tuple(shape))
        if key not in self.cache:
            if index is None:
                index = self.parameter(Constant(tensor.reshape(shape)), "")
            self.cache[key] = self.emit("parameter", [], shape, {"shape": shape}, [index])
            self.cache[key, "keep"] = c  # an id() is of something that lives
        return self.cache[key]

    # -- two values

    def binary(self, op, x, y, alpha=1):
        """x op y with PyTorch's broadcasting."""
        if alpha != 1:
            y = self.affine(y, alpha) if isinstance(y, Row) else Constant(y.tensor * alpha) if isinstance(y, Constant) else y * alpha
        a, b = number(x, self.rank(y)), number(y, self.rank(x))
        if b is not None:
            if op == "div" and b == 0:
                raise Refused("division by zero")
            return {"add": lambda: self.affine(x, 1, b), "sub": lambda: self.affine(x, 1, -b),
                    "mul": lambda: self.affine(x, b), "div": lambda: self.affine(x, 1 / b)}[op]()
        if a is not None:
            simple = {"add": lambda: self.affine(y, 1, a), "sub": lambda: self.affine(y, -1, a), "mul": lambda: self.affine(y, a)}
            if op in simple:
                return simple[op]()
            x = Constant(torch.tensor(a))
        x = self.arranged(x) if isinstance(x, Row) else x
        y = self.arranged(y) if isinstance(y, Row) else y
        rank = max(self.rank(x), self.rank(y))
        slots = [self.slots(v, rank) for v in (x, y)]
        shapes, dims, sizes = ([], []), [], []
        for dim in range(rank):
            p, q = slots[0][dim], slots[1][dim]
            batched = [s for s in (p, q) if BATCH in s]
            if batched:
                pattern = batched[0]
                axes = []
                for s in pattern:
                    axes.append(BATCH if s == BATCH else len(sizes) + sum(a != BATCH for a in axes))
                for shape, s in zip(shapes, (p, q)):
                    if s != pattern and s != [1]:
                        raise Refused("the two values have the batch in different places: rows would be mixed")
                    shape += [1 if s != pattern else n for n in pattern if n != BATCH]
                sizes += [n for n in pattern if n != BATCH]
                dims.append(tuple(axes))
            else:
                shapes[0].append(p[0])
                shapes[1].append(q[0])
                dims.append((len(sizes),))
                sizes.append(max(p[0], q[0]))
        if sum(BATCH in d for d in dims) != 1:
            raise Refused("the two values have the batch in different places: rows would be mixed")
        ids = []
        for v, shape in zip((x, y), shapes):
            if isinstance(v, Constant):
                ids.append(self.constant(v, shape))
            elif v.sizes == shape:
                ids.append(v.id)
            else:
                ids.append(self.emit("reshape", [v.id], shape, {"shape": shape}, place=v.place))
        plane = None
        for v in (x, y):
            if isinstance(v, Row) and v.plane and plane is None:
                plane = tuple(axis + len(sizes) - len(v.sizes) for axis in v.plane)
        return self.row(op, ids, sizes, dims, plane)

    def rank(self, v):
        return len(v.dims) if isinstance(v, Row) else v.tensor.dim() if isinstance(v, Constant) else 0

    def slots(self, v, rank):
        """For every dimension, from the left, the sizes of a value's axes (BATCH among them)."""
        if isinstance(v, Constant):
            found = [[s] for s in v.tensor.shape]
        else:
            found = [[BATCH if a == BATCH else v.sizes[a] for a in d] for d in v.dims]
        return [[1]] * (rank - len(found)) + found

    # -- views

    def viewed(self, x, shape):
        """x in another shape, as PyTorch's view: elements in the same order."""
        atoms = [a for d in x.dims for a in d if a == BATCH or x.sizes[a] > 1]
        sizes, split = list(x.sizes), {}  # axis: the factors that it is split into
        size = lambda a: self.batch if a == BATCH else sizes[a]
        dims, pending = [], list(atoms)
        for position, want in enumerate(shape):
            dim, left = [], want
            while left > 1:
                if not pending:
                    return self.reshaped(x, shape)
                a = pending[0]
                if left % size(a) == 0:
                    left //= size(a)
                    dim.append(pending.pop(0))
                elif a != BATCH and size(a) % left == 0:
                    inner = len(sizes)
                    sizes.append(size(a) // left)
                    sizes[a] = left
                    split.setdefault(self.root(split, a), [self.root(split, a)]).append(inner)
                    dim.append(a)
                    pending[0] = inner
                    left = 1
                else:
                    return self.reshaped(x, shape)
            # A batch of 1 hides in every size: it goes where a size of 1 stands,
            # and into no last dimension.
            if self.batch == 1 and pending and pending[0] == BATCH:
                if want == 1 or position == len(shape) - 2 and shape[-1] != 1:
                    dim.append(pending.pop(0))
            dims.append(tuple(dim))
        if any(a == BATCH or size(a) > 1 for a in pending):
            return self.reshaped(x, shape)
        if not split:
            x = x.seen_as(dims, self.place)
            # Flattened at once, so that what follows sees vectors.
            return self.arranged(x) if len(dims) == 2 and dims[0] == (BATCH,) else x
        # Write the row with its split axes, the factors of an axis in its place.
        order = []
        for a in range(len(x.sizes)):
            order += split.get(a, [a])
        number_of = {a: i for i, a in enumerate(order)} | {BATCH: BATCH}
        new = [sizes[a] for a in order]
        key = ("split", x.id, tuple(new))
        if key not in self.cache:
            self.cache[key] = self.emit("reshape", [x.id], new, {"shape": new}, place=self.place)
        plane = tuple(number_of[a] for a in x.plane) if x.plane and not any(a in split for a in x.plane) else None
        self.ops[self.cache[key]]["plane"] = plane
        return Row(self.cache[key], new, [[number_of[a] for a in d] for d in dims], plane, self.place)

    def root(self, split, axis):
        for root, parts in split.items():
            if axis in parts:
                return root
        return axis

    def reshaped(self, x, shape):
        """A view that no factors of axes give: of the whole row at once."""
        if not x.dims or x.dims[0] != (BATCH,) or not shape or shape[0] != self.batch:
            raise Refused(f"a view as {self.text(shape)} mixes the batch with other dimensions")
        x = self.arranged(x)
        sizes = list(shape[1:])
        return self.row("reshape", [x.id], sizes, [(BATCH,)] + [(i,) for i in range(len(sizes))], None, {"shape": sizes})

    def text(self, shape):
        return str(["batch" if s == self.batch else s for s in shape])

    # -- nodes

    def run(self, graph, env, inner=False):
        """Maps the nodes of a graph; env: values by node, placeholders among them."""
        order = {node: i for i, node in enumerate(graph.nodes)}
        roots = {}  # node: the node whose memory it shares
        live = set()
        for node in reversed(graph.nodes):
            if node.op == "output" or in_place(node) or any(user in live for user in node.users):
                live.add(node)
        for node in graph.nodes:
            if node.op in ("placeholder", "output") or node not in live:
                continue
            if not inner:
                self.place = self.place_of(node)
            if node.op == "get_attr":
                attribute = operator.attrgetter(node.target)(graph.owning_module)
                env[node] = Constant(attribute) if isinstance(attribute, torch.Tensor) else attribute
                continue
            value = node.meta.get("val")
            try:
                if isinstance(value, (torch.SymInt, int)):
                    env[node] = self.size(value)
                    continue
                if isinstance(value, (torch.SymFloat, torch.SymBool)):
                    raise Refused("its result depends on the size of the batch")
                env[node] = self.node(node, env, order, roots)
            except Refused as reason:
                self.complain(f"{self.title(node.target)}: {reason}")
                env[node] = Missing()
            if not inner:
                self.remember(node, env[node])
        return env

    def node(self, node, env, order, roots):
        args, kwargs = pytree.tree_map_only(torch.fx.Node, lambda n: env[n], (node.args, node.kwargs))
        leaves = pytree.tree_leaves((args, kwargs))
        for leaf in leaves:
            if isinstance(leaf, Missing):
                if leaf.reason and node.target is not operator.getitem:
                    raise Refused(leaf.reason)
                if node.target is not operator.getitem:
                    return Missing()
        if node.target is operator.getitem:
            return args[0] if isinstance(args[0], Missing) else args[0][args[1]]
        if not isinstance(node.target, torch._ops.OpOverload):
            return self.wrapped(node, leaves)
        schema = node.target._schema
        name, target = schema.name, node.target
        if schema.arguments and schema.arguments[0].alias_info is not None and isinstance(node.args[0], torch.fx.Node) or name == "aten::dropout":
            roots[node] = roots.get(node.args[0], node.args[0])
        written = None
        if short_name(name).startswith(RANDOM):
            raise Refused("it draws random numbers")
        if short_name(name) not in SIZED and self.batch > 1 and any(type(leaf) is int and leaf and leaf % self.batch == 0 for leaf in leaves):
            raise Refused("its result depends on the size of the batch")
        if in_place(node) and not any(isinstance(leaf, Row) for leaf in leaves):
            self.write_constant(target, args, kwargs)
            return args[0]
        if in_place(node):
            written = node.args[0]
            self.check_writable(node, written, order, roots)
            name = name[:-1]
            packet = getattr(torch.ops.aten, name.split("::")[1], None)
            target = getattr(packet, node.target._overloadname, None)
            if target is None:
                raise Refused("it writes in place: write it out of place")
        if not any(isinstance(leaf, Row) for leaf in leaves):
            result = self.folded(target, args, kwargs, node.meta.get("val"))
        elif name in HANDLERS:
            bound = self.bound(target._schema, args, kwargs)
            bound["out"] = self.shape(node.meta["val"]) if isinstance(node.meta.get("val"), torch.Tensor) else None
            result = HANDLERS[name](self, bound)
            if isinstance(result, Row) and bound["out"] is not None:
                self.check_shape(result, bound["out"])
        else:
            result = self.decomposed(node, target, env)
        if written is not None:
            env[written] = result
        return result

    def check_writable(self, node, written, order, roots):
        """An op in place is the same out of place unless others read that memory later."""
        root = roots.get(written, written)
        for other in [root] + [n for n, r in roots.items() if r is root]:
            if other is written or other is node or order[other] > order[node]:
                continue
            if any(order[user] > order[node] and user.op != "output" for user in other.users):
                raise Refused("it writes in place into a part of a value that is read later: write it out of place")

    def check_shape(self, x, shape):
        """That a handler has kept to what was traced."""
        sizes = [x.size(i) * (self.batch if x.batched(i) else 1) for i in range(len(x.dims))]
        if sizes != shape:
            raise Refused(f"a defect of this script: {self.text(sizes)} for {self.text(shape)}")

    def bound(self, schema, args, kwargs):
        values = {}
        for i, argument in enumerate(schema.arguments):
            if i < len(args):
                values[argument.name] = args[i]
            elif argument.name in kwargs:
                values[argument.name] = kwargs[argument.name]
            else:
                values[argument.name] = argument.default_value if argument.has_default_value() else None
        return values

    def folded(self, target, args, kwargs, fake):
        """An operation on constants, computed now; a size of 1 where PyTorch has the batch."""
        origins = {leaf.origin for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, Constant)}
        origin = origins.pop() if len(origins) == 1 else None

        def plain(leaf):
            if isinstance(leaf, Constant):
                return leaf.tensor
            if type(leaf) is int and self.batch > 1 and leaf and leaf % self.batch == 0:
                return leaf // self.batch
            return leaf

        args, kwargs = pytree.tree_map(plain, (args, kwargs))
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "pin_memory")}
        with torch.no_grad():
            result = target(*args, **kwargs)

        def wrap(value, fake):
            if not isinstance(value, torch.Tensor):
                return value
            want = [1 if s == self.batch else s for s in self.shape(fake)]
            if self.batch > 1 and list(value.shape) != want:
                raise Refused(f"a constant of {list(value.shape)} where {self.text(self.shape(fake))} was traced")
            return Constant(value, origin)

        if isinstance(result, (list, tuple)):
            return [wrap(v, f) for v, f in zip(result, fake)]
        return wrap(result, fake)

    def wrapped(self, node, leaves):
        """A part of the model under torch.no_grad or autocast: as it stands."""
        at = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.GraphModule)), None)
        if at is None or not str(node.target).startswith("wrap_with_"):
            raise Refused("branches and loops on values cannot be traced")
        graph = leaves[at].graph
        inside = dict(zip([n for n in graph.nodes if n.op == "placeholder"], leaves[at + 1:]))
        self.run(graph, inside, inner=True)
        output = next(n for n in graph.nodes if n.op == "output").args[0]
        return pytree.tree_map_only(torch.fx.Node, lambda n: inside[n], output)

    def write_constant(self, target, args, kwargs):
        """In place on constants, which share memory as the model's tensors do."""
        stored = {tensor.untyped_storage().data_ptr() for tensor in self.state.values()}
        if args[0].tensor.untyped_storage().data_ptr() in stored:
            raise Refused("it changes a parameter or buffer: want a model that leaves its state alone in eval mode")
        args, kwargs = pytree.tree_map_only(Constant, lambda c: c.tensor, (args, kwargs))
        with torch.no_grad():
            target(*args, **kwargs)

    def decomposed(self, node, target, env):
        """An operation without a handler, by PyTorch's own decomposition."""
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        nodes = [leaf for leaf in leaves if isinstance(leaf, torch.fx.Node)]
        fakes = [n.meta["val"] for n in nodes]

        def call(*values):
            rest = iter(values)
            args, kwargs = pytree.tree_unflatten([next(rest) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves], spec)
            return target(*args, **kwargs)

        modes = [f.fake_mode for f in pytree.tree_leaves(fakes) if hasattr(f, "fake_mode")]
        from torch.fx.experimental.proxy_tensor import make_fx
        try:
            with modes[0]:
                traced = make_fx(call, decomposition_table=self.table(), tracing_mode="real")(*fakes)
        except Exception:
            raise Refused("assay has no such op") from None
        kinds = [n.target for n in traced.graph.nodes if n.op == "call_function"]
        if target in kinds or len(kinds) > 200:
            raise Refused("assay has no such op")
        inside = {}
        for placeholder, n in zip([n for n in traced.graph.nodes if n.op == "placeholder"], nodes):
            inside[placeholder] = env[n]
        before = len(self.complaints)
        self.run(traced.graph, inside, inner=True)
        if len(self.complaints) > before:  # say the user's op first
            lacking = sorted({text.split(":")[0] for text, _, _ in self.complaints[before:]})
            del self.complaints[before:]
            raise Refused(f"assay has no such op (it is made of {', '.join(lacking)})")
        output = next(n for n in traced.graph.nodes if n.op == "output").args[0]
        return pytree.tree_map_only(torch.fx.Node, lambda n: inside[n], output)

    def table(self):
        if not hasattr(self, "decompositions"):
            every = torch.export.default_decompositions()
            self.decompositions = {op: rule for op, rule in every.items() if op._schema.name not in HANDLERS}
        return self.decompositions

    # -- names and lines

    def place_of(self, node):
        stack = [entry for entry in (node.meta.get("nn_module_stack") or {}).items()]
        path, kind, key = "", "", ""
        if stack:
            key, (path, kind) = stack[-1]
            path, kind = clean(path), kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        leaf = kind.startswith("torch.nn.modules.") and ".container." not in kind
        last = self.place
        same = last is not None and last.path == path and last.key == key
        place = Place(path, leaf, last.run if same else (last.run + 1 if last else 0), line_of(node.meta.get("stack_trace")))
        place.key = key
        return place

    def remember(self, node, value):
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
            kind = kind if isinstance(kind, str) else kind.__qualname__
            self.modules[clean(path)] = ("stage" if kind.endswith("Sequential") else "block", value, node)

    def title(self, target):
        return target._schema.name.replace("::", ".") if hasattr(target, "_schema") else str(getattr(target, "__name__", target))

    def complain(self, text):
        entry = (text, *(self.place.line if self.place else ("", "")))
        if entry not in self.complaints:
            self.complaints.append(entry)


RANDOM = ("rand", "normal", "bernoulli", "multinomial", "native_dropout", "poisson")
# What may be given the batch's size without telling rows apart.
SIZED = {"full", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_full", "new_empty", "expand", "view", "reshape", "repeat", "tile",
         "_unsafe_view", "unflatten", "broadcast_to", "slice", "narrow"}


def short_name(name):
    return name.split("::")[-1]


def in_place(node):
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and schema.name.endswith("_") and isinstance(node.args[0], torch.fx.Node)


def clean(path):
    """A module's path as the user writes it."""
    path = path.split("@")[0]
    for prefix in ("L['self'].", "L['self']", "L__self__"):
        path = path.removeprefix(prefix)
    return "" if path.startswith("_empty_nn_module_stack") else path


def line_of(trace):
    """The innermost line outside PyTorch of a stack trace: ("models.py:12", source)."""
    found = ("", "")
    torch_folder = os.path.dirname(torch.__file__) + os.sep
    lines = (trace or "").splitlines()
    for i, line in enumerate(lines):
        if line.strip().startswith('File "'):
            file, _, rest = line.strip()[6:].partition('", line ')
            if not file.startswith(torch_folder) or not found[0]:
                source = lines[i + 1].strip() if i + 1 < len(lines) else ""
                found = (f"{file}:{rest.split(',')[0]}", source)
    return found


# ---- handlers: elementwise

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
    return c.affine(c.unary(c.affine(a["self"], 1 / alpha), "elu", slope=1.), alpha)


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
maps("rsub")(lambda c, a: c.binary("sub", a["other"], a["self"]) if a["alpha"] == 1 else c.binary("sub", a["other"], c.affine(a["self"], a["alpha"])))
maps("neg")(lambda c, a: c.affine(a["self"], -1))
maps("square")(lambda c, a: c.binary("mul", a["self"], a["self"]))
maps("reciprocal")(lambda c, a: c.binary("div", 1., a["self"]))
maps("maximum")(lambda c, a: c.binary("add", a["self"], c.unary(c.binary("sub", a["other"], a["self"]), "relu")))
maps("minimum")(lambda c, a: c.binary("sub", a["self"], c.unary(c.binary("sub", a["self"], a["other"]), "relu")))


@maps("pow")
def _(c, a):
    exponent = a["exponent"] if isinstance(a["exponent"], (int, float)) else None
    if exponent not in (1, 2, 3, 4, -1):
        raise Refused("assay has no such op: powers 2, 3, 4 and -1 alone")
    x = a["self"]
    if exponent == -1:
        return c.binary("div", 1., x)
    square = c.binary("mul", x, x) if exponent > 1 else x
    return {1: lambda: x, 2: lambda: square, 3: lambda: c.binary("mul", square, x), 4: lambda: c.binary("mul", square, square)}[exponent]()


# ---- handlers: products

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
    return c.row("linear", [x.id], x.sizes[:-1] + [outputs], x.dims, plane, {"channels": outputs, "bias": bias is not None}, parameters)


@maps("linear")
def _(c, a):
    return linear(c, a["input"], a["weight"], a["bias"])


@maps("addmm", "baddbmm", "addbmm")
def _(c, a):
    x, y = a.get("mat1", a.get("batch1")), a.get("mat2", a.get("batch2"))
    bias = a["self"]
    if a["beta"] == 1 and a["alpha"] == 1 and isinstance(x, Row) and isinstance(y, Constant) and y.tensor.dim() == 2 and isinstance(bias, Constant) and bias.tensor.dim() == 1:
        return linear(c, x, y, bias, transposed=True)
    return c.binary("add", c.affine(product(c, x, y), a["alpha"]) if a["alpha"] != 1 else product(c, x, y), bias, a["beta"])


@maps("mm", "bmm", "matmul")
def _(c, a):
    return product(c, a["self"], a.get("mat2", a.get("other")))


def product(c, x, y):
    """Matrix products of the last two dimensions."""
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
            ids.append(c.constant(Constant(v.tensor.reshape(own + last).expand(shape + last).contiguous(), v.origin), shape + last))
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


@maps("scaled_dot_product_attention", "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
      "_scaled_dot_product_efficient_attention")
def _(c, a):
    """softmax(q k^T / sqrt(d) + mask) v, as PyTorch documents it."""
    if a["is_causal"]:
        raise Refused("a causal mask (is_causal=True): rows of later tokens would have to be hidden")
    if a.get("dropout_p"):
        raise Refused("dropout is at work in eval mode: pass dropout_p=self.p if self.training else 0.0")
    if a.get("enable_gqa"):
        raise Refused("enable_gqa=True")
    mask = a.get("attn_mask", a.get("attn_bias"))
    if isinstance(mask, Row) or isinstance(mask, Constant) and not (mask.tensor.is_floating_point() and torch.isfinite(mask.tensor).all()):
        raise Refused("a mask that is not of fixed finite numbers to be added")
    q, k, v = a["query"], a["key"], a["value"]
    scale = a["scale"] if a.get("scale") is not None else 1 / math.sqrt(q.size(-1) if isinstance(q, Row) else q.tensor.shape[-1])
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


# ---- handlers: convolutions and norms

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
        sizes.append((size - 1) * stride[axis] - room + extent + extra[axis] if transposed else (size + room - extent) // stride[axis] + 1)
    attributes = {"channels": channels, "bias": bias is not None, "kernel": kernel, "stride": stride, "padding": sides, "dilation": dilation, "groups": groups}
    if transposed:
        attributes["output_padding"] = extra
    parameters = [c.parameter(weight, "weight")] + ([] if bias is None else [c.parameter(bias, "bias")])
    return c.row("conv_transpose2d" if transposed else "conv2d", [x.id], sizes, x.dims, IMAGE, attributes, parameters)


@maps("conv2d")
def _(c, a):
    return convolution(c, a["input"], a["weight"], a["bias"], a["stride"], a["padding"], a["dilation"], a["groups"])


@maps("conv_transpose2d")
def _(c, a):
    return convolution(c, a["input"], a["weight"], a["bias"], a["stride"], a["padding"], a["dilation"], a["groups"], True, a["output_padding"])


@maps("convolution", "conv1d", "conv3d")
def _(c, a):
    return convolution(c, a["input"], a["weight"], a["bias"], a["stride"], a["padding"], a["dilation"], a["groups"], a.get("transposed", False),
                       a.get("output_padding", (0, 0)))


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


@maps("batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit", "native_batch_norm", "cudnn_batch_norm")
def _(c, a):
    x = c.rows_first(a["input"])
    mean, var = a.get("running_mean"), a.get("running_var")
    if a.get("training") or mean is None or var is None:
        raise Refused("a batch norm that normalises by the batch at hand: rows of the batch would be mixed; want track_running_stats=True and eval()")
    indices = norm_parameters(c, [x.sizes[0]], (a["weight"], "weight", 1.), (a["bias"], "bias", 0.), (mean, "running_mean", 0.), (var, "running_var", 1.))
    counter = (mean.origin or "").removesuffix("running_mean") + "num_batches_tracked"
    if mean.origin and counter in c.state:
        indices.append(c.named(counter))
    # In training only; 0 is a module's word for a mean over all batches, which files cannot say.
    momentum = {"momentum": float(a["momentum"])} if a.get("momentum") else {}
    out = c.row("batch_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a.get("eps", a.get("epsilon"))), **momentum}, indices)
    return with_statistics(out, a)


@maps("layer_norm", "native_layer_norm")
def _(c, a):
    x, shape = a["input"], [int(s) for s in a["normalized_shape"]]
    for dim in range(1, len(shape) + 1):
        c.unbatched(x, len(x.dims) - dim, "a layer norm")
    x = c.arranged(x)
    indices = norm_parameters(c, shape, (a["weight"], "weight", 1.), (a["bias"], "bias", 0.))
    out = c.row("layer_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a["eps"]), "dimensions": len(shape)}, indices)
    return with_statistics(out, a)


@maps("group_norm", "native_group_norm")
def _(c, a):
    x = c.rows_first(a["input"])
    indices = norm_parameters(c, [x.sizes[0]], (a["weight"], "weight", 1.), (a["bias"], "bias", 0.))
    out = c.row("group_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a["eps"]), "groups": int(a.get("num_groups", a.get("group")))}, indices)
    return with_statistics(out, a)


@maps("instance_norm")
def _(c, a):
    if not a["use_input_stats"]:
        return HANDLERS["aten::batch_norm"](c, {**a, "training": False})
    x = c.rows_first(a["input"])
    indices = norm_parameters(c, [x.sizes[0]], (a["weight"], "weight", 1.), (a["bias"], "bias", 0.))
    return c.row("group_norm", [x.id], x.sizes, x.dims, x.plane, {"epsilon": float(a["eps"]), "groups": x.sizes[0]}, indices)


# ---- handlers: pooling and resizing

def pooled(c, a, op, **more):
    x = c.rows_first(a["self"], 4)
    kernel = pair(a["kernel_size"])
    padding = pair(a["padding"])
    attributes = {"kernel": kernel, "stride": pair(a["stride"] or [], kernel), "padding": padding * 2, "ceil": bool(a["ceil_mode"]), **more}
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
        a["outs"] = [0, x.sizes[0]] + [pooled_size(x.sizes[i + 1], kernel[i], stride[i], padding[i], dilation[i], a["ceil_mode"]) for i in range(2)]
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
    return [c.row("adaptive_max_pool", [x.id], [x.sizes[0]] + output, x.dims, IMAGE, {"output": output}), Missing("indices of a maximum")]


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
    return c.row("upsample", [x.id], a["out"][1:], x.dims, IMAGE, {"output": output, "bilinear": bilinear, "align_corners": bool(a.get("align_corners"))})


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


# ---- handlers: moving values

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
    if any(x.batched(i) and s % c.batch for i, s in enumerate(out)) or any(s != 1 and s % c.batch == 0 and c.batch > 1 for s in wanted):
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
        if a.get("start") in (None, 0) and (a.get("end") is None or a["end"] >= 2**62 or a["end"] == c.batch) and a.get("step", 1) == 1:
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
    return x.seen_as(x.dims[:dim] + x.dims[dim + 1:], c.place)


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
        return [p.seen_as(p.dims[:dim] + p.dims[dim + 1:], c.place) for p in out]
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
            ids.append(c.constant(v, shape[:batch[0]] + shape[batch[0] + 1:]))
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
    widened = [v.seen_as(v.dims[:dim] + [()] + v.dims[dim:], c.place) if isinstance(v, Row)
               else Constant(v.tensor.unsqueeze(dim), v.origin) for v in a["tensors"]]
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


for _name, _value in (("zeros_like", 0.), ("ones_like", 1.), ("full_like", None), ("new_zeros", 0.), ("new_ones", 1.), ("new_full", None)):
    filled(_name, _value)


# ---- the file

# Attributes with these values are left out (csrc/graph/graph.h).
DEFAULTS = {"bias": True, "kernel": [1, 1], "stride": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1], "output_padding": [0, 0], "groups": 1,
            "ceil": False, "count_padding": True, "epsilon": 1e-5, "momentum": 0.1, "dimensions": 1, "slope": 0.01, "approximate": False, "probability": 0.,
            "output": [1, 1], "bilinear": False, "align_corners": False, "axis": 0, "keep": False, "begin": 0, "step": 1, "factor": 1., "shift": 0.,
            "transpose": False}


class Names:
    """Unique names: wanted, wanted_1, ..."""

    def __init__(self, taken):
        self.taken = set(taken)

    def new(self, wanted):
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name


def named_ops(c, used):
    """Names of the used ops by index: the module's path for a module of torch.nn
    that is one op, else the path of the module whose code asks for it and the op."""
    runs = {}
    for i in used:
        place = c.ops[i]["place"]
        runs.setdefault((place.path, place.run), []).append(i)
    parents = {path[:i] for path in c.modules for i in range(len(path)) if path[i] == "."}
    alone = {ids[0]: path for (path, _), ids in runs.items()
             if len(ids) == 1 and path and path not in parents and c.ops[ids[0]]["place"].leaf and c.ops[ids[0]]["op"] != "parameter"}
    first, names = Names({"input"}), {}
    for i in used:
        if i in alone:
            names[i] = first.new(alone[i])
    rest = Names(first.taken | set(c.modules))
    for i in used:
        if i in names:
            continue
        op, path = c.ops[i], c.ops[i]["place"].path
        wanted = (path + "." if path else "") + ("constant" if op["op"] == "parameter" else op["op"])
        if op["op"] == "parameter" and c.parameters[op["parameters"][0]]["origin"]:
            wanted = c.parameters[op["parameters"][0]]["origin"]
        names[i] = rest.new(wanted)
    return names


def net_file(c, shape, name, preset, class_names, default_layer):
    """The JSON object, and the tensors by name."""
    used, pending = set(), [c.output]
    while pending:
        i = pending.pop()
        if i != INPUT and i not in used:
            used.add(i)
            pending += c.ops[i]["inputs"]
    used = sorted(used)
    names = named_ops(c, used) | {INPUT: "input"}
    file = {"format": "assay-net", "version": 1, "name": name, "input": list(shape)}
    if preset is not None:
        file["preset"] = preset
    file["weights"] = name + ".safetensors"
    if class_names is not None:
        file["classNames"] = list(class_names)
    parameter_names, tensors, taken = {}, {}, Names(c.state)
    file["parameters"], file["ops"], file["places"] = [], [], []
    for i in used:
        op = c.ops[i]
        for index in op["parameters"]:
            parameter = c.parameters[index]
            if index in parameter_names:
                continue
            suffix = parameter.get("suffix")
            parameter_names[index] = parameter["origin"] or taken.new(names[i] + ("." + suffix if suffix else ""))
            tensor = parameter["tensor"].cpu()
            tensors[parameter_names[index]] = tensor
            entry = {"name": parameter_names[index], "shape": list(tensor.shape)}
            if parameter["origin"] not in c.trained:
                entry["buffer"] = True
            if parameter_names[index].endswith("num_batches_tracked"):
                entry["optional"] = True
            file["parameters"].append(entry)
        entry = {"op": op["op"], "name": names[i], "inputs": [names[j] for j in op["inputs"]]}
        entry |= {k: v for k, v in op["attributes"].items() if k not in DEFAULTS or DEFAULTS[k] != v}
        if op["parameters"]:
            entry["parameters"] = [parameter_names[index] for index in op["parameters"]]
        file["ops"].append(entry)
    taken = set(names.values())
    of_value = {}  # names of places by op
    for path, (kind, value, node) in c.modules.items():
        inside = lambda user: any(clean(p) == path for p, _ in (user.meta.get("nn_module_stack") or {}).values())
        if not path or path in taken or not isinstance(value, Row) or not value.natural() or value.id not in names or value.id == INPUT:
            continue
        if all(inside(user) for user in node.users):
            continue  # not what the module returns
        taken.add(path)
        file["places"].append({"name": path, "kind": kind, "value": names[value.id]})
        of_value.setdefault(value.id, []).append(path)
    file["output"] = names[c.output]
    # Not the grid that a head of vectors asks for.
    maps_of_image = [i for i in used if c.ops[i]["plane"] == IMAGE and len(c.ops[i]["sizes"]) == 3 and c.ops[i]["sizes"][1] > 1
                     and not c.ops[i]["op"].startswith("adaptive")]
    if default_layer is not None:
        if default_layer not in taken - {"input"}:
            raise ExportError(f"default_layer {default_layer!r}: want the name of a module or an op, for example {', '.join(sorted(taken)[:5])}")
        file["defaultLayer"] = default_layer
    elif maps_of_image:
        last = maps_of_image[-1]
        file["defaultLayer"] = min(of_value.get(last, []) + [names[last]], key=lambda n: (n.count("."), len(n)))
    return file, tensors


def json_text(file):
    """JSON with an op, a parameter and a place a line."""
    parts = []
    for key, value in file.items():
        if key in ("parameters", "ops", "places"):
            lines = ",\n".join("  " + json.dumps(entry) for entry in value)
            parts.append(f"{json.dumps(key)}: [\n{lines}\n]" if lines else f"{json.dumps(key)}: []")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{" + ",\n".join(parts) + "}\n"


SAFETENSORS = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
               torch.uint8: "U8", torch.bool: "BOOL"}


def safetensors_bytes(tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""
        header[name] = {"dtype": SAFETENSORS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + len(chunk)]}
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def safetensors_read(data):
    size = struct.unpack("<Q", data[:8])[0]
    types = {name: dtype for dtype, name in SAFETENSORS.items()}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


# ---- the table of ops, in PyTorch: x is [N,...]; csrc/graph/ops.cc is the other one

TABLE = {
    "conv2d": lambda a, x, p: F.conv2d(F.pad(x, [a["padding"][i] for i in (1, 3, 0, 2)]), *p, stride=a["stride"], dilation=a["dilation"], groups=a["groups"]),
    "conv_transpose2d": lambda a, x, p: F.conv_transpose2d(x, *(p if a["bias"] else [p[0], None]), a["stride"], a["padding"][:2], a["output_padding"], a["groups"], a["dilation"]),
    "linear": lambda a, x, p: F.linear(x, *p),
    "matmul": lambda a, x, y, p: x @ (y.transpose(-2, -1) if a["transpose"] else y),
    "batch_norm": lambda a, x, p: F.batch_norm(x, p[2], p[3], p[0], p[1], False, 0., a["epsilon"]),
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
    "avg_pool": lambda a, x, p: F.avg_pool2d(x, a["kernel"], a["stride"], a["padding"][:2], a["ceil"], a["count_padding"]),
    "adaptive_avg_pool": lambda a, x, p: F.adaptive_avg_pool2d(x, a["output"]),
    "adaptive_max_pool": lambda a, x, p: F.adaptive_max_pool2d(x, a["output"]),
    "mean": lambda a, x, p: x.mean([axis + 1 for axis in a["axes"]], a["keep"]),
    "upsample": lambda a, x, p: F.interpolate(x, a["output"], mode="bilinear", align_corners=a["align_corners"]) if a["bilinear"] else F.interpolate(x, a["output"]),
    "add": lambda a, x, y, p: x + y,
    "sub": lambda a, x, y, p: x - y,
    "mul": lambda a, x, y, p: x * y,
    "div": lambda a, x, y, p: x / y,
    "affine": lambda a, x, p: x * a["factor"] + a["shift"],
    "concat": lambda a, *xs_p: torch.cat([x.expand(max(len(x) for x in xs_p[:-1]), *x.shape[1:]) for x in xs_p[:-1]], a["axis"] + 1),
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


# ---- the whole way

def traced(model, example):
    """An exported program, with any number of rows where the model allows it."""
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        two = torch.cat([example[:1]] * 2)
        try:
            return torch.export.export(model, (two,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},), strict=False)
        except Exception as first:
            try:
                return torch.export.export(model, (example[:1],), strict=False)
            except Exception as second:
                raise ExportError(f"torch.export cannot trace the model{own_line(second)}: {said(second)}\n"
                                  "Branches that depend on values cannot be traced: docs/own-models.md says what to do.") from first


@contextlib.contextmanager
def quiet():
    """Without what PyTorch logs about a failure that is reported anyway."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def said(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def own_line(error):
    """The innermost line of the user's code that an exception came by."""
    torch_folder, found = os.path.dirname(torch.__file__) + os.sep, ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(torch_folder) and file != __file__ and not file.startswith("<"):
            found = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def mapped(program):
    """An Exporter that has mapped the program, and the shape of one row."""
    signature = program.graph_signature
    inputs = [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT" and hasattr(spec.arg, "name")]
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    tensors = [name for name in inputs if isinstance(placeholders[name].meta.get("val"), torch.Tensor)]
    if len(tensors) != 1:
        raise ExportError(f"the model takes {len(tensors)} tensors: want one, [N,C,H,W] or [N,F]")
    fake = placeholders[tensors[0]].meta["val"]
    rows = fake.shape[0] if fake.dim() else 0
    if isinstance(rows, int):
        if rows != 1:
            raise ExportError(f"the program was exported for a batch of {rows}: export it with a dynamic batch, or with a batch of 1")
        c = Exporter(1)
    else:
        c = Exporter(1_000_003)  # a prime, that no other size is a multiple of
        c.symbol = rows.node.expr
    shape = c.shape(fake)[1:]
    if len(shape) not in (1, 3):
        raise ExportError(f"an input of shape {['N'] + shape}: want [N,C,H,W] or [N,F]")
    env = {}
    c.state = {**program.state_dict, **program.constants}
    c.state = {name: value.detach().cpu() for name, value in c.state.items() if isinstance(value, torch.Tensor)}
    c.trained = {spec.target for spec in signature.input_specs if spec.kind.name == "PARAMETER"}
    for spec in signature.input_specs:
        if not hasattr(spec.arg, "name") or spec.arg.name not in placeholders:
            continue
        node = placeholders[spec.arg.name]
        if spec.arg.name == tensors[0]:
            env[node] = Row(INPUT, shape, [(BATCH,)] + [(i,) for i in range(len(shape))], IMAGE if len(shape) == 3 else None, None)
        elif spec.target in c.state:
            # Tensors that forward() makes have no name that anybody knows.
            env[node] = Constant(c.state[spec.target], None if spec.target.startswith("lifted_tensor") else spec.target)
    c.run(program.graph, env)
    results = pytree.tree_leaves(next(node for node in program.graph.nodes if node.op == "output").args[0])
    mutations = [s for s in signature.output_specs if s.kind.name != "USER_OUTPUT"]
    results = results[len(mutations):]
    if c.complaints:
        lines = [f"  {text}\n    {line}: {source}" if line else f"  {text}" for text, line, source in c.complaints]
        raise ExportError("assay's table of ops cannot express this model:\n" + "\n".join(lines) + "\ndocs/own-models.md says what to do.")
    if len(results) != 1:
        raise ExportError(f"the model returns {len(results)} values: want the logits alone, [N,classes]")
    output = env.get(results[0])
    if not isinstance(output, Row) or len(output.dims) != 2 or output.dims[0] != (BATCH,):
        what = ["N" if output.batched(i) else output.size(i) for i in range(len(output.dims))] if isinstance(output, Row) else "what does not depend on the input"
        raise ExportError(f"the model returns {what}: want logits, [N,classes]")
    output = c.arranged(output)
    if output.id == INPUT:
        raise ExportError("the model returns its input")
    c.output = output.id
    return c, shape


def export(model, example_input, path, preset=None, class_names=None, name=None, default_layer=None):
    """Writes path.json and path.safetensors for assay.

    model: an nn.Module that maps example_input ([N,C,H,W] or [N,F], any N) to
    logits [N,classes], or a torch.export.ExportedProgram (example_input: None).
    preset: how images become its input, a name (`assay list presets`) or a dict
    {"resize": "shorter", "height": 256, "cropHeight": 224, "cropWidth": 224, "mean": [...], "std": [...]}.
    class_names: one name a class. name: what records call the net (default: the
    file's name). default_layer: what class activation maps look at (default: the
    last map of the image).
    Raises ExportError, naming what cannot be exported and the lines that ask for
    it. Returns the largest difference between the file's logits and the model's.
    """
    path = str(path).removesuffix(".json")
    name = name or os.path.basename(path)
    modes = []
    if isinstance(model, torch.export.ExportedProgram):
        program, model = model, model.module()
    else:
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        if not isinstance(example_input, torch.Tensor) or example_input.dim() not in (2, 4):
            raise ExportError("example_input: want one tensor, [N,C,H,W] or [N,F]")
        program = traced(model, example_input)
    try:
        c, shape = mapped(program)
        file, tensors = net_file(c, shape, name, preset, class_names, default_layer)
        file["weights"] = os.path.basename(path) + ".safetensors"
        classes = c.ops[c.output]["sizes"][0]
        if class_names is not None and len(class_names) != classes:
            raise ExportError(f"{len(class_names)} class names for {classes} outputs")
        text, weights = json_text(file), safetensors_bytes(tensors)
        device = next((t.device for t in [*program.state_dict.values()]), torch.device("cpu"))
        with torch.no_grad():
            x = torch.randn([3 if c.batch > 1 else 1] + shape, generator=torch.Generator().manual_seed(0))
            want = model(x.to(device)).cpu()
            got = interpret(json.loads(text), safetensors_read(weights), x)
    finally:
        for module, training in modes:
            module.training = training
    largest, difference = want.abs().max().item(), (got - want).abs().max().item()
    if not difference <= 1e-3 * max(largest, 1e-30):
        raise ExportError(f"a defect of this script: the file's logits differ from the model's by {difference:.3g} (largest {largest:.3g})")
    for end, content in ((".safetensors", weights), (".json", text.encode())):
        with open(path + end + ".part", "wb") as out:
            out.write(content)
        os.replace(path + end + ".part", path + end)
    count = sum(math.prod(p["shape"]) for p in file["parameters"] if not p.get("buffer"))
    print(f"{path}.json: {len(file['ops'])} ops, {count:,} parameters, {classes} classes; "
          f"logits differ from PyTorch's by at most {difference:.2g} (largest {largest:.3g})")
    if c.ops[c.output]["op"] == "softmax":
        print("warning: the model ends in a softmax: assay wants logits, and applies its own", file=sys.stderr)
    return difference


def load(what):
    """A program of a .pt2 file, or the model that module:function returns."""
    if ":" not in what:
        if not os.path.exists(what):
            raise ExportError(f"{what}: want module:function, or a .pt2 file")
        try:
            return torch.export.load(what)
        except Exception as error:
            raise ExportError(f"{what} is not of torch.export.save: {said(error)}") from None
    module, _, function = what.rpartition(":")
    sys.path.insert(0, os.getcwd())
    try:
        if module.endswith(".py"):
            spec = importlib.util.spec_from_file_location(os.path.basename(module)[:-3], module)
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
        else:
            loaded = importlib.import_module(module)
        model = getattr(loaded, function)()
    except Exception as error:
        raise ExportError(f"{what}{own_line(error)}: {said(error)}") from None
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"{what} returns a {type(model).__name__}: want an nn.Module")
    return model


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Writes a PyTorch model as a net file for assay.")
    parser.add_argument("model", help="module:function (or file.py:function) that returns the model, or a .pt2 file")
    parser.add_argument("--input", help="shape of one input: 3,224,224 or 30 (not for .pt2)")
    parser.add_argument("--out", required=True, help="writes OUT.json and OUT.safetensors")
    parser.add_argument("--preset", help="name of a preset, or a JSON file with one")
    parser.add_argument("--classes", help="file with the names of the classes, one a line")
    parser.add_argument("--name", help="what records call the net (default: the file's name)")
    parser.add_argument("--default-layer", help="what class activation maps look at (default: the last map of the image)")
    options = parser.parse_args(arguments)
    try:
        model, example = load(options.model), None
        if isinstance(model, torch.nn.Module) and not isinstance(model, torch.export.ExportedProgram):
            try:
                example = torch.zeros([2] + [int(size) for size in options.input.split(",")])
            except (AttributeError, ValueError):
                raise ExportError(f"--input {options.input}: want the shape of one input, for example 3,224,224") from None
        preset, classes = options.preset, None
        if preset and os.path.exists(preset):
            with open(preset) as source:
                preset = json.load(source)
        if options.classes:
            with open(options.classes) as source:
                classes = [line.strip() for line in source if line.strip()]
        export(model, example, options.out, preset, classes, options.name, options.default_layer)
    except (ExportError, OSError) as error:
        print(f"export: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
