"""Learning by two releases of the program, alternating on the same machine.

    python bench/compare_releases.py OLD NEW [--cub cub200-efflite2.npz] [--rounds 2]

OLD and NEW are programs. The first rows learn made-up features of 384 dimensions at E = 20,000 while the basis grows from 2,000 to 6,000 directions;
the last one learns CUB-200 at E = 100,000. Each figure is the least over the rounds.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from made_up import made_up


def learn(program, data, skip, *words):
    """Returns the seconds that the tasks took after the first `skip` samples, and the accuracy."""
    command = [program, "run", "--data", data, "--eval", "final", "--quiet", "--json", "-", *words]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]
    tasks = [task for task in run["tasks"] if task["samples_seen"] > skip]
    return sum(task["learn_seconds"] for task in tasks), run["final_accuracy_samples"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--cub", help="cub200-efflite2.npz")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for size in (250, 30):
            path = str(pathlib.Path(folder) / f"{size}.npz")
            arrays = made_up(6000, 6000 // size, 384)
            np.savez(path, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays)))
            rows.append((f"r from 2,000 to 6,000, tasks of {size}", path, 2000, ["--width", "20000", "--inc", "1"]))
        if args.cub:
            rows.append(("CUB-200, E = 100,000, 20 tasks", args.cub, 0, ["--width", "100000", "--inc", "10"]))
        print("| | old s | new s | ratio | accuracy |\n|---|---|---|---|---|")
        for name, path, skip, words in rows:
            words = [*words, "--method", "loranpac-soft"]
            found = [[learn(program, path, skip, *words) for program in (args.old, args.new)] for _ in range(args.rounds)]
            (old, before), (new, after) = (min(results) for results in zip(*found))
            print(f"| {name} | {old:.1f} | {new:.1f} | {old / new:.2f} | {before:.2f}, {after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
