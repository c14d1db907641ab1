"""Which samples a model of infinite width keeps beyond a cap: rules for the pivots of K, in NumPy, on a feature file.

    python bench/compare_pivots.py clinc150-minilm.npz --cap 1000

Samples come class after class in chunks of 384. Whenever more than 5/4 of the cap are kept, some are chosen to stay, one
after the other, and the others leave their projections. With R the residual of K after the samples chosen so far, and M the
mass that samples stand for, the next one is

    greedy            the one with the largest R_ii             weighted greedy    the one with the largest M_ii R_ii
    random pivots     drawn in proportion to R_ii               weighted random    drawn in proportion to M_ii R_ii
    uniform           drawn uniformly

`lost` is the sum of M_ii R_ii of all samples that left, as a share of the energy of all samples.
"""

import argparse
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

CHUNK = 384
RULES = ("greedy", "random pivots", "uniform", "weighted greedy", "weighted random")


def kernel(a, b):
    lengths = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    cosines = np.clip(a @ b.T / lengths, -1, 1)
    return lengths * (np.sqrt(1 - cosines**2) + (np.pi - np.arccos(cosines)) * cosines) / (2 * np.pi)


def choose(K, M, cap, rule, rng):
    if rule == "uniform":
        return np.sort(rng.permutation(len(K))[:cap])
    weight = np.diag(M) if rule.startswith("weighted") else np.ones(len(K))
    residual, F, chosen = K.diagonal().copy(), np.zeros((cap, len(K))), []
    for j in range(cap):
        cost = np.maximum(weight * residual, 0)
        cost[chosen] = 0
        i = int(np.argmax(cost)) if rule.endswith("greedy") else int(rng.choice(len(K), p=cost / cost.sum()))
        F[j] = (K[i] - F[:j, i] @ F[:j]) / np.sqrt(max(residual[i], 1e-12))
        residual -= F[j] ** 2
        chosen.append(i)
    return np.sort(chosen)


def evict(Z, M, B, cap, rule, rng):
    """Returns the state after an eviction, and what it loses."""
    K = kernel(Z, Z)
    keep = choose(K, M, cap, rule, rng)
    leave = np.setdiff1d(np.arange(len(Z)), keep)
    inner = cho_factor(K[np.ix_(keep, keep)] + 1e-12 * np.eye(cap))
    b = cho_solve(inner, K[np.ix_(keep, leave)]).T
    middle, side = M[np.ix_(leave, leave)], M[np.ix_(keep, leave)] @ b
    lost = np.sum(middle * (K[np.ix_(leave, leave)] - b @ K[np.ix_(keep, leave)]))
    M = M[np.ix_(keep, keep)] + side + side.T + b.T @ middle @ b
    return Z[keep], M, B[:, keep] + B[:, leave] @ b, lost


def run(data, cap, rule, seed):
    X, y, X_test, y_test = data
    rng, classes, lost = np.random.default_rng(seed), y.max() + 1, 0.0
    Z, M, B = np.zeros((0, X.shape[1])), np.zeros((0, 0)), np.zeros((classes, 0))
    for start in range(0, len(X), CHUNK):
        x, labels = X[start : start + CHUNK], y[start : start + CHUNK]
        n, m = len(Z), len(x)
        Z, M = np.vstack([Z, x]), np.block([[M, np.zeros((n, m))], [np.zeros((m, n)), np.eye(m)]])
        B = np.hstack([B, np.eye(classes)[labels].T])
        if len(Z) > cap + max(cap // 4, CHUNK):
            Z, M, B, more = evict(Z, M, B, cap, rule, rng)
            lost += more
    G = cholesky(M + 1e-12 * np.eye(len(M)), lower=True)
    turned = G.T @ kernel(Z, Z) @ G
    values = np.linalg.eigvalsh(turned)
    ridge = np.exp(np.log(values[values > 1e-13 * values[-1]]).mean())
    A = G @ np.linalg.solve(turned + ridge * np.eye(len(G)), solve_triangular(G, B.T, lower=True))
    right = (kernel(X_test, Z) @ A).argmax(1) == y_test
    return 100 * right.mean(), 100 * lost / (0.5 * np.sum(X * X))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rules", default=",".join(RULES))
    args = parser.parse_args()
    with np.load(args.data) as file:
        X, y, X_test, y_test = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    classes, y = np.unique(y, return_inverse=True)
    order = np.random.RandomState(1993).permutation(len(classes))
    shuffled = np.random.default_rng(0).permutation(len(y))
    places = shuffled[np.argsort(order[y[shuffled]], kind="stable")]
    data = X[places].astype(float), y[places], X_test.astype(float), np.searchsorted(classes, y_test)
    print(f"cap {args.cap}, seed {args.seed}\n\n| rule | accuracy % | lost % | seconds |\n|---|---|---|---|")
    for rule in args.rules.split(","):
        clock = time.perf_counter()
        accuracy, lost = run(data, args.cap, rule, args.seed)
        print(f"| {rule} | {accuracy:.2f} | {lost:.1f} | {time.perf_counter() - clock:.0f} |", flush=True)


if __name__ == "__main__":
    main()
