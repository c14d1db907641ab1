"""Independent computation of the closed-form rivals of 2023 to 2026, for rivals.py: dense matrices, double precision.

Nothing is shared with the Rust engine. Samples are rows here, as in scikit-learn; classes are counted from 0.
"""

import math

import numpy as np
from scipy.linalg import solve, sqrtm
from scipy.special import erf, softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestNeighbors

import projection

GRID = [10.0**k for k in range(-8, 9)]


def one_hot(y):
    return np.eye(y.max() + 1)[y]


def unit(x):
    """Rows of length 1."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def normals(seed, count, dim):
    """The first rows of the random matrix of a seed, as float32 has them."""
    return np.array([projection.row(seed, i, dim) for i in range(count)]).astype(np.float64)


def gelu(z):
    return z * (1 + erf(z / math.sqrt(2))) / 2


def acil(tasks, classes, ridge):
    """Equations 9 and 10 of ACIL: R <- (R^-1 + X' X)^-1, W <- W + R X' (Y - X W), from R = I / ridge, W = 0; W'."""
    dim = tasks[0][0].shape[1]
    r, w = np.eye(dim) / ridge, np.zeros((dim, classes))
    for x, y in tasks:
        r = r - r @ x.T @ np.linalg.inv(np.eye(len(x)) + x @ r @ x.T) @ x @ r
        w = w + r @ x.T @ (np.eye(classes)[y] - x @ w)
    return w.T


def air(x, y, ridge=None):
    """(sum pi_c A_c + ridge I)^-1 sum pi_c C_c, A_c = X_c' X_c, C_c = X_c' Y_c, pi_c = k / n_c / sum(1 / n); W'.

    Without a ridge: a tenth of the trace of the sum of pi_c A_c over the smaller of d and the number of samples.
    """
    inverse = 1 / np.bincount(y)
    weights = inverse * len(inverse) / inverse.sum()
    a = sum(p * x[y == c].T @ x[y == c] for c, p in enumerate(weights))
    if ridge is None:
        ridge = np.trace(a) / (10 * min(x.shape))
    return ridge, solve(a + ridge * np.eye(len(a)), x.T @ one_hot(y) * weights).T


def knn(x, y, test, neighbours, temperature):
    """A vote of the samples with the largest cosines: exp((cos - 1) / t) each, or 1 and a little for the cosine."""
    search = NearestNeighbors(n_neighbors=neighbours, metric="cosine", algorithm="brute").fit(x)
    distances, found = search.kneighbors(test)
    votes = np.exp(-distances / temperature) if temperature else 1 + 1e-4 * (1 - distances)
    return np.array([[v[y[i] == c].sum() for c in range(y.max() + 1)] for v, i in zip(votes, found)])


def fecam(x, y, test, tukey, shrink, mix):
    """Minus the squared Mahalanobis distance to each class: its covariance, shrunk, as a correlation matrix, inverted."""

    def transformed(x):
        return unit(np.sign(x) * np.abs(x) ** tukey)

    x, test, scores = transformed(x), transformed(test), []
    dim = x.shape[1]
    for c in range(y.max() + 1):
        covariance = np.cov(x[y == c].T)
        variance = np.trace(covariance) / dim
        rest = (covariance.sum() - np.trace(covariance)) / (dim * (dim - 1))
        shrunk = covariance + shrink * variance * np.eye(dim) + mix * rest * (1 - np.eye(dim))
        spread = np.sqrt(np.diag(shrunk))
        inverse = np.linalg.inv(shrunk / np.outer(spread, spread))
        delta = test - x[y == c].mean(axis=0)
        scores.append(-np.einsum("ni,ij,nj->n", delta, inverse, delta))
    return np.array(scores).T


def klda(features, y, test, members, shrinkage):
    """The mean of the members' posteriors; each has a part of the features, and classes are equally likely."""
    total = 0
    for part, test_part in zip(np.array_split(features, members, axis=1), np.array_split(test, members, axis=1)):
        model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(part, y)
        scores = test_part @ model.coef_.T + model.intercept_ - np.log(model.priors_)
        total = total + softmax(scores, axis=1) / members
    return total


def shuffled(count, stream):
    """0..count by Fisher and Yates, from the last place down, with ChaCha8 words of seed 0."""
    order = list(range(count))
    words = iter(projection.chacha8(0, stream, 2 * count))
    for i in range(count - 1, 0, -1):
        low, high = next(words), next(words)
        j = (low | high << 32) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def winners(x, seed, width, degree, kept):
    """The largest features of a sparse projection: each row keeps `degree` entries."""
    p = normals(seed, width, x.shape[1])
    sparse = np.zeros_like(p)
    for i, row in enumerate(p):
        chosen = shuffled(len(row), i)[:degree]
        sparse[i, chosen] = row[chosen]
    z = x @ sparse.T
    threshold = np.sort(z, axis=1)[:, -kept][:, None]
    return np.where(z >= threshold, z, 0)


def gcv(h, y, ridge):
    """|Y - A Y|^2 / n / (1 - tr A / n)^2 with the hat matrix A = H (H' H + ridge I)^-1 H'."""
    n = len(h)
    a = h @ np.linalg.solve(h.T @ h + ridge * np.eye(h.shape[1]), h.T)
    return np.sum((y - a @ y) ** 2) / n / (1 - np.trace(a) / n) ** 2


def fly_cl(tasks, test, lift):
    """Ridge regression on all winners, with the ridge that is best on the last task: ridges, scores."""
    h = [winners(x, **lift) for x, _ in tasks]
    ridges = []
    for part, (_, y) in zip(h, tasks):
        floor = 2.0**-23 * np.linalg.norm(part, 2) ** 2
        grid = [ridge for ridge in GRID if ridge >= floor]
        ridges.append(min(grid, key=lambda ridge: gcv(part, one_hot(y), ridge)))
    h, y = np.concatenate(h), one_hot(np.concatenate([y for _, y in tasks]))
    w = solve(h.T @ h + ridges[-1] * np.eye(h.shape[1]), h.T @ y, assume_a="pos")
    return ridges, winners(test, **lift) @ w


def anacp(x, y, test, lift_seed, seed, width, heads, replay, spread, ridge):
    """Both regressions of AnaCP, as the authors' program has them; see crates/loranpac/src/methods/anacp.rs."""
    x, test, c, d = unit(x), unit(test), y.max() + 1, x.shape[1]
    means = np.array([x[y == k].mean(axis=0) for k in range(c)])
    sigma = (x - means[y]).T @ (x - means[y]) / len(x) + 1e-4 * np.eye(d)
    root, centre = np.real(sqrtm(sigma)), means.mean(axis=0)
    u, s, vt = np.linalg.svd((means - centre) @ np.linalg.inv(root), full_matrices=False)
    s = np.where(s > 1e-6 * s[0], s + spread, s)
    targets = unit(u * s @ vt @ root + centre)
    p = np.array_split(normals(lift_seed, width, d), heads)
    theta = []
    for part in p:
        z = gelu(x @ part.T)
        theta.append(solve(z.T @ z + ridge * np.eye(len(part)), z.T @ targets[y], assume_a="pos"))
    second = normals(seed + 2**32, len(p[0]), d)

    def features(x):
        return gelu(sum(unit(gelu(x @ part.T) @ t) for part, t in zip(p, theta)) / heads @ second.T)

    again = np.repeat(np.arange(c), replay)
    h = features(means[again] + normals(seed + 2**33, len(again), d) @ root)
    w = solve(h.T @ h + ridge * np.eye(h.shape[1]), h.T @ one_hot(again), assume_a="pos")
    return features(test) @ w


def expected(wide, tall, fourier):
    """All expected numbers, by method. `fourier` computes Fourier features."""
    result = {"air": [], "fecam": [], "knn": []}
    for name, data in (("wide", wide), ("tall", tall)):
        x, y = np.concatenate(data.x), np.concatenate(data.y)
        for ridge in (0.1, None):
            found, weights = air(x, y, ridge)
            result["air"].append({"data": name, "fixed": ridge is not None, "ridge": found, "weights": weights})
        for shape in ((0.5, 1.0, 0.0), (0.5, 1.0, 1.0), (1.0, 0.1, 0.05), (0.5, 10.0, 0.0)):
            case = dict(zip(("tukey", "shrink", "mix"), shape))
            result["fecam"].append({"data": name, **case, "scores": fecam(x, y, data.test, **case)})
        for neighbours, temperature in ((5, 0.07), (9, None)):
            case = {"neighbours": neighbours, "temperature": temperature}
            result["knn"].append({"data": name, **case, "scores": knn(x, y, data.test, **case)})
    x, y, tasks = np.concatenate(tall.x), np.concatenate(tall.y), list(zip(tall.x, tall.y))
    lift = {"seed": 7, "width": 24, "gamma": 1.0}
    scores = klda(fourier(x, **lift), y, fourier(tall.test, **lift), 3, 0.1)
    result["klda"] = {**lift, "data": "tall", "members": 3, "shrinkage": 0.1, "scores": scores}
    result["fly_cl"] = []
    for name, data in (("wide", wide), ("tall", tall)):
        dim = data.test.shape[1]
        lift = {"seed": 7, "width": 50, "degree": dim // 2, "kept": 15}
        ridges, scores = fly_cl(list(zip(data.x, data.y)), data.test, lift)
        result["fly_cl"].append({**lift, "data": name, "ridges": ridges, "scores": scores})
    case = {"lift_seed": 7, "seed": 11, "width": 45, "heads": 3, "replay": 6, "spread": 1.0, "ridge": 1.0}
    result["anacp"] = {**case, "data": "tall", "scores": anacp(x, y, tall.test, **case)}
    result["acil"] = {"data": "tall", "lambda": 1.0, "weights": acil(tasks, y.max() + 1, 1.0)}
    return result
