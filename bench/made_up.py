"""Writes made-up features: class means and samples in a latent space whose spectrum decays, mapped to d features with noise.

    python bench/made_up.py OUT.npz --samples 50000 --classes 100 --dim 768

Features of trained encoders have a few hundred directions of decaying energy, and so have these: latent coordinate i has the
standard deviation i^(-1/2). Samples have unit length. Classes have equally many training samples (as nearly as possible), and --test
test samples each. The same arguments give the same file.
"""

import argparse

import numpy as np


def made_up(samples, classes, dim, latent=300, test=10, spread=1.0, noise=0.05, seed=0):
    """Returns training features and labels, test features and labels."""
    random = np.random.default_rng(seed)
    scale = np.arange(1, latent + 1) ** -0.5
    means = random.standard_normal((classes, latent)) * scale
    basis = random.standard_normal((latent, dim)).astype(np.float32) / np.sqrt(latent)

    def draw(y):
        x = np.empty((len(y), dim), np.float32)
        for start in range(0, len(y), 10_000):
            rows = y[start : start + 10_000]
            z = means[rows] + spread * scale * random.standard_normal((len(rows), latent))
            part = z.astype(np.float32) @ basis
            part /= np.linalg.norm(part, axis=1, keepdims=True)
            part += noise / np.sqrt(dim) * random.standard_normal(part.shape, np.float32)
            x[start : start + len(rows)] = part / np.linalg.norm(part, axis=1, keepdims=True)
        return x, y

    y = np.sort(np.arange(samples) % classes)
    return *draw(y), *draw(np.repeat(np.arange(classes), test))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--classes", type=int, required=True)
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--latent", type=int, default=300, help="latent dimensions")
    parser.add_argument("--test", type=int, default=10, help="test samples of a class")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    arrays = made_up(args.samples, args.classes, args.dim, args.latent, args.test, seed=args.seed)
    np.savez(args.out, **dict(zip(("x_train", "y_train", "x_test", "y_test"), arrays)))


if __name__ == "__main__":
    main()
