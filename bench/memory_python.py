"""How much memory a partial_fit on a large array takes, beyond the array and the model.

    pip install .
    python bench/memory_python.py

A C-order float32 array of 1 GB is learned; the peak of resident memory may rise by the growth of the model, and by no more
than a tenth of the array. A second run with float64 shows what a conversion costs.
"""

import argparse
import json
import re

import numpy as np

from loranpac import LoRanPACClassifier


def status(key):
    with open("/proc/self/status") as file:
        return int(re.search(rf"{key}:\s+(\d+) kB", file.read()).group(1)) * 1024


def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=62_500)
    parser.add_argument("--features", type=int, default=4_000)
    parser.add_argument("--width", type=int, default=1_000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((args.rows, args.features), dtype=np.float32)
    y = rng.integers(0, 20, args.rows)
    model = LoRanPACClassifier(args.width)
    # What a first call takes once: threads, the projection, work space.
    model.partial_fit(x[:1000], y[:1000])
    reset_peak()
    before, state = status("VmRSS"), json.loads(model._learner.summary())["state_bytes"]
    model.partial_fit(x, y)
    peak = status("VmHWM")
    growth = json.loads(model._learner.summary())["state_bytes"] - state
    rise = peak - before
    print(f"array {x.nbytes / 1e6:.0f} MB; peak rose by {rise / 1e6:.1f} MB; the model grew by {growth / 1e6:.1f} MB")
    allowed = growth + 0.1 * x.nbytes
    print(f"allowed: {allowed / 1e6:.1f} MB: {'holds' if rise <= allowed else 'DOES NOT HOLD'}")


if __name__ == "__main__":
    main()
