"""What captum and pytorch-grad-cam return, asked in double precision and brought
into our conventions: signed maps, a class activation map rectified and then
upsampled but not scaled. A method is asked by our spec, {"id": ..., ...}.
"""

import contextlib
import warnings
from unittest import mock

import captum.attr
import numpy as np
import pytorch_grad_cam
import torch
import tqdm
from torch.nn import functional as F

from golden_attribution_nets import layer

RULES = {"gauss-legendre": "gausslegendre", "left": "riemann_left", "right": "riemann_right",
         "middle": "riemann_middle", "trapezoid": "riemann_trapezoid"}


@contextlib.contextmanager
def in_double():
    """Both libraries make some of their tensors in the default type (captum its
    steps, pytorch-grad-cam its scores) or in float32 by name."""
    import pytorch_grad_cam.ablation_cam
    import pytorch_grad_cam.utils.svd_on_activations as svd

    class Wide:
        def __getattr__(self, name):
            return np.float64 if name == "float32" else getattr(np, name)

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    quiet = lambda items, **_: items
    with mock.patch.object(pytorch_grad_cam.ablation_cam, "np", Wide()), mock.patch.object(svd, "np", Wide()), \
            mock.patch.object(tqdm, "tqdm", quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_default_dtype(before)


class Asked:
    """One image [1,C,H,W] in double precision, its class, and the draws of its key."""

    def __init__(self, net, module, x, target, draws):
        self.net, self.module, self.x, self.target, self.draws = net, module, x, target, draws


def gradient(ask, spec):
    return captum.attr.Saliency(ask.module), {"abs": False}


def input_x_gradient(ask, spec):
    return captum.attr.InputXGradient(ask.module), {}


def integrated_gradients(ask, spec):
    assert spec.get("baseline", "zero") == "zero"
    return captum.attr.IntegratedGradients(ask.module), {
        "n_steps": spec.get("steps", 50), "method": RULES[spec.get("rule", "gauss-legendre")]}


def guided_backprop(ask, spec):
    return captum.attr.GuidedBackprop(ask.module), {}


def deconvolution(ask, spec):
    return captum.attr.Deconvolution(ask.module), {}


BASES = {f.__name__.replace("_", "-"): f
         for f in (gradient, input_x_gradient, integrated_gradients, guided_backprop, deconvolution)}


def of_base(ask, spec):
    method, options = BASES[spec["id"]](ask, spec)
    map_ = method.attribute(ask.x, target=ask.target, **options)
    if spec.get("rule") == "trapezoid":  # captum's weights sum to 1 - 1/n
        n = spec.get("steps", 50)
        map_ = map_ * n / (n - 1)
    return map_


def ensemble(ask, spec):
    """NoiseTunnel, fed our draws."""
    samples, noise = spec.get("samples", 15), spec.get("noise", 0.15)
    if spec.get("scale", "range") == "range":
        noise = noise * (ask.x.max() - ask.x.min()).item()
    method, options = BASES[spec.get("base", {"id": "gradient"})["id"]](ask, spec.get("base", {}))
    assert spec.get("base", {}).get("rule") != "trapezoid"
    drawn = torch.stack([ask.draws.normal(s, ask.x.shape[1:]) for s in range(samples)])
    name = {"smoothgrad": "smoothgrad", "smoothgrad-sq": "smoothgrad_sq", "vargrad": "vargrad"}[spec["id"]]
    with mock.patch.object(torch, "normal", lambda mean, std: mean + std * drawn):
        return captum.attr.NoiseTunnel(method).attribute(ask.x, nt_type=name, nt_samples=samples, stdevs=float(noise),
                                                         target=ask.target, **options)


def gradient_shap(ask, spec):
    assert spec.get("baseline", "zero") == "zero"
    samples = spec.get("samples", 5)
    drawn = torch.stack([ask.draws.normal(s, ask.x.shape[1:]) for s in range(samples)])
    along = np.array([ask.draws.uniform(s) for s in range(samples)])
    with mock.patch.object(torch, "normal", lambda mean, std: mean + std * drawn), \
            mock.patch.object(np.random, "uniform", lambda low, high, size: along):
        return captum.attr.GradientShap(ask.module).attribute(
            ask.x, torch.zeros_like(ask.x), n_samples=samples, stdevs=float(spec.get("noise", 0)), target=ask.target)


def upsampled(ask, spec, small):
    small = small.clamp(min=0)
    if not spec.get("upsample", True):
        return small
    return F.interpolate(small, ask.x.shape[2:], mode="bilinear", align_corners=spec.get("align-corners", False))


CAMS = {"grad-cam": "GradCAM", "grad-cam++": "GradCAMPlusPlus", "hires-cam": "HiResCAM", "layer-cam": "LayerCAM",
        "xgrad-cam": "XGradCAM", "eigen-cam": "EigenCAM", "score-cam": "ScoreCAM", "ablation-cam": "AblationCAM"}


def cam(ask, spec):
    """pytorch-grad-cam's map before its scaling and resizing."""
    seen = {}
    kind = getattr(pytorch_grad_cam, CAMS[spec["id"]])

    class Raw(kind):
        def get_cam_image(self, input_tensor, target_layer, targets, activations, grads, eigen_smooth=False):
            seen["activations"] = activations
            seen["map"] = super().get_cam_image(input_tensor, target_layer, targets, activations, grads, eigen_smooth)
            return seen["map"]

    target = pytorch_grad_cam.utils.model_targets.ClassifierOutputTarget(ask.target)
    with Raw(ask.module, [layer(ask.net, ask.module, spec.get("layer", ""))]) as method:
        method(ask.x, [target])
    small = torch.as_tensor(seen["map"], dtype=torch.float64)[:, None]
    if spec["id"] == "eigen-cam":  # the sign of a singular vector is arbitrary
        strength = torch.as_tensor(seen["activations"]).sum(1, keepdim=True)
        if ((small - small.mean()) * (strength - strength.mean())).sum() < 0:
            small = -small
    return upsampled(ask, spec, small)


def guided_grad_cam(ask, spec):
    """Composed of captum's two parts: its own GuidedGradCam upsamples nearest."""
    target_layer = layer(ask.net, ask.module, spec.get("layer", ""))
    small = captum.attr.LayerGradCam(ask.module, target_layer).attribute(ask.x, target=ask.target)
    guided = captum.attr.GuidedBackprop(ask.module).attribute(ask.x, target=ask.target)
    return guided * upsampled(ask, spec, small.detach())


def oracle(ask, spec):
    """(map [C or 1,H,W] in double, who computed it)."""
    kind = spec["id"]
    with in_double():
        if kind in BASES:
            map_, by = of_base(ask, spec), "captum"
        elif kind in ("smoothgrad", "smoothgrad-sq", "vargrad"):
            map_, by = ensemble(ask, spec), "captum"
        elif kind == "gradient-shap":
            map_, by = gradient_shap(ask, spec), "captum"
        elif kind == "guided-grad-cam":
            map_, by = guided_grad_cam(ask, spec), "captum"
        else:
            map_, by = cam(ask, spec), "pytorch-grad-cam"
    assert map_.dtype == torch.float64, (spec, map_.dtype)
    return map_.detach()[0], by
