"""Writes ops for values in any layout: what all handlers use."""

import math

import torch

from .values import BATCH, Constant, ExportError, Refused, Row, number, plane_of


class Writer:
    """A list of ops that grows: what handlers call to add to it."""

    def __init__(self, batch):
        self.batch = batch  # what stands for the batch's size in shapes
        self.symbol = None  # and in symbolic ones
        self.state = {}  # the model's parameters and buffers by name
        self.trained = set()  # names of those that are parameters
        self.ops = []  # dicts; inputs are indices of ops or INPUT
        self.parameters = []  # dicts: tensor, origin or op and suffix
        self.cache = {}  # layouts and parameters that were written already
        self.place = None  # of the node that is being mapped

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
        self.ops.append(
            {
                "op": op,
                "inputs": list(inputs),
                "attributes": attributes or {},
                "sizes": list(sizes),
                "parameters": list(parameters),
                "place": place or self.place,
                "plane": None,
            }
        )
        if len(sizes) > 7:
            raise Refused(f"rows of {len(sizes)} axes: want at most 7")
        return len(self.ops) - 1

    def row(self, op, inputs, sizes, dims, plane=None, attributes=None, parameters=()):
        id = self.emit(op, inputs, sizes, attributes, parameters)
        self.ops[id]["plane"] = plane
        return Row(id, sizes, dims, plane, self.place)

    def unary(self, x, op, **attributes):
        return self.row(op, [x.id], x.sizes, x.dims, x.plane, attributes)

    def affine(self, x, factor=1.0, shift=0.0):
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
                id = self.emit(
                    "flatten" if flat else "reshape", [id], shape, {} if flat else {"shape": shape}, place=x.place
                )
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
                for part in (d[:at], BATCH, d[at + 1 :]):
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
        self.parameters.append(
            {"tensor": tensor.detach().contiguous(), "origin": None, "op": len(self.ops), "suffix": suffix}
        )
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
            y = (
                self.affine(y, alpha)
                if isinstance(y, Row)
                else Constant(y.tensor * alpha) if isinstance(y, Constant) else y * alpha
            )
        a, b = number(x, self.rank(y)), number(y, self.rank(x))
        if b is not None:
            if op == "div" and b == 0:
                raise Refused("division by zero")
            return {
                "add": lambda: self.affine(x, 1, b),
                "sub": lambda: self.affine(x, 1, -b),
                "mul": lambda: self.affine(x, b),
                "div": lambda: self.affine(x, 1 / b),
            }[op]()
        if a is not None:
            simple = {
                "add": lambda: self.affine(y, 1, a),
                "sub": lambda: self.affine(y, -1, a),
                "mul": lambda: self.affine(y, a),
            }
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
        return self.row(
            "reshape", [x.id], sizes, [(BATCH,)] + [(i,) for i in range(len(sizes))], None, {"shape": sizes}
        )

    def text(self, shape):
        return str(["batch" if s == self.batch else s for s in shape])
