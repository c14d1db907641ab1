"""The measuring stick: Algorithm 4 of the paper, literally, in PyTorch on the CPU, against `loranpac run`.

Both sides get the same features, the same projection P (written to a file), the same class order and the same
number of threads, one after the other in one run. The script prints times, their ratio, accuracies, their
difference, and the engine's peak memory beside the size of its basis.

    pip install -r bench/requirements.txt
    cargo build --release
    python bench/compare_torch.py FEATURES.npz --per-class 30 --inc 10 --width 20000

`--inc 1` gives one task per class, `--eval every` adds the classifier and the evaluation after every task.
The literal side follows the paper line by line: at every task a QR factorisation of the residual, an SVD of the
small matrix, the product [U Q] U_tmp, and a QR re-orthogonalisation of U (Algorithm 2); W = (J U) Sigma^-2 U'.
It never forms an E x E matrix, and lifts the test samples once, so that its evaluation is two products.
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


def load(path, per_class, seed):
    """The features in the stream's class order: labels are positions in that order."""
    data = np.load(path, allow_pickle=False)
    x, y = data["x_train"].astype(np.float32), data["y_train"]
    xt, yt = data["x_test"].astype(np.float32), data["y_test"]
    classes = np.unique(np.concatenate([y, yt]))
    np.random.seed(seed)
    position = np.argsort(np.random.permutation(len(classes)))
    y = position[np.searchsorted(classes, y)]
    yt = position[np.searchsorted(classes, yt)]
    if per_class:
        keep = np.sort(np.concatenate([np.flatnonzero(y == c)[:per_class] for c in range(len(classes))]))
        x, y = x[keep], y[keep]
    return (torch.from_numpy(a) for a in (x, y, xt, yt))


class LiteralLoRanPAC:
    """Algorithms 2 to 5 as printed. Columns are samples."""

    def __init__(self, width, zeta, max_rank):
        self.width, self.zeta, self.max_rank = width, zeta, max_rank
        self.samples = 0
        self.u = self.sigma = None
        self.j = torch.zeros(0, width)

    def learn(self, h, y):
        self.samples += h.shape[1]
        k = min(self.max_rank, math.ceil((1 - self.zeta) * min(self.width, self.samples)))
        if self.u is None:  # Algorithm 3
            u, s, _ = torch.linalg.svd(h, full_matrices=False)
            self.u, self.sigma = u[:, :k].contiguous(), s[:k]
        else:  # Algorithm 2
            c = self.u.T @ h
            q, r = torch.linalg.qr(h - self.u @ c)
            old, new = len(self.sigma), r.shape[0]
            small = torch.zeros(old + new, old + h.shape[1])
            small[:old, :old] = torch.diag(self.sigma)
            small[:old, old:] = c
            small[old:, old:] = r
            u, s, _ = torch.linalg.svd(small, full_matrices=False)
            self.sigma = s[:k]
            self.u = torch.cat([self.u, q], dim=1) @ u[:, :k]
            self.u, _ = torch.linalg.qr(self.u)
        classes = max(int(y.max()) + 1, self.j.shape[0])  # Algorithm 5
        grown = torch.zeros(classes, self.width)
        grown[: self.j.shape[0]] = self.j
        grown.index_add_(0, y, h.T)
        self.j = grown

    def weights(self):
        return ((self.j @ self.u) / self.sigma**2) @ self.u.T


def literal(args, p):
    """Times and accuracy of the literal algorithm; the classifier at the end counts apart from those on the way."""
    x, y, xt, yt = load(args.features, args.per_class, args.seed)
    p = torch.from_numpy(p)
    classes = int(yt.max()) + 1
    model = LiteralLoRanPAC(args.width, args.truncate, args.max_rank)
    steps = list(range(args.inc, classes, args.inc)) + [classes]
    h_test = torch.relu(p @ xt.T) if args.eval != "final" else None
    learn, formed = 0.0, []
    done = 0
    for t, seen in enumerate(steps):
        task = (y >= done) & (y < seen)
        begin = time.perf_counter()
        model.learn(torch.relu(p @ x[task].T), y[task])
        learn += time.perf_counter() - begin
        if args.eval != "final" or seen == classes:
            begin = time.perf_counter()
            w = model.weights()
            middle = time.perf_counter()
            known = yt < seen
            h = h_test[:, known] if h_test is not None else torch.relu(p @ xt[known].T)
            right = (w @ h).argmax(0) == yt[known]
            starts = [0] + steps[: t + 1]
            column = [100 * right[(yt[known] >= a) & (yt[known] < b)].double().mean().item()
                      for a, b in zip(starts, starts[1:])]
            formed.append((middle - begin, time.perf_counter() - middle))
        done = seen
        if args.verbose:
            print(f"  literal: task {t + 1}/{len(steps)}, learning {learn:.1f} s", file=sys.stderr, flush=True)
    result = {"learn": learn, "accuracy": float(np.mean(column))}
    last = {**result, "weights": formed[-1][0], "evaluate": formed[-1][1]}
    every = {**result, "weights": sum(f[0] for f in formed), "evaluate": sum(f[1] for f in formed)}
    return {"final": last, "every": every}


def ours(args, evaluation, method, schedule, projection, extra=()):
    command = [args.binary, "run", "--data", args.features, "--method", method, "--inc", str(args.inc),
               "--seed", str(args.seed), "--width", str(args.width), "--projection", projection,
               "--max-rank", str(args.max_rank), "--schedule", schedule, "--eval", evaluation,
               "--threads", str(args.threads), "--json", "-", "--quiet", *extra]
    if args.per_class:
        command += ["--per-class", str(args.per_class)]
    run = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["runs"][0]
    total = {key: sum(task[key + "_seconds"] or 0.0 for task in run["tasks"]) for key in ("learn", "weights", "eval")}
    return {"learn": total["learn"], "weights": total["weights"], "evaluate": total["eval"],
            "accuracy": run["final_accuracy"], "rss": run["peak_rss_bytes"],
            "basis": 4 * args.width * max(task["basis_rank"] for task in run["tasks"]),
            "lift": 4 * args.width * run["dataset"]["dim"]}


def show(title, reference, rows):
    print(f"\n{title}")
    print(f"{'':36}{'learn':>9}{'weights':>9}{'evaluate':>9}{'accuracy':>10}{'diff':>8}"
          f"{'learn+W':>10}{'all':>8}{'memory':>10}{'/4Er':>6}")
    whole = ("learn", "weights", "evaluate")
    for label, row in ([("Algorithm 4, literally (PyTorch)", reference)] if reference else []) + rows:
        line = f"{label:36}{row['learn']:8.2f}s{row['weights']:8.2f}s{row['evaluate']:8.2f}s{row['accuracy']:10.2f}"
        if reference:
            fit = (reference["learn"] + reference["weights"]) / (row["learn"] + row["weights"])
            everything = sum(reference[k] for k in whole) / sum(row[k] for k in whole)
            line += f"{row['accuracy'] - reference['accuracy']:+8.2f}{fit:9.1f}x{everything:7.1f}x"
        else:
            line += " " * 26
        if "rss" in row:
            line += f"{row['rss'] / 2**20:7.0f}MiB{(row['rss'] - row['lift']) / row['basis']:6.2f}"
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("features")
    default = os.path.join(os.path.dirname(__file__), "..", "target", "release", "loranpac")
    parser.add_argument("--binary", default=default)
    parser.add_argument("--per-class", type=int, default=0)
    parser.add_argument("--inc", type=int, default=10)
    parser.add_argument("--width", type=int, default=20000)
    parser.add_argument("--truncate", type=float, default=0.25)
    parser.add_argument("--max-rank", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1993)
    parser.add_argument("--projection-seed", type=int, default=0)
    parser.add_argument("--eval", choices=["every", "final", "both"], default="final")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    names = ["hard", "soft", "paper", "min-norm"]
    parser.add_argument("--engine", nargs="*", default=["hard", "soft"], choices=names,
                        help="which of our variants to run; min-norm keeps null directions (drop = 0)")
    parser.add_argument("--engine-every", nargs="*", choices=names,
                        help="the same where the classifier is formed after every task [default: as --engine]")
    parser.add_argument("--skip-literal", action="store_true", help="time our side alone")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    dim = np.load(args.features)["x_train"].shape[1]
    p = np.random.default_rng(args.projection_seed).standard_normal((args.width, dim), dtype=np.float32)
    cut = ("--truncate", str(args.truncate))
    variants = {
        "hard": ("loranpac (hard), late", "loranpac", "late", cut),
        "soft": ("loranpac-soft, late", "loranpac-soft", "late", ()),
        "paper": ("loranpac (hard), paper schedule", "loranpac", "paper", cut),
        "min-norm": ("min-norm, null directions kept", "min-norm", "late", ("--set", "drop=0")),
    }
    modes = ["final", "every"] if args.eval == "both" else [args.eval]
    rows = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "P.npy")
        np.save(path, p)
        for mode in modes:
            for name in args.engine if mode == "final" or args.engine_every is None else args.engine_every:
                label, method, schedule, extra = variants[name]
                rows[mode].append((label, ours(args, mode, method, schedule, path, extra)))
    reference = None if args.skip_literal else literal(args, p)
    print(f"{os.path.basename(args.features)}, per class {args.per_class or 'all'}, Inc-{args.inc}, E = {args.width:,}, "
          f"zeta = {args.truncate}, seed {args.seed}, {args.threads} threads")
    titles = {"final": "learning all tasks, classifier and evaluation once at the end",
              "every": "classifier and evaluation after every task"}
    for mode in modes:
        show(titles[mode], reference and reference[mode], rows[mode])


if __name__ == "__main__":
    main()
