"""Samples per second of `loranpac predict` and of the same two matrix products in PyTorch, in one run.

    python bench/compare_predict.py --loranpac target/release/loranpac

A model with E = 20,000 and 150 classes of random samples; predictions for N and for 3 N samples, so that the time to start, to
read and to make P drops out of the difference. PyTorch computes relu(X P') W' in batches of 384, and takes the best class.
"""

import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loranpac", default="loranpac", help="the program")
    parser.add_argument("--width", type=int, default=20_000)
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        x = random.standard_normal((2 * args.classes, args.dim)).astype(np.float32)
        np.savez(path("learn.npz"), x=x, y=np.arange(len(x)) % args.classes)
        for name, count in [("small.npy", args.samples), ("large.npy", 3 * args.samples)]:
            np.save(path(name), random.standard_normal((count, args.dim)).astype(np.float32))
        run = lambda *words: subprocess.run([args.loranpac, *words], check=True, stdout=subprocess.DEVNULL)
        run("init", path("m.lrp"), "--dim", str(args.dim), "--width", str(args.width))
        run("learn", path("m.lrp"), path("learn.npz"))

        p = torch.randn(args.dim, args.width)
        w = torch.randn(args.width, args.classes)
        batch = torch.from_numpy(np.load(path("large.npy")))[: 2 * args.samples]

        def timed(work):
            start = time.perf_counter()
            work()
            return time.perf_counter() - start

        def torch_products():
            with torch.inference_mode():
                for part in batch.split(384):
                    torch.argmax(torch.relu(part @ p) @ w, dim=1)

        def ours():
            times = [timed(lambda: run("predict", path("m.lrp"), path(name), "-o", path("out.csv")))
                     for name in ("large.npy", "small.npy")]
            return times[0] - times[1]

        torch_products()
        rows = [(ours(), timed(torch_products)) for _ in range(args.rounds)]
    best = [min(column) for column in zip(*rows)]
    for name, seconds in zip(("loranpac predict", "PyTorch"), best):
        print(f"{name:<18} {2 * args.samples / seconds:10.0f} samples/s  (best of {args.rounds})")
    print(f"ratio {best[1] / best[0]:.2f}  of medians {np.median([t for _, t in rows]) / np.median([o for o, _ in rows]):.2f}")


if __name__ == "__main__":
    main()
