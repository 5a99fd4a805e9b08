"""What the nodes of a traced model become: rows with a layout, and constants."""

import math


class ExportError(Exception):
    """A message for people: what cannot be exported, where, and what to do."""


class Refused(Exception):
    """Why one node cannot be mapped; its line in the model is added later."""


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
    if (
        isinstance(value, Constant)
        and value.origin is None
        and value.tensor.numel() == 1
        and value.tensor.dim() <= rank
    ):
        return float(value.tensor)
    return None
