"""Rules for classes of different sizes: scores of class c times f(n_c), for several f, on long-tailed streams and on few samples beside many.

    python bench/compare_priors.py clinc150-minilm.npz cub200-efflite2.npz cifar100-efflite0.npz [--seeds 3] [--width infinite 5000]

Independent of the program: a soft classifier (ridge equal to the geometric mean of the spectrum) in NumPy, at infinite width by the
arc-cosine kernel, at finite width by random ReLU features. Long tails: class i of C keeps n_max RATIO^(-i/(C-1)) samples, n_max those of the
largest class. Few beside many: 30 classes of up to 100 samples, 30 classes of n. Needs numpy and scipy.
"""

import argparse
import warnings

import numpy as np
import scipy.linalg

MOST = 120
RULES = {
    "none": lambda n: np.ones_like(n),
    "train: n^-1/4": lambda n: n**-0.25,
    "n^-3/8": lambda n: n**-0.375,
    "uniform: n^-2/5": lambda n: n**-0.4,
    "n^-1/2": lambda n: n**-0.5,
    "(n+1)^-1/2": lambda n: (n + 1) ** -0.5,
    "(1/n+1/max)^1/2": lambda n: (1 / n + 1 / n.max()) ** 0.5,
}


def kernel(a, b):
    lengths = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    cosine = np.clip(a @ b.T / lengths, -1, 1)
    angle = np.arccos(cosine)
    return lengths * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)


def scores(x, y, queries, classes, width, seed):
    """Scores of the soft classifier, in the form between samples; None if there are not clearly fewer samples than features."""
    if width == "infinite":
        gram, between = kernel(x, x), kernel(queries, x)
    else:
        if len(x) > 0.9 * width:
            return None
        projection = np.random.default_rng(seed).standard_normal((x.shape[1], width), dtype=np.float32)
        lifted, others = np.maximum(x @ projection, 0), np.maximum(queries @ projection, 0)
        gram, between = lifted @ lifted.T, others @ lifted.T
    gram = gram.astype(np.float64)
    factor = scipy.linalg.cholesky(gram + 1e-9 * np.trace(gram) / len(x) * np.eye(len(x)), lower=True)
    ridge = np.exp(2 * np.log(np.diag(factor)).mean())
    return between @ scipy.linalg.solve(gram + ridge * np.eye(len(x)), np.eye(classes)[y], assume_a="pos")


def stream(arrays, kind, number, seed):
    """Samples of a long tail of a ratio, or of 30 classes of `number` beside 30 larger ones; the classes are numbered in order."""
    x, y, queries, truth = arrays
    random = np.random.RandomState(1993 + seed)
    order = random.permutation(y.max() + 1)
    most = min(MOST, np.bincount(y).max())
    if kind == "tail":
        sizes = [max(1, int(most * number ** (-i / (len(order) - 1)) + 1e-9)) for i in range(len(order))]
    else:
        order = order[:60]
        sizes = [min(most, 100)] * 30 + [number] * 30
    rows, labels = [], []
    for place, (label, size) in enumerate(zip(order, sizes)):
        own = np.flatnonzero(y == label)
        own = own[:size] if kind == "tail" else random.permutation(own)[:size]
        rows.extend(own)
        labels.extend([place] * len(own))
    place = {label: place for place, label in enumerate(order)}
    tested = [row for row, label in enumerate(truth) if label in place]
    return x[rows], np.array(labels), queries[tested], np.array([place[label] for label in truth[tested]]), len(order)


def recalls(values, truth, classes):
    right = np.bincount(truth[values.argmax(axis=1) == truth], minlength=classes)
    tested = np.bincount(truth, minlength=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 100 * right / tested


def measure(arrays, kind, number, seed, width):
    x, y, queries, truth, classes = stream(arrays, kind, number, seed)
    values = scores(x, y, queries, classes, width, seed)
    if values is None:
        return None
    sizes = np.bincount(y, minlength=classes).astype(np.float64)
    means = np.stack([x[y == label].mean(axis=0) for label in range(classes)])
    cosines = queries @ (means / np.linalg.norm(means, axis=1)[:, None]).T
    found = {}
    for rule, of in [*((rule, values * f(sizes)) for rule, f in RULES.items()), ("class means", cosines)]:
        by_class = recalls(of, truth, classes)
        known = ~np.isnan(by_class)
        if kind == "tail":
            found[rule] = by_class[known].mean(), (by_class * sizes)[known].sum() / sizes[known].sum()
        else:
            found[rule] = np.nanmean(by_class[:30]), np.nanmean(by_class[30:])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--width", nargs="+", default=["infinite"])
    parser.add_argument("--few", type=int, nargs="*", default=[1, 2, 3, 5, 10])
    parser.add_argument("--tail", type=int, nargs="*", default=[10, 50])
    args = parser.parse_args()
    cases = [("few", n) for n in args.few] + [("tail", ratio) for ratio in args.tail]
    for file in args.files:
        with np.load(file) as data:
            arrays = [data["x_train"].astype(np.float32), data["y_train"], data["x_test"].astype(np.float32), data["y_test"]]
        for width in (word if word == "infinite" else int(word) for word in args.width):
            for kind, number in cases:
                found = [measure(arrays, kind, number, seed, width) for seed in range(args.seeds)]
                found = [one for one in found if one is not None]
                if not found:
                    continue
                what = "large / small classes" if kind == "few" else "balanced / by training frequency"
                print(f"\n{file.split('/')[-1]}, width {width}, {kind} {number}, {what}, mean of {len(found)}")
                for rule in found[0]:
                    first, second = np.mean([one[rule] for one in found], axis=0)
                    print(f"  {rule:16} {first:5.1f} / {second:5.1f}", flush=True)


if __name__ == "__main__":
    main()
