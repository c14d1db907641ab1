"""Independent computation of the golden numbers of the lift `abs-random` (crates/loranpac/src/lift/absolute.rs), in double precision.

    python bench/reference/abs_random.py
"""

import numpy as np

from projection import row

WIDTH, DIM = 7, 5

if __name__ == "__main__":
    x = np.array([0.5, -1.0, 2.0, 0.25, -3.0])
    p = np.array([row(0, index, DIM) for index in range(WIDTH - DIM)], dtype=np.float64)
    linear = x / 2
    random = abs(p @ x) / (2 * np.sqrt(len(p)))
    # The engine's features have inner products E times the kernel.
    print(np.sqrt(WIDTH) * np.concatenate([linear, random]))
