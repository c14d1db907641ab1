"""What fixed point costs where there is no basis: the largest error of scores against S in f64, for S rounded to f32 and to fixed point.

    python bench/fixed_point.py clinc150-minilm.npz [--width E]
"""

import argparse

import numpy as np

BITS = 30


def fixed_point(s: np.ndarray) -> np.ndarray:
    """S rounded as `gram/grid.rs` does."""
    diagonal = np.diag(s)
    _, exponent = np.frexp(diagonal)
    scale = np.exp2((exponent + 1) // 2)
    step = np.outer(scale, scale) * 2.0**-BITS
    rounded = np.round(s / step) * step
    np.fill_diagonal(rounded, diagonal)
    return rounded


def solutions(s: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights by the soft filter and by the hard one that cuts a quarter, and the eigenvalues."""
    mu, v = np.linalg.eigh(s)
    rounding = len(mu) * np.finfo(float).eps * np.diag(s).max()
    ridge = np.exp(np.mean(np.log(np.maximum(mu, 0) + rounding)))
    turned, kept = n @ v, np.arange(len(mu)) >= len(mu) // 4
    return turned / (np.maximum(mu, 0) + ridge) @ v.T, turned[:, kept] / mu[kept] @ v[:, kept].T, mu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data")
    parser.add_argument("--width", type=int, default=2000)
    parser.add_argument("--ratios", type=float, nargs="+", default=[1.125, 2, 6])
    given = parser.parse_args()
    data = np.load(given.data)
    random = np.random.default_rng(0)
    order = random.permutation(len(data["x_train"]))
    x, y = data["x_train"][order].astype(np.float32), np.unique(data["y_train"][order], return_inverse=True)[1]
    p = random.standard_normal((given.width, x.shape[1])).astype(np.float32)
    lift = lambda x: np.maximum(x @ p.T, 0).astype(np.float64)
    fresh = lift(data["x_test"][:1000].astype(np.float32))
    print("| samples / E | smallest eigenvalue / mean | soft, f32 | soft, fixed | hard, f32 | hard, fixed |\n|---|---|---|---|---|---|")
    for ratio in given.ratios:
        h, one_hot = lift(x[: int(ratio * given.width)]), np.eye(y.max() + 1)[y[: int(ratio * given.width)]]
        s, n = h.T @ h, one_hot.T @ h
        *exact, mu = solutions(s, n)
        errors = []
        for rounded in [s.astype(np.float32).astype(np.float64), fixed_point(s)]:
            *weights, _ = solutions(rounded, n)
            errors.append([np.abs(fresh @ (w - e).T).max() for w, e in zip(weights, exact)])
        (soft32, hard32), (soft, hard) = errors
        print(f"| {ratio} | {mu[0] / mu.mean():.0e} | {soft32:.0e} | {soft:.0e} | {hard32:.0e} | {hard:.0e} |", flush=True)


if __name__ == "__main__":
    main()
