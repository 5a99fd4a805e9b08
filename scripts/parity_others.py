#!/usr/bin/env python3
"""Measures what captum and pytorch-grad-cam return where a net or a setting is not
what they expect: the numbers of docs/parity.md.

By hand, from the repository's root: python scripts/parity_others.py
Nets have the parameters of golden_nets.py's formula, the images are photographs of
testdata/embedded. "off by" is the largest difference as a share of the largest value of
the right map.
"""

import copy
import warnings
from importlib.metadata import version

import captum.attr
import numpy as np
import pytorch_grad_cam
import torch
import torchvision
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torch import nn
from torch.nn import functional as F

from golden_attribution import IMAGENET, normalised, photograph
from golden_attribution_methods import Asked, in_double, oracle
from golden_attribution_nets import Relu6, module, own_forward
from golden_nets import gain, parameter

warnings.simplefilter("ignore")
SIZE = 64


def image(name="chelsea.png", size=SIZE):
    return normalised(photograph(name, size), *IMAGENET)


def filled(net, name):
    state = {key: parameter(key, value.shape, gain(name)).to(value.dtype) for key, value in net.state_dict().items()}
    net.load_state_dict(state)
    return net.double().eval()


def off(got, right):
    got, right = torch.as_tensor(np.asarray(got.detach() if isinstance(got, torch.Tensor) else got)), right.detach()
    return float((got - right).abs().max() / right.abs().max())


def say(what, value):
    print(f"{what}: {value if isinstance(value, str) else f'{value:.3g}'}", flush=True)


def top(net, x):
    with torch.no_grad():
        return int(net(x).argmax(1)[0])


def captum_guided(net, x, target):
    return captum.attr.GuidedBackprop(net).attribute(x.clone(), target=target)


def plain(net, x, target):
    return captum.attr.Saliency(net).attribute(x.clone(), target=target, abs=False)


def relus():
    print("# rectifiers")
    x = image()
    # DenseNet: the last ReLU is a function.
    original = filled(torchvision.models.densenet121(), "densenet121")
    right = module("densenet121")
    target = top(right, x)
    guided = captum_guided(right, x, target)
    say("functional ReLU (DenseNet-121's last), guided backprop off by", off(captum_guided(original, x, target), guided))

    # All activations functional: a small net.
    torch.manual_seed(0)
    parts = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(8, 4)).double().eval()
    functional = copy.deepcopy(parts)
    functional[1], functional[3] = nn.Identity(), nn.Identity()
    own_forward(functional, lambda self, x: self[6](self[5](self[4](F.relu(self[2](F.relu(self[0](x))))))))
    say("all ReLUs functional, guided backprop off by", off(captum_guided(functional, x, 0), captum_guided(parts, x, 0)))
    say("... and off the plain gradient by", off(captum_guided(functional, x, 0), plain(parts, x, 0)))

    # ResNet: one module for all ReLUs of a block, in place.
    original = filled(torchvision.models.resnet18(), "resnet18")
    right = module("resnet18")
    target = top(right, x)
    guided = captum_guided(right, x, target)
    try:
        say("one ReLU module used twice (ResNet-18), guided backprop off by", off(captum_guided(original, x, target), guided))
    except Exception as error:
        say("one in-place ReLU module used twice (ResNet-18), guided backprop raises", str(error).split("\n")[0][:100])
    try:
        captum.attr.DeepLift(original).attribute(x, target=target)
    except Exception as error:
        say("... DeepLift raises", str(error).split("\n")[0][:100])

    # pytorch-grad-cam's guided backprop looks for the class nn.ReLU.
    model = pytorch_grad_cam.GuidedBackpropReLUModel(copy.deepcopy(right), device="cpu")
    before = sum(isinstance(part, nn.ReLU) for part in model.model.modules())
    got = torch.from_numpy(model(x.detach().clone(), target).transpose(2, 0, 1))[None]
    say("pytorch-grad-cam, guided backprop on the modular ResNet-18 off captum's by", off(got, guided))
    after = sum(isinstance(part, nn.ReLU) for part in model.model.modules())
    say("... ReLU modules of the net before and after", f"{before}, {after}")

    # ReLU6.
    original = filled(torchvision.models.mobilenet_v2(), "mobilenet-v2")
    right = module("mobilenet-v2")
    target = top(right, x)
    guided, gradient = captum_guided(right, x, target), plain(right, x, target)
    got = captum_guided(original, x, target)
    say("ReLU6 (MobileNetV2), guided backprop off by", off(got, guided))
    say("... and off the plain gradient by", off(got, gradient))
    model = pytorch_grad_cam.GuidedBackpropReLUModel(copy.deepcopy(original), device="cpu")
    got = torch.from_numpy(model(x.detach().clone(), target).transpose(2, 0, 1))[None]
    say("... pytorch-grad-cam's off the plain gradient by", off(got, gradient))

    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.low, self.high = nn.ReLU(), nn.ReLU()

        def forward(self, x):
            return self.low(x) - self.high(x - 6)

    loud = right  # where activations pass 6: scale the input
    split = copy.deepcopy(right)

    def swap(parent):
        for name, child in parent.named_children():
            if isinstance(child, Relu6):
                setattr(parent, name, Split())
            else:
                swap(child)

    swap(split)
    y = x * 4
    with torch.no_grad():
        same = off(split(y), right(y))
    say("ReLU6 written relu(x)-relu(x-6): logits off by", same)
    say("... guided backprop off relu(g 1[0<x<6]) by, input times 4", off(captum_guided(split, y, target), captum_guided(loud, y, target)))

    for kind in (nn.GELU, nn.SiLU, nn.Hardswish, nn.Sigmoid, nn.LeakyReLU):
        net = nn.Sequential(nn.Conv2d(3, 8, 3), kind(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)).double()
        say(f"{kind.__name__}, guided backprop off the plain gradient by",
            off(captum_guided(net, x, 0), plain(net, x, 0)))


def integrals():
    print("# integrated gradients and noise")
    torch.manual_seed(0)
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIZE * SIZE, 2)).double()
    x = image()
    right = (linear[1].weight[0].view(1, 3, SIZE, SIZE) * x).detach()
    for rule in ("gausslegendre", "riemann_left", "riemann_right", "riemann_middle", "riemann_trapezoid"):
        got = captum.attr.IntegratedGradients(linear).attribute(x, target=0, n_steps=50, method=rule)
        say(f"linear net, {rule}, 50 steps: off by", off(got, right))
    net = module("resnet18")
    target = top(net, x)
    say("Saliency: share of negative values that it returns by default", float(
        (captum.attr.Saliency(net).attribute(x, target=target) < 0).double().mean()))
    # The noise's scale and its seed.
    torch.manual_seed(1)
    small = module("cifar-resnet20")
    a, b = image("chelsea.png", 32), image("coffee.png", 32)
    tunnel = captum.attr.NoiseTunnel(captum.attr.Saliency(small))
    ask = dict(nt_type="smoothgrad", nt_samples=5, target=0, abs=False)
    torch.manual_seed(1)
    alone = tunnel.attribute(b, **ask)
    torch.manual_seed(1)
    both = tunnel.attribute(torch.cat([a, b]), **ask)[1:]
    say("SmoothGrad, one seed: an image in a batch off itself alone by", off(both, alone))
    say("default noise 1.0 as a share of the image's range", 1 / float(b.max() - b.min()))
    single = copy.deepcopy(small).float()
    varied = captum.attr.NoiseTunnel(captum.attr.Saliency(single)).attribute(
        b.float(), nt_type="vargrad", nt_samples=15, stdevs=1e-4, target=0, abs=False)
    say("VarGrad in float32, little noise: share of negative variances", float((varied < 0).double().mean()))


def cams():
    print("# class activation maps")
    x = image(size=96)
    net = module("resnet18")
    target = top(net, x)
    targets = [ClassifierOutputTarget(target)]
    raw = oracle(Asked("resnet18", net, x, target, None), {"id": "grad-cam", "upsample": False})[0]
    full = oracle(Asked("resnet18", net, x, target, None), {"id": "grad-cam"})[0][0]
    corners = oracle(Asked("resnet18", net, x, target, None), {"id": "grad-cam", "align-corners": True})[0][0]
    with pytorch_grad_cam.GradCAM(net, [net.layer4]) as method:
        theirs = torch.from_numpy(method(x, targets)[0]).double()
    say("Grad-CAM as returned: smallest", float(theirs.min()))
    say("... largest", float(theirs.max()))
    say("ours: largest", float(full.max()))
    say("... smallest", float(full.min()))
    scaled = (full - full.min()) / (full.max() - full.min())
    say("theirs off our map scaled once, after upsampling, by", off(theirs, scaled))
    say("... correlation", float(torch.corrcoef(torch.stack([theirs.ravel(), full.ravel()]))[0, 1]))
    say("align_corners true off false by", off(corners, full))
    # Scaling before: a map that is flat but for noise.
    flat = np.full((1, 3, 3), 5.0) + np.arange(9).reshape(1, 3, 3) * 1e-6
    scaled = pytorch_grad_cam.utils.image.scale_cam_image(flat)
    say("scaling of a map of 5..5.000008: largest", float(scaled.max()))
    say("... of an all-zero map: largest", float(pytorch_grad_cam.utils.image.scale_cam_image(np.zeros((1, 3, 3))).max()))

    # What stands behind the layer works in place.
    original = filled(torchvision.models.resnet18(), "resnet18")
    for where, path in (("layer4's last batch norm", "layer4.1.bn2"), ("a block's first batch norm", "layer4.1.bn1")):
        ask = Asked("resnet18", net, x, target, None)
        right = oracle(ask, {"id": "grad-cam", "layer": path, "upsample": False})[0]
        got = oracle(Asked("resnet18", original, x, target, None), {"id": "grad-cam", "layer": path, "upsample": False})[0]
        say(f"in-place op behind {where} (torchvision's ResNet-18), Grad-CAM off by", off(got, right))
    small = captum.attr.LayerGradCam(net, net.layer4).attribute(x, target=target)
    say("captum's LayerGradCam by default: smallest as a share of the largest", float(small.min() / small.max()))
    guided = captum_guided(net, x, target)
    right = guided * F.interpolate(small.clamp(min=0), x.shape[2:], mode="bilinear", align_corners=False)
    say("captum's GuidedGradCam (nearest) off the bilinear one by",
        off(captum.attr.GuidedGradCam(net, net.layer4).attribute(x, target=target), right))

    # XGrad-CAM where a channel's activations sum to about nothing.
    activations = np.array([[[[1.0, -1.0 - 1e-7], [1.0, -1.0]]]])
    gradients = np.array([[[[1.0, 2.0], [3.0, 4.0]]]])
    weight = pytorch_grad_cam.XGradCAM.get_cam_weights(None, None, None, None, activations, gradients)
    say("XGrad-CAM: weight of a channel that sums to -1e-7", str(weight.ravel().tolist()))
    weight = pytorch_grad_cam.XGradCAM.get_cam_weights(None, None, None, None, np.zeros((1, 1, 2, 2)), gradients)
    say("... of a channel of zeros", str(weight.ravel().tolist()))

    # Ablation-CAM where activations are negative.
    cifar = module("cifar-resnet20")
    y = image(size=32)
    chosen = top(cifar, y)

    def zeroed(path):
        layer = cifar.get_submodule(path)
        kept = {}
        handle = layer.register_forward_hook(lambda m, i, o: kept.update(a=o))
        with torch.no_grad():
            score = cifar(y)[0, chosen]
        handle.remove()
        weights = []
        for channel in range(kept["a"].shape[1]):
            def ablate(m, i, o, channel=channel):
                o = o.clone()
                o[:, channel] = 0
                return o
            handle = layer.register_forward_hook(ablate)
            with torch.no_grad():
                weights.append((score - cifar(y)[0, chosen]) / score)
            handle.remove()
        return torch.stack(weights)

    for path in ("layer3", "layer3.1.conv1", "layer3.1.bn2"):
        seen = {}

        class Seen(pytorch_grad_cam.AblationCAM):
            def get_cam_weights(self, *arguments):
                seen["weights"] = super().get_cam_weights(*arguments)
                return seen["weights"]

        with in_double(), Seen(cifar, [cifar.get_submodule(path)]) as method:
            method(y, [ClassifierOutputTarget(chosen)])
        say(f"Ablation-CAM at {path}: weights off those of channels set to 0 by",
            off(torch.as_tensor(seen["weights"][0]), zeroed(path)))
        say("... largest weight", float(np.abs(seen["weights"]).max()))

    # The sign of Eigen-CAM, over every layer of a net and both photographs.
    against = total = 0
    for name in ("chelsea.png", "coffee.png"):
        picture = image(name, 32)
        for path, layer in cifar.named_modules():
            if not isinstance(layer, nn.ReLU):
                continue
            kept = {}
            handle = layer.register_forward_hook(lambda m, i, o: kept.update(a=o.numpy().copy()))
            with torch.no_grad():
                cifar(picture)
            handle.remove()
            map_ = pytorch_grad_cam.utils.svd_on_activations.get_2d_projection(kept["a"])[0]
            strength = kept["a"][0].sum(0)
            against += ((map_ - map_.mean()) * (strength - strength.mean())).sum() < 0
            total += 1
    say("Eigen-CAM: maps that run against the sum of the activations", f"{against} of {total}")


if __name__ == "__main__":
    print(", ".join(f"{name} {version(name)}" for name in ("captum", "grad-cam", "torch", "torchvision")))
    relus()
    integrals()
    cams()
