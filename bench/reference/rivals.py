"""Independent computation of the rival methods' golden numbers (crates/loranpac/tests/golden/rivals.json).

Every number is computed literally, in double precision, from the method's definition with NumPy, SciPy, scikit-learn
and PyTorch. Nothing is shared with the Rust engine. What two definitions must agree on is asserted here.

    pip install -r bench/reference/requirements.txt
    python bench/reference/rivals.py > crates/loranpac/tests/golden/rivals.json

In the formulas columns are samples: H is E x M, Y is c x M and one-hot. In the file data have one row per sample and
weights one row per class, classes in the order in which they first appear. Feature values are exact in float32. The
lift is the identity, so H = X, unless a formula says otherwise. A summary goes to standard error.
"""

import json
import math
import sys
from collections import namedtuple

import numpy as np
import scipy
import sklearn
import torch
from scipy.linalg import pinv, solve
from sklearn.covariance import oas
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import closed_forms
import projection

Data = namedtuple("Data", "x y test labels")  # x, y: one array per task; y: class indices; labels: by class index

# The class of every sample, a string per task.
WIDE = ["010110010", "232302320323", "44424444"]
TALL = ["001020010100210010020100010010", "103313203133230331323303133203", "202032120220321202220302212022"]
LAMBDAS = [float(f"1e{k}") for k in range(-8, 9)]
ZETA = 0.25


def make(rng, dim, tasks, labels, tests):
    """Samples are a centre per class plus noise whose scale falls by five over the coordinates, in float32."""
    centres = rng.standard_normal((len(labels), dim))
    scale = np.geomspace(1.5, 0.3, dim)

    def draw(classes):
        samples = centres[classes] + scale * rng.standard_normal((len(classes), dim))
        return samples.astype(np.float32).astype(np.float64)

    y = [np.array([int(c) for c in task]) for task in tasks]
    first = list(dict.fromkeys(np.concatenate(y).tolist()))
    assert first == list(range(len(labels))), "classes are numbered by first appearance"
    return Data([draw(c) for c in y], y, draw(np.arange(tests) % len(labels)), labels)


def one_hot(y, classes):
    """Y[k, i] = 1 where sample i is of class k."""
    return np.eye(classes)[:, y]


def joined(data, tasks=None):
    """H, Y of the first tasks together (all by default), over the classes in them."""
    y = np.concatenate(data.y[:tasks])
    return np.concatenate(data.x[:tasks]).T, one_hot(y, y.max() + 1)


def grown(w, classes):
    """W with a row of zeros for each new class."""
    return np.vstack([w, np.zeros((classes - len(w), w.shape[1]))])


def close(a, b, tolerance):
    return np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


def ridge(h, y, lam):
    """W = Y H' (H H' + lambda I)^-1."""
    return solve(h @ h.T + lam * np.eye(len(h)), h @ y.T, assume_a="pos").T


def ridge_dual(h, y, lam):
    """W = Y (H' H + lambda I)^-1 H', the same matrix, well-conditioned for any lambda where samples are few."""
    return solve(h.T @ h + lam * np.eye(h.shape[1]), y.T, assume_a="pos").T @ h.T


def ridge_spectral(h, y, lam):
    """W = Y V S (S^2 + lambda I)^-1 U' with H = U S V'."""
    u, s, vt = np.linalg.svd(h, full_matrices=False)
    return (y @ vt.T) * (s / (s**2 + lam)) @ u.T


def ridge_truncated(h, y, lam, zeta):
    """W = J U_k (S_k^2 + lambda I)^-1 U_k', J = Y H', k = ceil((1 - zeta) min(E, M))."""
    k = math.ceil((1 - zeta) * min(h.shape))
    u, s, _ = np.linalg.svd(h, full_matrices=False)
    return (y @ h.T @ u[:, :k]) / (s[:k] ** 2 + lam) @ u[:, :k].T


def min_norm(h, y):
    """W = Y H^+."""
    return y @ pinv(h)


def holdout(data, name, tasks, rng):
    """mse(lambda) = mean over validation samples and classes of (W(lambda) h - y)^2, W fitted on the other 80%.

    W is the primal where E <= M and the dual otherwise: there the primal's condition is near |H|^2 / lambda, and 1e-8
    would cost it most of its digits. Both are checked against the spectral form.
    """
    h, y = joined(data, tasks)
    order = rng.permutation(h.shape[1])
    fit, validate = np.split(order, [4 * len(order) // 5])
    solver = ridge if len(h) <= len(fit) else ridge_dual
    mse = []
    for lam in LAMBDAS:
        w = solver(h[:, fit], y[:, fit], lam)
        assert close(w, ridge_spectral(h[:, fit], y[:, fit], lam), 1e-10)
        mse.append(np.mean((w @ h[:, validate] - y[:, validate]) ** 2))
    return {"data": name, "tasks": tasks, "form": "primal" if solver is ridge else "dual", "fit": fit,
            "validate": validate, "lambdas": LAMBDAS, "mse": mse}


def recursive(data, lam):
    """Recursive least squares: P = I / lambda; a task does K = P H (I + H' P H)^-1, W += (Y - W H) K', P -= K H' P."""
    dim = data.test.shape[1]
    p, w = np.eye(dim) / lam, np.zeros((0, dim))
    for x, y in zip(data.x, data.y):
        h = x.T
        w = grown(w, max(len(w), y.max() + 1))
        gain = solve(np.eye(len(x)) + h.T @ p @ h, h.T @ p, assume_a="pos").T
        w = w + (one_hot(y, len(w)) - w @ h) @ gain.T
        p = p - gain @ h.T @ p
    return w


def orthogonal_descent(data, steps, stored):
    """W after each task of W <- W + eta (Y - W H) Hp', `steps` times, Hp = (I - Q Q') H, eta = 1 / max eig(Hp Hp').

    Q is an orthonormal basis of stored(H) of all earlier tasks.
    """
    dim = data.test.shape[1]
    w, q, after = np.zeros((0, dim)), np.zeros((dim, 0)), []
    for x, y in zip(data.x, data.y):
        h = x.T
        w = grown(w, max(len(w), y.max() + 1))
        targets = one_hot(y, len(w))
        hp = (np.eye(dim) - q @ q.T) @ h
        eta = 1 / np.linalg.eigvalsh(hp @ hp.T)[-1]
        for _ in range(steps):
            w = w + eta * (targets - w @ h) @ hp.T
        after.append(w)
        q, _ = np.linalg.qr(np.hstack([q, stored(h)]))
    return {"steps": steps, "weights": w, "after": after}


def leading(h):
    """The first ceil((1 - zeta) m) left singular vectors of a task's features: what PCA-OGD stores."""
    return np.linalg.svd(h, full_matrices=False)[0][:, : math.ceil((1 - ZETA) * h.shape[1])]


def or_fit(data):
    """Sample by sample: v = (I - U U') h, W <- W + (y - W h) v' / (v' h), U gains v / |v|."""
    dim = data.test.shape[1]
    w, u = np.zeros((0, dim)), np.zeros((dim, 0))
    for x, y in zip(data.x, data.y):
        w = grown(w, max(len(w), y.max() + 1))
        for h, target in zip(x, one_hot(y, len(w)).T):
            v = (np.eye(dim) - u @ u.T) @ h
            w = w + np.outer(target - w @ h, v) / (v @ h)
            u = np.column_stack([u, v / np.linalg.norm(v)])
    return w


def within_class(x, y):
    """Samples (rows) less the mean of their class."""
    return x - np.array([x[y == k].mean(0) for k in range(y.max() + 1)])[y]


def lda(x, y, shrinkage):
    """score_k = w_k' x + b_k, w_k = S^-1 mu_k, b_k = -mu_k' w_k / 2; the log prior is left out.

    S = (1 - s) Sigma + s tr(Sigma) / d I, Sigma = the sum over all samples of (x - mu_k) (x - mu_k)' / N.
    """
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(x, y)
    centred = within_class(x, y)
    sigma = centred.T @ centred / len(x)
    shrunk = (1 - shrinkage) * sigma + shrinkage * np.trace(sigma) / len(sigma) * np.eye(len(sigma))
    assert close(model.covariance_, shrunk, 1e-12), "scikit-learn pools as the formula says"
    return {"coef": model.coef_, "intercept": model.intercept_ - np.log(model.priors_)}


def oas_shrinkage(x, y):
    """s = min(1, (tr S^2 + tr(S)^2) / ((N + 1) (tr S^2 - tr(S)^2 / d))), S the pooled within-class covariance.

    This is scikit-learn's form, which leaves out the 2 / d of equation 23 of Chen et al. (2010).
    """
    centred = within_class(x, y)
    _, shrinkage = oas(centred, assume_centered=True)
    s = centred.T @ centred / len(x)
    squared, trace = np.sum(s**2), np.trace(s)
    formula = (squared + trace**2) / ((len(x) + 1) * (squared - trace**2 / len(s)))
    assert close(shrinkage, min(1.0, formula), 1e-12)
    return shrinkage


def class_means(x, y, classes, test):
    """Cosine of each test sample with the mean of each class."""
    means = np.array([x[y == k].mean(axis=0) for k in range(classes)])
    return (test @ means.T) / np.linalg.norm(test, axis=1)[:, None] / np.linalg.norm(means, axis=1)


def rows(seed, count, dim):
    """The first rows of the projection P of a seed, as float32 has them."""
    return np.array([projection.row(seed, i, dim) for i in range(count)]).astype(np.float64)


def fourier(x, seed, width, gamma):
    """h[2k] = sqrt(2 / E) cos z_k, h[2k + 1] = sqrt(2 / E) sin z_k, z = sqrt(2 gamma) P x / |x|; z = 0 where x = 0."""
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    unit = x / np.where(norm > 0, norm, 1)
    z = math.sqrt(2 * gamma) * unit @ rows(seed, width // 2, x.shape[1]).T
    return math.sqrt(2 / width) * np.stack([np.cos(z), np.sin(z)], axis=2).reshape(len(x), width)


def sgd(train, test, lr, seed):
    """Test accuracy in percent of softmax regression by SGD: momentum 0.9, decay 5e-4, 20 epochs, batch 48, cosine."""
    torch.manual_seed(seed)
    (x, y), (xt, yt) = train, test
    model = torch.nn.Linear(x.shape[1], 10, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)  # a random start is only noise that 20 epochs may not forget
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for _ in range(20):
        for batch in torch.randperm(len(x)).split(48):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        schedule.step()
    return 100 * (model(xt).argmax(1) == yt).double().mean().item()


def sgd_table():
    """Mean accuracy over ten seeds on scikit-learn's digits: raw (0..16), x = raw / 16, and lifted to relu(P x).

    Every fourth row is a test sample. The spread is the largest accuracy of the ten less the smallest.
    """
    digits = load_digits()
    held_out = np.arange(len(digits.data)) % 4 == 3
    lifted = np.maximum(digits.data / 16 @ rows(0, 300, 64).T, 0)
    table, spreads = {}, {}
    for name, x in (("raw", digits.data), ("scaled", digits.data / 16), ("lifted", lifted)):
        train, test = ((torch.from_numpy(x[at]), torch.from_numpy(digits.target[at])) for at in (~held_out, held_out))
        runs = {str(lr): [sgd(train, test, lr, seed) for seed in range(10)] for lr in (0.001, 0.005, 0.01, 0.02, 0.03)}
        table[name] = {lr: np.mean(accuracies) for lr, accuracies in runs.items()}
        spreads[name] = {lr: np.ptp(accuracies) for lr, accuracies in runs.items()}
    widest = max(spread for row in spreads.values() for spread in row.values())
    return {**table, "spread": widest, "spreads": spreads}


def expected(wide, tall, rng):
    both = {"wide": wide, "tall": tall}
    shortest, fitted = min_norm(*joined(wide)), or_fit(wide)
    assert close(fitted, shortest, 1e-8), "OR-Fit is the minimum-norm solution"
    assert close(recursive(tall, 1.0), ridge(*joined(tall), 1.0), 1e-9), "RLS is ridge"
    x, y = np.concatenate(tall.x), np.concatenate(tall.y)
    lift = {"seed": 7, "width": 16, "gamma": 1.0}
    lifted = lda(fourier(x, **lift), y, 0.1)
    forms = closed_forms.expected(wide, tall, fourier)
    assert close(forms["acil"]["weights"], ridge(*joined(tall), 1.0), 1e-9), "ACIL is ridge, as RLS is"
    return {
        **forms,
        "ridge": [{"data": name, "lambda": lam, "weights": ridge(*joined(data), lam)}
                  for name, data in both.items() for lam in (1e-3, 1.0, 100.0)],
        "holdout": [holdout(tall, "tall", 1, rng), holdout(wide, "wide", 3, rng)],
        "ridge_truncated": [{"data": name, "zeta": ZETA, "lambda": lam,
                             "weights": ridge_truncated(*joined(data), lam, ZETA)}
                            for name, data in both.items() for lam in (0.5, 10.0)],
        "min_norm": {"data": "wide", "weights": shortest},
        "ogd": {"data": "wide", **orthogonal_descent(wide, 50, lambda h: h)},
        "pca_ogd": {"data": "wide", "zeta": ZETA, **orthogonal_descent(wide, 50, leading)},
        "or_fit": {"data": "wide", "weights": fitted},
        "lda": [{"data": "tall", "shrinkage": s, **lda(x, y, s)} for s in (0.1, 0.5)],
        "oas": {name: oas_shrinkage(np.concatenate(data.x), np.concatenate(data.y)) for name, data in both.items()},
        "fourier": {**lift, "data": "tall", "features": fourier(tall.test, **lift)},
        "randumb": {**lift, "data": "tall", "shrinkage": 0.1,
                    "scores": fourier(tall.test, **lift) @ lifted["coef"].T + lifted["intercept"]},
        "class_means": {"data": "tall", "scores": class_means(x, y, len(tall.labels), tall.test)},
        "sgd": sgd_table(),
    }


def stream(data):
    """A data set as the file has it, with labels instead of class indices."""
    tasks = [{"x": x, "y": [data.labels[k] for k in y]} for x, y in zip(data.x, data.y)]
    return {"tasks": tasks, "test": data.test, "labels": data.labels}


def summary(golden, both):
    def say(text):
        print(text, file=sys.stderr)

    for name, data in both.items():
        h, _ = joined(data)
        s = np.linalg.svd(h, compute_uv=False)
        say(f"{name}: H is {h.shape[0]} x {h.shape[1]}, singular values {s[0]:.3g} to {s[-1]:.3g}, "
            f"OAS {golden['oas'][name]:.4f}")
    for entry in golden["holdout"]:
        best = int(np.argmin(entry["mse"]))
        say(f"holdout on {entry['data']} ({entry['form']}): best lambda {entry['lambdas'][best]:g}, "
            f"mse {entry['mse'][best]:.4f}")
    for name in ("raw", "scaled", "lifted"):
        spreads = golden["sgd"]["spreads"][name]
        say(f"sgd {name}: " + ", ".join(f"{lr}: {accuracy:.2f} (spread {spreads[lr]:.2f})"
                                        for lr, accuracy in golden["sgd"][name].items()))


def main():
    torch.set_num_threads(1)
    rng = np.random.default_rng(2025)
    wide = make(rng, 40, WIDE, [70, 10, 40, 20, 50], 6)
    tall = make(rng, 6, TALL, [8, 3, 5, 1], 6)
    golden = expected(wide, tall, rng)
    made_by = (f"python bench/reference/rivals.py with numpy {np.__version__}, scipy {scipy.__version__}, "
               f"scikit-learn {sklearn.__version__}, torch {torch.__version__.split('+')[0]}")
    document = {"made_by": made_by, "wide": stream(wide), "tall": stream(tall), "expected": golden}
    json.dump(document, sys.stdout, separators=(",", ":"), default=lambda array: array.tolist())
    print()
    summary(golden, {"wide": wide, "tall": tall})


if __name__ == "__main__":
    main()
