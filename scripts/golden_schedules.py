#!/usr/bin/env python3
"""Learning rates of PyTorch's schedulers, for orchestrate/train_test.go.

Run by hand: python scripts/golden_schedules.py > orchestrate/testdata/schedules.json
"""

import json

import torch
from torch.optim import lr_scheduler as lr

PER_EPOCH = 7
WARMUP_START = 0.01


def rates(make, steps, per_epoch_step, rate):
    """The rate of every step; per_epoch_step: the scheduler steps once an epoch."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    scheduler = make(optimizer)
    out = []
    for step in range(steps):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if not per_epoch_step or (step + 1) % PER_EPOCH == 0:
            scheduler.step()
    return out


def product(a, b, rate):
    return [x * y / rate for x, y in zip(a, b)]


def main():
    rate = 0.3
    cases = []

    def case(name, settings, values):
        cases.append({"name": name, "perEpoch": PER_EPOCH, "settings": settings | {"rate": rate}, "rates": values})

    def linear(optimizer, epochs):
        return lr.LinearLR(optimizer, start_factor=WARMUP_START, total_iters=epochs * PER_EPOCH)

    epochs = 10
    steps = epochs * PER_EPOCH
    warm = rates(lambda o: linear(o, 3), steps, False, rate)
    case("LinearLR", {"epochs": epochs, "schedule": "constant", "warmup": 3}, warm)
    every = rates(lambda o: lr.StepLR(o, step_size=4, gamma=0.5), steps, True, rate)
    case("StepLR", {"epochs": epochs, "schedule": "step", "stepEvery": 4, "gamma": 0.5}, every)
    multi = rates(lambda o: lr.MultiStepLR(o, milestones=[2, 5, 6], gamma=0.1), steps, True, rate)
    case("MultiStepLR", {"epochs": epochs, "schedule": "step", "milestones": [2, 5, 6], "gamma": 0.1}, multi)
    case("LinearLR and MultiStepLR, multiplied",
         {"epochs": epochs, "schedule": "step", "milestones": [2, 5, 6], "gamma": 0.1, "warmup": 3}, product(warm, multi, rate))
    cosine = rates(lambda o: lr.CosineAnnealingLR(o, T_max=steps), steps, False, rate)
    case("CosineAnnealingLR", {"epochs": epochs, "schedule": "cosine"}, cosine)
    warm_cosine = rates(
        lambda o: lr.SequentialLR(o, [linear(o, 3), lr.CosineAnnealingLR(o, T_max=7 * PER_EPOCH)], milestones=[3 * PER_EPOCH]),
        steps, False, rate)
    case("LinearLR, then CosineAnnealingLR", {"epochs": epochs, "schedule": "cosine", "warmup": 3}, warm_cosine)

    def plateau(name, losses, **settings):
        """ReduceLROnPlateau, a step an epoch that was validated (losses: None for the others)."""
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
        scheduler = lr.ReduceLROnPlateau(optimizer, mode="min", factor=settings["gamma"], patience=settings["patience"])
        out = []
        for loss in losses:
            out += [optimizer.param_groups[0]["lr"]] * PER_EPOCH
            optimizer.step()
            if loss is not None:
                scheduler.step(loss)
        cases.append({"name": name, "perEpoch": PER_EPOCH, "losses": losses, "rates": out,
                      "settings": settings | {"rate": rate, "schedule": "plateau", "epochs": len(losses)}})

    plateau("ReduceLROnPlateau", [1, 0.9, 0.95, 0.91, 0.9, 0.8, 0.8, 0.8, 0.8, 0.7, 0.7, 0.71, 0.72, 0.73, 0.74, 0.1], gamma=0.2, patience=2)
    # Just above and just below a ten-thousandth better than the best.
    plateau("ReduceLROnPlateau, the threshold", [1, 0.99991, 0.99989, 0.9998, 0.99978, 0.9, 0.9, 0.9], gamma=0.1, patience=0)
    plateau("ReduceLROnPlateau, some epochs not validated", [None, 1, None, 1, None, 1, None, 1, None, 1, None, 1], gamma=0.5, patience=1)
    # A rate that would fall by less than 1e-8 stays.
    plateau("ReduceLROnPlateau, the smallest rate", [1] * 30, gamma=0.1, patience=0)
    print(json.dumps({"torch": torch.__version__, "cases": cases}))


if __name__ == "__main__":
    main()
