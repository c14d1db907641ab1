"""Learning by two releases of the program, alternating on the same machine.

    python bench/compare_releases.py OLD NEW clinc150-minilm.npz cub200-efflite2.npz [--rounds 2]

OLD and NEW are programs. On CLINC150 (40 samples per class, E = 20,000, tasks of 6 classes or 1) only tasks that begin with more than 2,000
directions count. CUB-200 is learned as a whole at E = 100,000. Each figure is the least over the rounds.
"""

import argparse
import json
import subprocess


def learn(program, data, skip, *words):
    """Returns the seconds that tasks took after the first `skip` samples, and the accuracy."""
    command = [program, "run", "--data", data, "--method", "loranpac-soft", "--eval", "final", "--quiet", "--json", "-", *words]
    run = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]
    tasks = [task for task in run["tasks"] if task["samples_seen"] > skip]
    return sum(task["learn_seconds"] for task in tasks), run["final_accuracy_samples"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("clinc")
    parser.add_argument("cub")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    clinc = ["--per-class", "40", "--width", "20000", "--inc"]
    rows = [
        ("CLINC150, E = 20,000, tasks of 240", args.clinc, 2000, [*clinc, "6"]),
        ("CLINC150, E = 20,000, tasks of 40", args.clinc, 2000, [*clinc, "1"]),
        ("CUB-200, E = 100,000, tasks of 300", args.cub, 0, ["--width", "100000", "--inc", "10"]),
    ]
    print("| | old s | new s | ratio | accuracy |\n|---|---|---|---|---|")
    for name, data, skip, words in rows:
        found = [[learn(program, data, skip, *words) for program in (args.old, args.new)] for _ in range(args.rounds)]
        (old, before), (new, after) = (min(results) for results in zip(*found))
        print(f"| {name} | {old:.1f} | {new:.1f} | {old / new:.2f} | {before:.2f}, {after:.2f} |", flush=True)


if __name__ == "__main__":
    main()
