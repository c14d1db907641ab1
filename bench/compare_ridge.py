"""The ridge at infinite width: read off the spectrum, chosen by leave-one-out accuracy, and the best of a grid that the test
set chooses, on feature files.

    pip install .
    python bench/compare_ridge.py clinc150-minilm.npz cub200-efflite2.npz cifar100-efflite0.npz --per-class 30

The grid has half decades from a thousandth to a thousand times the geometric mean: six decades.
"""

import argparse
import os

from loranpac import bench


def final(path, per_class, settings):
    run = bench.run(path, "loranpac-soft", width=float("inf"), inc=10, per_class=per_class, settings=settings, eval="final").runs[
        0
    ]
    task = run["tasks"][-1]
    return run["final_accuracy"], task["leave_one_out"], task["ridge"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--per-class", type=int, default=None)
    arguments = parser.parse_args()
    rows = []
    for path in arguments.files:
        mean = final(path, arguments.per_class, None)
        chosen = final(path, arguments.per_class, {"ridge": "loo"})
        grid = {half / 2: final(path, arguments.per_class, {"ridge": mean[2] * 10 ** (half / 2)}) for half in range(-6, 7)}
        best = max(grid, key=lambda power: grid[power][0])
        name = os.path.basename(path)
        print(f"\n{name}: geometric mean {mean[2]:.3e}\n\n| lambda / mean | final % | leave-one-out % |\n|---|---|---|")
        for power, (accuracy, left_out, _) in grid.items():
            print(f"| 10^{power:g} | {accuracy:.2f} | {left_out:.2f} |", flush=True)
        rows.append(
            f"| {name} | {mean[0]:.2f} | {chosen[0]:.2f} ({chosen[2] / mean[2]:.3g}) | {grid[best][0]:.2f} (10^{best:g}) "
            f"| {mean[0] - grid[best][0]:+.2f} | {chosen[0] - grid[best][0]:+.2f} |"
        )
    print(
        "\n| | geometric mean % | loo % (lambda / mean) | best of grid % | mean - best | loo - best |\n|---|---|---|---|---|---|"
    )
    print("\n".join(rows))


if __name__ == "__main__":
    main()
