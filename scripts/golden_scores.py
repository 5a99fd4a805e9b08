"""Golden values of scores, from the libraries that others use.

Run by hand: python scripts/golden_scores.py > scores/testdata/golden.json
Quantus 0.6 on a net of one convolution and one linear layer, images of one
channel (of several, its pixel flipping and faithfulness correlation change single
channels of a pixel), with given maps, subsets and noise, and a baseline of 0;
scikit-image for SSIM; SciPy for rank correlations. The maps that sensitivity asks
for are input times gradient, in float64.
"""
import json
import sys
import warnings

import numpy as np
import quantus
import scipy
import scipy.stats
import skimage
import torch
from skimage.metrics import structural_similarity

warnings.filterwarnings("ignore")
np.trapz = np.trapezoid  # by its name of NumPy 1, which Quantus calls
out, sys.stdout = sys.stdout, sys.stderr  # what the libraries print
H = W = 8
N, K, CLASSES = 2, 2, 3
STEP, RUNS, SUBSET, PATCH, SAMPLES, RADIUS = 4, 12, 10, 4, 4, 0.2
rng = np.random.default_rng(6)
f32 = lambda shape, scale: (rng.standard_normal(shape) * scale).astype(np.float32)

conv_w, conv_b = f32((K, 1, 3, 3), 0.6), f32((K,), 0.3)
fc_w, fc_b = f32((CLASSES, K * H * W), 0.25), f32((CLASSES,), 0.3)
x = f32((N, 1, H, W), 1.0)
y = np.array([2, 0])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = torch.nn.Conv2d(1, K, 3, padding=1), torch.nn.Linear(K * H * W, CLASSES)
        with torch.no_grad():
            for tensor, values in ((self.conv.weight, conv_w), (self.conv.bias, conv_b), (self.fc.weight, fc_w), (self.fc.bias, fc_b)):
                tensor.copy_(torch.from_numpy(values))

    def forward(self, x):
        return self.fc(torch.flatten(torch.relu(self.conv(x)), 1))


model = Net().eval()
double = Net().double().eval()


def explain(model=None, inputs=None, targets=None, **_):
    t = torch.tensor(np.asarray(inputs), dtype=torch.float64, requires_grad=True)
    out = double(t)[torch.arange(len(t)), torch.as_tensor(np.asarray(targets)).long()].sum()
    (g,) = torch.autograd.grad(out, t)
    return (t * g).detach().numpy()


a = explain(inputs=x, targets=y).astype(np.float32)
assert len(np.unique(a)) == a.size  # no ties: their order is each library's own
common = dict(disable_warnings=True, display_progressbar=False, normalise=False, abs=False)
call = dict(model=model, x_batch=x, y_batch=y, a_batch=a, device="cpu")

subsets = np.stack([np.stack([rng.choice(H * W, SUBSET, replace=False) for _ in range(N)]) for _ in range(RUNS)], 1)
noise = rng.uniform(-RADIUS, RADIUS, (SAMPLES, N, 1, H, W)).astype(np.float32)

flips = quantus.PixelFlipping(features_in_step=STEP, perturb_baseline=0.0, **common)(softmax=True, **call)
areas = quantus.PixelFlipping(features_in_step=STEP, perturb_baseline=0.0, return_auc_per_sample=True, **common)(softmax=True, **call)

order = iter([subsets[n, r] for r in range(RUNS) for n in range(N)])
choice, np.random.choice = np.random.choice, lambda *_, **__: next(order)
faith = quantus.FaithfulnessCorrelation(nr_runs=RUNS, subset_size=SUBSET, perturb_baseline=0.0, return_aggregate=False, **common)(softmax=False, **call)
np.random.choice = choice

infidelity = quantus.Infidelity(perturb_patch_sizes=[PATCH], n_perturb_samples=1, perturb_baseline=0.0, **common)(softmax=False, **call)

draws = iter(noise)


def fed(arr, indices, **_):
    return arr + next(draws).reshape(arr.shape)


sensitivity = quantus.MaxSensitivity(nr_samples=SAMPLES, perturb_func=fed, **common)(softmax=False, explain_func=explain, **call)
absolute = {**common, "abs": True}  # without it Quantus takes signed values for shares
sparse = quantus.Sparseness(**absolute)(**call)
entropy = quantus.Complexity(**absolute)(**call)

maps = [np.round(rng.standard_normal((11, 9)) * 4) / 4 for _ in range(2)]
maps.append(maps[0] + 0.3 * rng.standard_normal((11, 9)))
unit = lambda m: (m - m.min()) / (m.max() - m.min())
pairs = []
for i, j in ((0, 1), (0, 2), (1, 2), (0, 0)):
    p, q = maps[i], maps[j]
    pairs.append({"a": i, "b": j, "ssim": structural_similarity(unit(p), unit(q), data_range=1.0),
                  "spearman": scipy.stats.spearmanr(p.ravel(), q.ravel()).statistic,
                  "spearmanAbs": scipy.stats.spearmanr(abs(p).ravel(), abs(q).ravel()).statistic})

flat = lambda v: [float(f"{u:.10g}") for u in np.asarray(v, dtype=np.float64).ravel()]
json.dump({
    "versions": {"quantus": "0.6.0", "torch": torch.__version__, "skimage": skimage.__version__, "scipy": scipy.__version__, "numpy": np.__version__},
    "net": {"convWeight": flat(conv_w), "convBias": flat(conv_b), "fcWeight": flat(fc_w), "fcBias": flat(fc_b), "channels": K, "classes": CLASSES},
    "height": H, "width": W, "images": [flat(v) for v in x], "targets": y.tolist(), "maps": [flat(v) for v in a],
    "pixelFlipping": {"step": STEP, "curves": [flat(v) for v in flips], "areas": flat(areas)},
    "faithfulness": {"subsets": subsets.tolist(), "values": flat(faith)},
    "infidelity": {"patch": PATCH, "values": flat(infidelity)},
    "sensitivity": {"noise": [[flat(v) for v in s] for s in noise], "values": flat(sensitivity)},
    "sparseness": flat(sparse), "complexity": flat(entropy),
    "similarity": {"height": 11, "width": 9, "maps": [flat(m) for m in maps], "pairs": pairs},
}, out, separators=(",", ":"))
