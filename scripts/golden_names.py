#!/usr/bin/env python3
"""Makes weights/testdata/names.json: state dicts whose names differ from a
net's, and where torchvision itself puts each of their tensors.

Every tensor of a file gets a number as its content, torchvision loads the file
strictly, and the numbers are looked up in the module. A row is
[name in the file, name in the net or null, shape]; "counters" are the net's
num_batches_tracked, which these files do not have.

Needs torchvision; run by hand:
    python scripts/golden_names.py weights/testdata/names.json
"""

import collections
import json
import re
import sys

import torch
import torchvision
from torchvision.models import GoogLeNet, Inception3, VisionTransformer, densenet


def numbered(state, rename):
    """The state under other names, without counters, every tensor one number."""
    out = collections.OrderedDict()
    for name, value in state.items():
        if not name.endswith("num_batches_tracked"):
            out[rename(name)] = torch.full_like(value, len(out) + 1)
    return out


def rows(file, net):
    """Where the tensors of a file are in a module that loaded them."""
    places = {float(value.flatten()[0]): name for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    out = [[name, places.pop(float(value.flatten()[0]), None), list(value.shape)] for name, value in file.items()]
    assert not places, places
    return out


def case(name, made, file, net):
    return {"name": name, "made": made, "rows": rows(file, net),
            "counters": [n for n in net.state_dict() if n.endswith("num_batches_tracked")]}


def dense_case():
    made = "DenseNet(4, (2, 3), 8, bn_size=2, num_classes=3)"
    net = densenet.DenseNet(4, (2, 3), 8, bn_size=2, num_classes=3)
    file = numbered(net.state_dict(), lambda n: re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", n))

    class Published:
        def get_state_dict(self, **_):
            return collections.OrderedDict(file)

    densenet._load_state_dict(net, Published(), False)
    return case("DenseNet's old spelling", made, file, net)


def transformer_case():
    made = "VisionTransformer(32, 16, 2, 2, 8, 16, num_classes=3)"
    net = VisionTransformer(32, 16, 2, 2, 8, 16, num_classes=3)
    file = numbered(net.state_dict(), lambda n: n.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."))
    net.load_state_dict(file)
    return case("the vision transformer's old spelling", made, file, net)


def auxiliary_case(name, made, whole, without):
    # Strict for the module that has the heads, as torchvision does it.
    file = numbered(whole.state_dict(), lambda n: n)
    counters = {n: v for n, v in whole.state_dict().items() if n.endswith("num_batches_tracked")}
    whole.load_state_dict({**file, **counters})
    without.load_state_dict({n: v for n, v in whole.state_dict().items() if n in without.state_dict()})
    return case(name, made, file, without)


def main(path):
    new = {"num_classes": 3, "init_weights": False}
    cases = [
        dense_case(),
        transformer_case(),
        auxiliary_case("GoogLeNet's auxiliary heads", "GoogLeNet(3)",
                       GoogLeNet(aux_logits=True, **new), GoogLeNet(aux_logits=False, **new)),
        auxiliary_case("Inception v3's auxiliary head", "Inception3(3)",
                       Inception3(aux_logits=True, **new), Inception3(aux_logits=False, **new)),
    ]
    with open(path, "w") as out:
        out.write('{"script": "scripts/golden_names.py", "torchvision": "' + torchvision.__version__ + '", "cases": [\n')
        out.write(",\n".join('{"name": ' + json.dumps(c["name"]) + ', "made": ' + json.dumps(c["made"]) + ', "counters": '
                             + json.dumps(c["counters"]) + ', "rows": [\n' + ",\n".join(json.dumps(r) for r in c["rows"]) + "\n]}"
                             for c in cases))
        out.write("\n]}\n")


if __name__ == "__main__":
    main(sys.argv[1])
