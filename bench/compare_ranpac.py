"""One task of RanPAC at full width: the method's definition in PyTorch on the CPU against `loranpac run`.

Both sides get the same features, the same projection P (written to a file) and the same number of threads, one after
the other in one run, and learn all classes as a single task. The script prints times, their ratio, the accuracies and
the ridge that each side chose. The two shuffle the task differently, so the ridges may differ.

    pip install -r bench/requirements.txt
    cargo build --release
    python bench/compare_ranpac.py FEATURES.npz --width 10000 --samples 3000

The PyTorch side, in float32, rows are samples: H = relu(X P'); on a random 80% of the task, for the 17 lambdas from
1e-8 to 1e8, W = (H'H + lambda I)^-1 H'Y, and the lambda with the least squared error on the other 20% is taken; then
G += H'H, C += H'Y over the whole task and W = (G + lambda I)^-1 C.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

from compare_torch import load

LAMBDAS = [float(f"1e{k}") for k in range(-8, 9)]


def solve(gram, c, lam):
    """W' = (G + lambda I)^-1 C."""
    shifted = gram.clone()
    shifted.diagonal().add_(lam)
    return torch.linalg.solve(shifted, c)


def choose_ridge(h, y, seed):
    """The lambda with the least error on a fifth of the task, fitted on the rest."""
    order = torch.randperm(len(h), generator=torch.Generator().manual_seed(seed))
    fit, validate = order.split([4 * len(h) // 5, len(h) - 4 * len(h) // 5])
    h_fit, h_validate = h[fit], h[validate]
    gram, c = h_fit.T @ h_fit, h_fit.T @ y[fit]

    def error(lam):
        try:
            mse = torch.nn.functional.mse_loss(h_validate @ solve(gram, c, lam), y[validate]).item()
        except torch.linalg.LinAlgError:  # singular in float32
            return math.inf
        return mse if math.isfinite(mse) else math.inf

    return min(LAMBDAS, key=error)


def literal(args, p):
    """Seconds per stage, accuracy and ridge of the definition in PyTorch."""
    x, y, xt, yt = load(args.features, args.per_class, args.seed)
    p = torch.from_numpy(p)
    classes = int(yt.max()) + 1
    gram, c = torch.zeros(args.width, args.width), torch.zeros(args.width, classes)  # the state before the task
    marks = [time.perf_counter()]
    h = torch.relu(x @ p.T)
    targets = torch.nn.functional.one_hot(y, classes).to(h.dtype)
    marks.append(time.perf_counter())
    ridge = choose_ridge(h, targets, args.seed)
    marks.append(time.perf_counter())
    gram += h.T @ h
    c += h.T @ targets
    marks.append(time.perf_counter())
    w = solve(gram, c, ridge)
    marks.append(time.perf_counter())
    right = (torch.relu(xt @ p.T) @ w).argmax(1) == yt
    stages = dict(zip(("lift", "choose", "accumulate", "solve"), np.diff(marks)))
    return {"stages": stages, "seconds": sum(stages.values()), "accuracy": 100 * right.double().mean().item(),
            "ridge": ridge, "samples": len(x)}


def ours(args, projection):
    """The same from `loranpac run`."""
    command = [args.binary, "run", "--data", args.features, "--per-class", str(args.per_class), "--scenario", "joint",
               "--method", args.method, "--seed", str(args.seed), "--width", str(args.width),
               "--projection", projection, "--eval", "final", "--threads", str(args.threads), "--json", "-", "--quiet"]
    run = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"][0]
    stages = {key: sum(task[key + "_seconds"] or 0.0 for task in run["tasks"]) for key in ("learn", "weights")}
    return {"stages": stages, "seconds": sum(stages.values()), "accuracy": run["final_accuracy"],
            "ridge": run["tasks"][-1]["ridge"]}


def show(rows):
    reference = rows[0][1]["seconds"]
    print(f"{'':28}{'seconds':>9}{'ratio':>8}{'accuracy':>10}{'ridge':>9}  of which")
    for label, row in rows:
        ridge = "-" if row["ridge"] is None else f"{row['ridge']:.3g}"
        stages = ", ".join(f"{name} {seconds:.2f}s" for name, seconds in row["stages"].items())
        print(f"{label:28}{row['seconds']:8.2f}s{reference / row['seconds']:7.1f}x{row['accuracy']:10.2f}{ridge:>9}"
              f"  {stages}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("features")
    default = os.path.join(os.path.dirname(__file__), "..", "target", "release", "loranpac")
    parser.add_argument("--binary", default=default)
    parser.add_argument("--method", default="ranpac", help="our method to time [default: ranpac]")
    parser.add_argument("--width", type=int, default=10000)
    parser.add_argument("--samples", type=int, default=3000, help="size of the task, the same number of every class")
    parser.add_argument("--per-class", type=int, help="samples of each class [default: samples / classes]")
    parser.add_argument("--seed", type=int, default=1993)
    parser.add_argument("--projection-seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    with np.load(args.features, allow_pickle=False) as data:
        dim, classes = data["x_train"].shape[1], len(np.unique(data["y_train"]))
    if args.per_class is None:
        args.per_class = args.samples // classes
    if args.per_class < 1:
        parser.error(f"at least one sample of each of the {classes} classes is needed")
    p = np.random.default_rng(args.projection_seed).standard_normal((args.width, dim), dtype=np.float32)
    engine = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "P.npy")
        np.save(path, p)
        try:
            engine.append((f"loranpac run, {args.method}", ours(args, path)))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"our side failed: {error}", file=sys.stderr)
    reference = literal(args, p)
    print(f"{os.path.basename(args.features)}, {reference['samples']:,} samples ({args.per_class} per class) in one "
          f"task, E = {args.width:,}, seed {args.seed}, {args.threads} threads")
    show([("RanPAC, PyTorch", reference), *engine])
    sys.exit(not engine)


if __name__ == "__main__":
    main()
