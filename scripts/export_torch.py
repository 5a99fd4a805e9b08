#!/usr/bin/env python3
"""Writes a PyTorch model as a net file for assay: NAME.json, the list of its
ops, and NAME.safetensors, its parameters (docs/own-models.md, csrc/graph/json.h).

    python export_torch.py my_models:make --input 3,224,224 --out mymodel --preset imagenet
    python export_torch.py model.pt2 --out mymodel

make() returns the model with its weights; model.pt2 is of torch.export.save.
From Python:

    from export_torch import export
    export(model, torch.randn(2, 3, 224, 224), "mymodel", preset="imagenet")

Needs torch 2.6 or newer, the folder assay_export beside it and nothing else. The
model is traced by torch.export
in eval mode; every ATen operation is mapped to ops of assay's table, or, where
there is no such op, named with the line of the model that asks for it. What was
written is then read back, interpreted and compared with the model.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import json
import logging
import math
import os
import sys
import warnings

import torch
from torch.utils import _pytree as pytree

from assay_export.mapper import Exporter
from assay_export.netfile import json_text, net_file, safetensors_bytes, safetensors_read
from assay_export.table import interpret
from assay_export.values import BATCH, Constant, ExportError, IMAGE, INPUT, Row


def traced(model, example):
    """An exported program, with any number of rows where the model allows it."""
    with warnings.catch_warnings(), quiet(), torch.enable_grad():
        warnings.simplefilter("ignore")
        two = torch.cat([example[:1]] * 2)
        try:
            return torch.export.export(
                model, (two,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},), strict=False
            )
        except Exception as first:
            try:
                return torch.export.export(model, (example[:1],), strict=False)
            except Exception as second:
                raise ExportError(
                    f"torch.export cannot trace the model{own_line(second)}: {said(second)}\n"
                    "Branches that depend on values cannot be traced: docs/own-models.md says what to do."
                ) from first


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
    library = os.path.dirname(os.__file__) + os.sep
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith((torch_folder, library + "importlib")) and file != __file__ and not file.startswith("<"):
            found = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def mapped(program):
    """An Exporter that has mapped the program, and the shape of one row."""
    signature = program.graph_signature
    inputs = [
        spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT" and hasattr(spec.arg, "name")
    ]
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    tensors = [name for name in inputs if isinstance(placeholders[name].meta.get("val"), torch.Tensor)]
    if len(tensors) != 1:
        raise ExportError(f"the model takes {len(tensors)} tensors: want one, [N,C,H,W] or [N,F]")
    fake = placeholders[tensors[0]].meta["val"]
    rows = fake.shape[0] if fake.dim() else 0
    if isinstance(rows, int):
        if rows != 1:
            raise ExportError(
                f"the program was exported for a batch of {rows}: export it with a dynamic batch, or with a batch of 1"
            )
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
            env[node] = Row(
                INPUT, shape, [(BATCH,)] + [(i,) for i in range(len(shape))], IMAGE if len(shape) == 3 else None, None
            )
        elif spec.target in c.state:
            # Tensors that forward() makes have no name that anybody knows.
            env[node] = Constant(c.state[spec.target], None if spec.target.startswith("lifted_tensor") else spec.target)
    c.run(program.graph, env)
    results = pytree.tree_leaves(next(node for node in program.graph.nodes if node.op == "output").args[0])
    mutations = [s for s in signature.output_specs if s.kind.name != "USER_OUTPUT"]
    results = results[len(mutations) :]
    if c.complaints:
        lines = [f"  {text}\n    {line}: {source}" if line else f"  {text}" for text, line, source in c.complaints]
        raise ExportError(
            "assay's table of ops cannot express this model:\n"
            + "\n".join(lines)
            + "\ndocs/own-models.md says what to do."
        )
    if len(results) != 1:
        raise ExportError(f"the model returns {len(results)} values: want the logits alone, [N,classes]")
    output = env.get(results[0])
    if not isinstance(output, Row) or len(output.dims) != 2 or output.dims[0] != (BATCH,):
        what = (
            ["N" if output.batched(i) else output.size(i) for i in range(len(output.dims))]
            if isinstance(output, Row)
            else "what does not depend on the input"
        )
        raise ExportError(f"the model returns {what}: want logits, [N,classes]")
    output = c.arranged(output)
    if output.id == INPUT:
        raise ExportError("the model returns its input")
    c.output = output.id
    return c, shape


# The fields of dataset.Preset.
PRESET = set("id resize height width interpolation cropHeight cropWidth channels scale mean std".split())


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
    try:
        if isinstance(model, torch.export.ExportedProgram):
            program, model = model, model.module()
        else:
            if not isinstance(example_input, torch.Tensor) or example_input.dim() not in (2, 4):
                raise ExportError("example_input: want one tensor, [N,C,H,W] or [N,F]")
            modes = [(module, module.training) for module in model.modules()]
            program = traced(model.eval(), example_input)
        c, shape = mapped(program)
        file, tensors = net_file(c, shape, name, preset, class_names, default_layer)
        file["weights"] = os.path.basename(path) + ".safetensors"
        classes = c.ops[c.output]["sizes"][0]
        if isinstance(preset, dict) and set(preset) - PRESET:
            raise ExportError(f"preset: {sorted(set(preset) - PRESET)}: want {', '.join(sorted(PRESET))}")
        if class_names is not None and len(class_names) != classes:
            raise ExportError(f"{len(class_names)} class names for {classes} outputs")
        text, weights = json_text(file), safetensors_bytes(tensors)
        own = next((t for t in program.state_dict.values() if t.is_floating_point()), torch.zeros(1))
        with torch.no_grad():
            x = torch.randn([3 if c.batch > 1 else 1] + shape, generator=torch.Generator().manual_seed(0))
            want = model(x.to(own)).cpu()
            got = interpret(json.loads(text), safetensors_read(weights), x.to(own.dtype))
    finally:
        for module, training in modes:
            module.training = training
    largest, difference = want.abs().max().item(), (got - want).abs().max().item()
    if not math.isfinite(largest):
        raise ExportError("the model's logits of random inputs are not finite")
    if not difference <= 1e-3 * max(largest, 1e-30):
        raise ExportError(
            f"a defect of this script: the file's logits differ from the model's by {difference:.3g} (largest {largest:.3g})"
        )
    for end, content in ((".safetensors", weights), (".json", text.encode())):
        with open(path + end + ".part", "wb") as out:
            out.write(content)
        os.replace(path + end + ".part", path + end)
    count = sum(math.prod(p["shape"]) for p in file["parameters"] if not p.get("buffer"))
    print(
        f"{path}.json: {len(file['ops'])} ops, {count:,} parameters, {classes} classes; "
        f"logits differ from PyTorch's by at most {difference:.2g} (largest {largest:.3g})"
    )
    if c.ops[c.output]["op"] == "softmax":
        print("warning: the model ends in a softmax: assay wants logits, and applies its own", file=sys.stderr)
    return difference


def load(what):
    """A program of a .pt2 file, or the model that module:function returns."""
    if ":" not in what:
        if not os.path.exists(what):
            raise ExportError(f"{what}: want module:function, or a .pt2 file")
        try:
            with quiet():
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
    parser.add_argument(
        "--default-layer", help="what class activation maps look at (default: the last map of the image)"
    )
    options = parser.parse_args(arguments)
    try:
        model, example = load(options.model), None
        if isinstance(model, torch.nn.Module) and not isinstance(model, torch.export.ExportedProgram):
            try:
                example = torch.zeros([2] + [int(size) for size in (options.input or "").split(",")])
            except (ValueError, RuntimeError):
                raise ExportError(
                    f"--input {options.input or 'is missing'}: want the shape of one input, as 3,224,224"
                ) from None
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
