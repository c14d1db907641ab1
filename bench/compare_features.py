"""Compare two feature files of the same samples: cosine of rows that match by their order within a class.

    python bench/compare_features.py clinc150.npz clinc150-minilm.npz

Labels may be written differently (strings and integers). Classes match by their names, or by the array `classes` of a file
whose labels are integers.
"""

import sys

import numpy as np


def grouped(path, split):
    """The rows of each class in file order."""
    data = np.load(path, allow_pickle=False)
    labels = data[f"y_{split}"]
    if labels.dtype.kind in "iu" and "classes" in data.files:
        labels = data["classes"][labels]
    return {str(label): data[f"x_{split}"][labels == label].astype(np.float64) for label in np.unique(labels)}


def main():
    first, second = sys.argv[1:3]
    for split in ("train", "test"):
        a, b = grouped(first, split), grouped(second, split)
        if a.keys() != b.keys():
            sys.exit(f"{split}: classes differ: {sorted(a.keys() ^ b.keys())[:5]}")
        cosines = []
        for label in a:
            if len(a[label]) != len(b[label]):
                sys.exit(f"{split}: {label} has {len(a[label])} and {len(b[label])} rows")
            norms = np.linalg.norm(a[label], axis=1) * np.linalg.norm(b[label], axis=1)
            cosines.extend((a[label] * b[label]).sum(1) / norms)
        cosines = np.array(cosines)
        print(f"{split}: {len(cosines)} rows, cosine: smallest {cosines.min():.6f}, mean {cosines.mean():.6f}, below 0.999: {(cosines < 0.999).sum()}")


if __name__ == "__main__":
    main()
