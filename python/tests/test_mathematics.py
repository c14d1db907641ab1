"""Results against NumPy, SciPy, scikit-learn and PyTorch, in double precision, from the definitions."""

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import Ridge

from loranpac import LoRanPACClassifier, make

WIDTH = 600


def one_hot(y, classes):
    return (y[:, None] == classes[None, :]).astype(float)


def close(a, b, tolerance):
    assert np.abs(a - b).max() < tolerance * np.abs(b).max(), np.abs(a - b).max() / np.abs(b).max()


@pytest.fixture
def data(blobs):
    x, y = blobs(np.arange(200) % 8)
    test, _ = blobs(np.arange(60) % 8)
    return x, y, test


def learned(data, **parameters):
    """A model that has learned in four tasks, with two classes in each."""
    x, y, _ = data
    model = LoRanPACClassifier(width=WIDTH, **parameters)
    for first in range(0, 8, 2):
        part = (y == first) | (y == first + 1)
        model.partial_fit(x[part], y[part])
    return model


def lifted(model, *arrays):
    return [model.lifted(x).astype(float) for x in arrays]


def test_the_lift_is_relu_of_a_normal_projection(data):
    """Without P itself: kernel (arc-cosine), homogeneity, and zero for zero."""
    x, y, _ = data
    model = LoRanPACClassifier(width=20_000).fit(x[:50], y[:50])
    (h,) = lifted(model, x[:20])
    assert (h >= 0).all()
    np.testing.assert_allclose(model.lifted(2 * x[:3]), 2 * model.lifted(x[:3]), rtol=1e-6)
    assert not model.lifted(np.zeros_like(x[:1])).any()
    lengths = np.linalg.norm(x[:20].astype(float), axis=1)
    cosines = np.clip(x[:20].astype(float) @ x[:20].T / np.outer(lengths, lengths), -1, 1)
    angles = np.arccos(cosines)
    kernel = np.outer(lengths, lengths) * (np.sin(angles) + (np.pi - angles) * cosines) / (2 * np.pi)
    measured = h @ h.T
    scale = np.trace(measured) / np.trace(kernel)
    assert np.abs(measured / scale - kernel).max() < 0.05 * kernel.max()


def test_soft_with_a_given_ridge_is_ridge_regression_of_scikit_learn(data):
    x, y, test = data
    model = learned(data, ridge=3.0)
    h, h_test = lifted(model, x, test)
    expected = Ridge(alpha=3.0, fit_intercept=False, solver="svd").fit(h, one_hot(y, model.classes_)).predict(h_test)
    close(model.decision_function(test), expected, 1e-4)


def test_soft_takes_the_geometric_mean_of_the_spectrum(data):
    x, y, test = data
    model = learned(data)
    h, h_test = lifted(model, x, test)
    gram = h @ h.T
    ridge = np.exp(np.log(scipy.linalg.eigvalsh(gram)).mean())
    weights = h.T @ scipy.linalg.solve(gram + ridge * np.eye(len(x)), one_hot(y, model.classes_), assume_a="pos")
    close(model.decision_function(test), h_test @ weights, 1e-3)
    assert abs(model._summary()["ridge"] / ridge - 1) < 1e-3


@pytest.mark.parametrize("cut", [{"truncate": 0.25}, {"truncate": 0.6}, {"rank": 17}, {"threshold": 5.0}])
def test_hard_is_the_truncated_svd_of_everything(data, cut):
    x, y, test = data
    model = learned(data, filter="hard", **cut)
    h, h_test = lifted(model, x, test)
    u, s, vt = np.linalg.svd(h, full_matrices=False)
    kept = {
        "truncate": lambda zeta: int(np.ceil((1 - zeta) * min(h.shape))),
        "rank": lambda rank: rank,
        "threshold": lambda delta: int((s**2 >= delta).sum()),
    }
    ((name, value),) = cut.items()
    k = kept[name](value)
    weights = vt[:k].T @ np.diag(1 / s[:k]) @ u[:, :k].T @ one_hot(y, model.classes_)
    close(model.decision_function(test), h_test @ weights, 1e-3)
    assert model.certificate_["kept"] == k
    error = np.square(h @ weights - one_hot(y, model.classes_)).sum() / len(x)
    assert abs(model.train_mse_ - error) < 1e-4 * error


def test_spectrum_is_that_of_the_gram_matrix(data):
    x, _, _ = data
    model = learned(data)
    (h,) = lifted(model, x)
    np.testing.assert_allclose(model.spectrum(), np.linalg.svd(h, compute_uv=False) ** 2, rtol=1e-4, atol=1e-3)


def test_ranpac_is_ridge_regression_with_the_lambda_that_it_chose(data):
    x, y, test = data
    model = make("ranpac", width=WIDTH).fit(x, y)
    h, h_test = lifted(model, x, test)
    ridge = model._summary()["ridge"]
    expected = Ridge(alpha=ridge, fit_intercept=False, solver="svd").fit(h, one_hot(y, model.classes_)).predict(h_test)
    close(model.decision_function(test), expected, 2e-3)


def algorithm_4(torch, tasks, zeta):
    """The paper's Algorithm 4, line by line, in double precision: (U, S) of B_t truncated after every task, and J."""
    u = s = j = None
    samples = 0
    for h, y in tasks:
        samples += h.shape[1]
        if u is None:
            u, s, _ = torch.linalg.svd(h, full_matrices=False)
            j = h @ y.T
        else:
            # B_t = [U S, H_t] in the basis [U, Q] of what is new.
            inside = u.T @ h
            q, r = torch.linalg.qr(h - u @ inside)
            top = torch.cat([torch.diag(s), inside], dim=1)
            bottom = torch.cat([torch.zeros(r.shape[0], len(s), dtype=h.dtype), r], dim=1)
            left, s, _ = torch.linalg.svd(torch.cat([top, bottom]), full_matrices=False)
            u = torch.cat([u, q], dim=1) @ left
            j = j + h @ y.T
        k = int(np.ceil((1 - zeta) * min(h.shape[0], samples)))
        u, s = u[:, :k], s[:k]
    return u @ torch.diag(s**-2) @ u.T @ j


@pytest.mark.parametrize("zeta", [0.1, 0.25, 0.5])
def test_the_paper_schedule_is_algorithm_4_in_pytorch(data, zeta):
    torch = pytest.importorskip("torch")
    x, y, test = data
    model = learned(data, filter="hard", truncate=zeta, schedule="paper")
    (h_test,) = lifted(model, test)
    tasks = []
    for first in range(0, 8, 2):
        part = (y == first) | (y == first + 1)
        (h,) = lifted(model, x[part])
        tasks.append((torch.tensor(h.T), torch.tensor(one_hot(y[part], model.classes_).T)))
    weights = algorithm_4(torch, tasks, zeta).numpy()
    close(model.decision_function(test), h_test @ weights, 1e-3)
