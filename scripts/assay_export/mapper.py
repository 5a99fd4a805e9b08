"""Walks over the nodes of a traced model and hands each to its handler."""

import operator
import os

import torch
from torch.utils import _pytree as pytree

from .layouts import Writer
from .values import BATCH, Constant, Missing, Refused, Row


class Place:
    """Where a node stands: module path, whether that is a module of torch.nn,
    which run of nodes within it, and the user's line."""

    def __init__(self, path, leaf, run, line):
        self.path, self.leaf, self.run, self.line = path, leaf, run, line


# The handlers of ATen operations, by name without overload: handler(exporter, arguments
# by name; "out": the shape that was traced, None for several results) -> value or values.
HANDLERS = {}


def maps(*names):
    def register(handler):
        for name in names:
            HANDLERS["aten::" + name] = handler
        return handler

    return register


class Exporter(Writer):
    """Maps the nodes of an exported program to ops, in their order."""

    def __init__(self, batch):
        super().__init__(batch)
        self.complaints = []  # (what, line, source)
        self.modules = {}  # path: (kind, last value, node)
        self.output = None  # the op of the logits

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
                env[node] = self.stand_in(value)
            if not inner:
                self.remember(node, env[node])
        return env

    def stand_in(self, fake):
        """For what could not be mapped: a value to find the other complaints with."""
        if isinstance(fake, (list, tuple)):
            return [self.stand_in(f) for f in fake]
        shape = self.shape(fake) if isinstance(fake, torch.Tensor) else []
        if [s for s in shape if s % self.batch == 0] != [self.batch] or self.batch == 1:
            return Missing()
        sizes = [s for s in shape if s != self.batch]
        axes = iter(range(len(sizes)))
        dims = [(BATCH,) if s == self.batch else (next(axes),) for s in shape]
        return Row(self.emit("missing", [], sizes), sizes, dims, None, self.place)

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
        if (
            schema.arguments
            and schema.arguments[0].alias_info is not None
            and isinstance(node.args[0], torch.fx.Node)
            or name == "aten::dropout"
        ):
            roots[node] = roots.get(node.args[0], node.args[0])
        written = None
        if short_name(name).startswith(RANDOM):
            raise Refused("it draws random numbers")
        if (
            short_name(name) not in SIZED
            and self.batch > 1
            and any(type(leaf) is int and leaf and leaf % self.batch == 0 for leaf in leaves)
        ):
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
        inside = dict(zip([n for n in graph.nodes if n.op == "placeholder"], leaves[at + 1 :]))
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
            args, kwargs = pytree.tree_unflatten(
                [next(rest) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves], spec
            )
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
        place = Place(
            path, leaf, last.run if same else (last.run + 1 if last else 0), line_of(node.meta.get("stack_trace"))
        )
        place.key = key
        return place

    def remember(self, node, value):
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
            kind = kind if isinstance(kind, str) else kind.__qualname__
            self.modules[clean(path)] = ("stage" if kind.endswith("Sequential") else "block", value, node)

    def title(self, target):
        return (
            target._schema.name.replace("::", ".")
            if hasattr(target, "_schema")
            else str(getattr(target, "__name__", target))
        )

    def complain(self, text):
        entry = (text, *(self.place.line if self.place else ("", "")))
        if entry not in self.complaints:
            self.complaints.append(entry)


RANDOM = ("rand", "normal", "bernoulli", "multinomial", "native_dropout", "poisson")
# What may be given the batch's size without telling rows apart.
SIZED = {
    "full",
    "zeros",
    "ones",
    "empty",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "expand",
    "view",
    "reshape",
    "repeat",
    "tile",
    "_unsafe_view",
    "unflatten",
    "broadcast_to",
    "slice",
    "narrow",
}


def short_name(name):
    return name.split("::")[-1]


def in_place(node):
    schema = getattr(node.target, "_schema", None)
    return (
        schema is not None
        and schema.is_mutable
        and schema.name.endswith("_")
        and isinstance(node.args[0], torch.fx.Node)
    )


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
