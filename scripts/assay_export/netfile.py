"""The net file: names, JSON (csrc/graph/json.h), safetensors."""

import ctypes
import json
import struct

import torch

from .mapper import clean
from .values import ExportError, IMAGE, INPUT, Row

# Attributes with these values are left out (csrc/graph/graph.h).
DEFAULTS = {
    "bias": True,
    "kernel": [1, 1],
    "stride": [1, 1],
    "padding": [0, 0, 0, 0],
    "dilation": [1, 1],
    "output_padding": [0, 0],
    "groups": 1,
    "ceil": False,
    "count_padding": True,
    "epsilon": 1e-5,
    "momentum": 0.1,
    "dimensions": 1,
    "slope": 0.01,
    "approximate": False,
    "probability": 0.0,
    "output": [1, 1],
    "bilinear": False,
    "align_corners": False,
    "axis": 0,
    "keep": False,
    "begin": 0,
    "step": 1,
    "factor": 1.0,
    "shift": 0.0,
    "transpose": False,
}


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
    alone = {
        ids[0]: path
        for (path, _), ids in runs.items()
        if len(ids) == 1
        and path
        and path not in parents
        and c.ops[ids[0]]["place"].leaf
        and c.ops[ids[0]]["op"] != "parameter"
    }
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
        if (
            not path
            or path in taken
            or not isinstance(value, Row)
            or not value.natural()
            or value.id not in names
            or value.id == INPUT
        ):
            continue
        if all(inside(user) for user in node.users):
            continue  # not what the module returns
        taken.add(path)
        file["places"].append({"name": path, "kind": kind, "value": names[value.id]})
        of_value.setdefault(value.id, []).append(path)
    file["output"] = names[c.output]
    # Not the grid that a head of vectors asks for.
    maps_of_image = [
        i
        for i in used
        if c.ops[i]["plane"] == IMAGE
        and len(c.ops[i]["sizes"]) == 3
        and c.ops[i]["sizes"][1] > 1
        and not c.ops[i]["op"].startswith("adaptive")
    ]
    if default_layer is not None:
        if default_layer not in taken - {"input"}:
            raise ExportError(
                f"default_layer {default_layer!r}: want the name of a module or an op, for example {', '.join(sorted(taken)[:5])}"
            )
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


SAFETENSORS = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def safetensors_bytes(tensors):
    header, chunks, offset = {}, [], 0
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        chunk = ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""
        header[name] = {
            "dtype": SAFETENSORS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def safetensors_read(data):
    size = struct.unpack("<Q", data[:8])[0]
    types = {name: dtype for dtype, name in SAFETENSORS.items()}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]]).reshape(
            entry["shape"]
        )
    return tensors
