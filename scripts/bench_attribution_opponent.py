"""The opponent of parts explain and score of `assay bench`: captum, pytorch-grad-cam and
Quantus on PyTorch's eager nets, measured in the same run.

Reads one JSON command a line on standard input and answers with one JSON line:
  {"do": "hello", "threads": 2}                     -> versions, "" for what is not installed
  {"do": "raw", "net": NET, "backward": true, "seconds": 1}
  {"do": "explain", "net": NET, "library": "captum", "method": "integrated-gradients", "options": {"steps": 50}, "seconds": 1}
  {"do": "explain", "net": NET, "library": "Quantus", "method": "infidelity", "options": {"patch": 56}, "seconds": 1}
                                                    -> {"rate": images a second, "how": in what batches}
                                                    or {"missing": library} or {"error": why not}
NET is resnet18, cifar-resnet20 or efficientnet-lite0, with random weights: the cost
does not depend on them. Rows run in batches of the size in which the net was
quickest here (forwards, or forwards with backwards), of a few that are tried once.
"""
import copy
import importlib
import json
import math
import os
import sys
import time
import warnings

os.environ["TQDM_DISABLE"] = "1"
answers, sys.stdout = sys.stdout, sys.stderr  # what the libraries print is no answer

import torch

import bench_opponent

warnings.filterwarnings("ignore")
SIDES = {"resnet18": 224, "efficientnet-lite0": 224, "cifar-resnet20": 32}
BATCHES = {224: (8, 16, 32), 32: (8, 32, 128)}


def rate(seconds, images, run):
    """Images a second: of the first call where that takes long, else of those after it."""
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    if once >= seconds:
        return images / once
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds or count == 0:
        run()
        count += 1
    return count * images / (time.perf_counter() - start)


def net(name, hooked=False, cache={}):
    """hooked: with ReLU6 where libraries that look for ReLU find it."""
    if (name, hooked) not in cache:
        if name == "cifar-resnet20":  # with a module an activation
            from golden_attribution_nets import CifarResNet

            torch.manual_seed(0)
            model = CifarResNet(3)
        else:
            model = copy.deepcopy(bench_opponent.net(name))
        if hooked and name == "efficientnet-lite0":
            from golden_attribution_nets import with_relu6

            model = with_relu6(model)
        cache[name, hooked] = model.eval()
    return cache[name, hooked]


def layer(name, model):
    """What our nets' class activation maps look at by default."""
    return {"resnet18": lambda: model.layer4, "cifar-resnet20": lambda: model.layer3,
            "efficientnet-lite0": lambda: model[-4]}[name]()


class Job:
    """What a measurement needs: the net, inputs, targets and the best batches."""

    def __init__(self, command):
        self.name, self.options = command["net"], command.get("options") or {}
        self.side = SIDES[self.name]
        self.model = net(self.name)

    def x(self, images):
        return torch.randn(images, 3, self.side, self.side, generator=torch.Generator().manual_seed(0))

    def targets(self, images):
        with torch.no_grad():
            return self.model(self.x(images)).argmax(1)

    def step(self, batch, backward):
        x = self.x(batch)
        if not backward:
            def run():
                with torch.inference_mode():
                    self.model(x)
            return run
        x.requires_grad_(True)
        targets = torch.zeros(batch, 1, dtype=torch.long)
        return lambda: torch.autograd.grad(self.model(x).gather(1, targets).sum(), x)

    def batch(self, backward, cache={}):
        if (self.name, backward) not in cache:
            rates = {}
            for b in BATCHES[self.side]:
                run = self.step(b, backward)
                run()  # warms up
                rates[b] = rate(0.3, b, run)
            cache[self.name, backward] = max(rates, key=rates.get)
        return cache[self.name, backward]

    def feature_mask(self, edge=7):
        at = torch.arange(self.side) * edge // self.side
        return (at[:, None] * edge + at[None, :])[None, None]

    # Images at once where each has so many rows.
    def images(self, rows, backward):
        return max(1, round(self.batch(backward) / rows))


# Methods: job -> (images, run, how).


def captum_plain(kind, hooked=False):
    def make(job):
        from captum import attr

        n = job.batch(True)
        x, targets = job.x(n), job.targets(n)
        method = getattr(attr, kind)(net(job.name, hooked))
        return n, lambda: method.attribute(x, target=targets), f"batch {n}"
    return make


def captum_integrated(job):
    from captum.attr import IntegratedGradients

    n, most = (1 if job.side == 224 else 8), job.batch(True)
    x, targets, method = job.x(n), job.targets(n), IntegratedGradients(job.model)
    return n, lambda: method.attribute(x, target=targets, n_steps=job.options["steps"], internal_batch_size=most), f"{n} at a time, internal batch {most}"


def captum_tunnel(kind):
    def make(job):
        from captum.attr import NoiseTunnel, Saliency

        samples = job.options["samples"]
        n = job.images(samples, True)
        x, targets, method = job.x(n), job.targets(n), NoiseTunnel(Saliency(job.model))
        return n, lambda: method.attribute(x, target=targets, nt_type=kind, nt_samples=samples, stdevs=0.5, abs=False), f"{n} at a time"
    return make


def captum_gradient_shap(job):
    from captum.attr import GradientShap

    samples = job.options["samples"]
    n = job.images(samples, True)
    x, targets, method = job.x(n), job.targets(n), GradientShap(job.model)
    return n, lambda: method.attribute(x, baselines=torch.zeros_like(x), target=targets, n_samples=samples), f"{n} at a time"


def captum_cam(job):
    from captum.attr import LayerAttribution, LayerGradCam

    n = job.batch(False)
    x, targets, method = job.x(n), job.targets(n), LayerGradCam(job.model, layer(job.name, job.model))

    def run():
        maps = method.attribute(x, target=targets, relu_attributions=True)
        return LayerAttribution.interpolate(maps, (job.side, job.side), "bilinear")
    return n, run, f"batch {n}"


def captum_guided_cam(job):
    from captum.attr import GuidedGradCam

    n, model = job.batch(True), net(job.name, True)
    x, targets, method = job.x(n), job.targets(n), GuidedGradCam(model, layer(job.name, model))
    return n, lambda: method.attribute(x, target=targets, interpolate_mode="bilinear"), f"batch {n}"


def captum_perturbed(kind, options):
    """options: job -> what attribute takes beside inputs, target and perturbations_per_eval."""
    def make(job):
        from captum import attr

        several = job.side == 32 and kind not in ("KernelShap", "Lime")  # those take one image
        n = 8 if several else 1
        each = max(1, job.batch(False) // n)
        x, targets, method, more = job.x(n), job.targets(n), getattr(attr, kind)(job.model), options(job)

        def run():
            with torch.no_grad():
                method.attribute(x, target=targets if n > 1 else targets[0].item(), perturbations_per_eval=each, **more)
        return n, run, f"{n} at a time, {each} perturbations an evaluation"
    return make


def windows(job):
    side = job.options["window"]
    return {"sliding_window_shapes": (3, side, side), "strides": (3, side, side), "baselines": 0}


def features(job):
    return {"feature_mask": job.feature_mask(), "baselines": 0}


def sampled(job):
    return {**features(job), "n_samples": job.options["samples"]}


def grad_cam(kind, forwards=False):
    def make(job):
        import pytorch_grad_cam
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

        n = job.batch(False)
        if forwards:
            n = 1 if job.side == 224 else 4
        x, targets = job.x(n), [ClassifierOutputTarget(t) for t in job.targets(n).tolist()]
        model = copy.deepcopy(job.model)  # their hooks stay there
        cam = getattr(pytorch_grad_cam, kind)(model=model, target_layers=[layer(job.name, model)])
        if forwards:
            cam.batch_size = job.batch(False)
        return n, lambda: cam(input_tensor=x, targets=targets), f"{n} at a time, batch {cam.batch_size}" if forwards else f"batch {n}"
    return make


def quantus_metric(kind, options, softmax):
    def make(job):
        import numpy as np
        import quantus

        n = 4 if job.side == 224 else 32
        x, targets = job.x(n), job.targets(n).numpy()
        metric = getattr(quantus, kind)(disable_warnings=True, display_progressbar=False, normalise=False, abs=False,
                                        perturb_baseline=0.0, **options(job))
        maps = np.random.default_rng(0).standard_normal(tuple(x.shape)).astype(np.float32)

        def run():
            metric(model=job.model, x_batch=x.numpy(), y_batch=targets, a_batch=maps, softmax=softmax, device="cpu", batch_size=n)
        return n, run, f"batch {n}"
    return make


MODULES = {"captum": "captum", "pytorch-grad-cam": "pytorch_grad_cam", "Quantus": "quantus"}
METHODS = {
    "captum": {
        "gradient": captum_plain("Saliency"),
        "input-x-gradient": captum_plain("InputXGradient"),
        "guided-backprop": captum_plain("GuidedBackprop", hooked=True),
        "deconvolution": captum_plain("Deconvolution", hooked=True),
        "integrated-gradients": captum_integrated,
        "smoothgrad": captum_tunnel("smoothgrad"),
        "smoothgrad-sq": captum_tunnel("smoothgrad_sq"),
        "vargrad": captum_tunnel("vargrad"),
        "gradient-shap": captum_gradient_shap,
        "grad-cam": captum_cam,
        "guided-grad-cam": captum_guided_cam,
        "occlusion": captum_perturbed("Occlusion", windows),
        "feature-ablation": captum_perturbed("FeatureAblation", features),
        "kernel-shap": captum_perturbed("KernelShap", sampled),
        "lime": captum_perturbed("Lime", sampled),
        "shapley-sampling": captum_perturbed("ShapleyValueSampling", sampled),
    },
    "pytorch-grad-cam": {
        "grad-cam": grad_cam("GradCAM"),
        "grad-cam++": grad_cam("GradCAMPlusPlus"),
        "hires-cam": grad_cam("HiResCAM"),
        "layer-cam": grad_cam("LayerCAM"),
        "xgrad-cam": grad_cam("XGradCAM"),
        "eigen-cam": grad_cam("EigenCAM"),
        "score-cam": grad_cam("ScoreCAM", forwards=True),
        "ablation-cam": grad_cam("AblationCAM", forwards=True),
    },
    "Quantus": {
        "pixel-flipping": quantus_metric("PixelFlipping", lambda job: {"features_in_step": job.options["step"]}, True),
        "infidelity": quantus_metric("Infidelity", lambda job: {"perturb_patch_sizes": [job.options["patch"]], "n_perturb_samples": 1}, False),
        "faithfulness-correlation": quantus_metric("FaithfulnessCorrelation", lambda job: {
            "nr_runs": job.options["runs"], "subset_size": job.options["features"], "return_aggregate": False}, False),
    },
}


def explain(command):
    library = command["library"]
    try:
        importlib.import_module(MODULES[library])
    except ImportError:
        return {"missing": library}
    try:
        images, run, how = METHODS[library][command["method"]](Job(command))
        return {"rate": rate(command["seconds"], images, run), "how": how}
    except Exception as error:  # what a library cannot do with a net is an answer too
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}


def raw(command):
    job = Job(command)
    batch = job.batch(command["backward"])
    return {"rate": rate(command["seconds"], batch, job.step(batch, command["backward"])), "how": f"batch {batch}"}


def hello(command):
    from importlib.metadata import PackageNotFoundError, version

    def installed(name):
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    torch.set_num_threads(command["threads"])
    return {"torch": torch.__version__, "torchvision": installed("torchvision"), "captum": installed("captum"),
            "grad-cam": installed("grad-cam"), "quantus": installed("quantus")}


ACTIONS = {"hello": hello, "raw": raw, "explain": explain}

if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(ACTIONS[request["do"]](request)), file=answers, flush=True)
