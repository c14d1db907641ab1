"""More samples than features: a task of `loranpac-soft`, of `ranpac`, and of RanPAC's update in PyTorch.

    python bench/compare_accumulation.py [--width 5000] [--samples 30000] [--task 500] [--after 25000]

All three lift the samples of a task and add `H H'` to what they have. `ranpac` has a fixed ridge, so that it chooses none. PyTorch adds in single
precision, both programs in double. Made-up features of 768 dimensions, one class per task; seconds per task after the first 25,000
samples, means and least over the tasks, the programs alternating over the rounds.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import torch
from made_up import made_up


def program(args, data, method, *words):
    """Returns the seconds of the tasks after the first samples."""
    command = [args.loranpac, "run", "--data", data, "--eval", "final", "--inc", "1", "--width", str(args.width)]
    command += ["--method", method, "--threads", str(args.threads), "--quiet", "--json", "-", *words]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]
    return [task["learn_seconds"] for task in run["tasks"] if task["samples_seen"] > args.after]


def pytorch(args, x):
    projection = torch.randn(x.shape[1], args.width)
    gram, seconds = torch.zeros(args.width, args.width), []
    for start in range(args.after, args.samples, args.task):
        begin = time.perf_counter()
        h = torch.relu(x[start : start + args.task] @ projection)
        gram += h.T @ h
        seconds.append(time.perf_counter() - begin)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=30_000)
    parser.add_argument("--task", type=int, default=500)
    parser.add_argument("--after", type=int, default=25_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    default = os.path.join(os.path.dirname(__file__), "..", "target", "release", "loranpac")
    parser.add_argument("--loranpac", default=default, help="the program")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    arrays = made_up(args.samples, args.samples // args.task, 768)
    with tempfile.TemporaryDirectory() as folder:
        data = str(pathlib.Path(folder) / "made_up.npz")
        np.savez(data, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays)))
        found = {"`loranpac-soft`": [], "`ranpac`, fixed ridge": [], "PyTorch, f32": []}
        for _ in range(args.rounds):
            found["`loranpac-soft`"] += program(args, data, "loranpac-soft")
            found["`ranpac`, fixed ridge"] += program(args, data, "ranpac", "--set", "ridge=1")
            found["PyTorch, f32"] += pytorch(args, torch.from_numpy(arrays[0]))
    print("| a task | mean s | least s |\n|---|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {np.mean(seconds):.3f} | {min(seconds):.3f} |")


if __name__ == "__main__":
    main()
