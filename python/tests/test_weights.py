"""Weights of samples, against scikit-learn and copies of samples."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from loranpac import LoRanPACClassifier, make

WIDTHS = [200, 20, float("inf")]


@pytest.fixture
def data(blobs):
    X, y = blobs(np.repeat([0, 1, 2], [30, 20, 10]))
    return X, y, np.random.default_rng(0).uniform(0.1, 3.0, len(y))


@pytest.mark.parametrize("width", [200, 20])
def test_scores_are_those_of_weighted_ridge_regression(data, width):
    X, y, weights = data
    model = LoRanPACClassifier(width=width, ridge=0.7).partial_fit(X[:25], y[:25], sample_weight=weights[:25])
    model.partial_fit(X[25:], y[25:], sample_weight=weights[25:])
    lifted = model.lifted(X).astype(np.float64)
    ridge = Ridge(alpha=0.7, fit_intercept=False).fit(lifted, np.eye(3)[y], sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X), ridge.predict(lifted), atol=2e-4)
    squares = ((ridge.predict(lifted) - np.eye(3)[y]) ** 2).sum(axis=1)
    assert model.train_mse_ == pytest.approx(np.average(squares, weights=weights), abs=1e-5)


def test_infinite_width_is_weighted_kernel_ridge_regression(data):
    X, y, weights = data
    model = LoRanPACClassifier(width=float("inf"), ridge=0.7).fit(X, y, sample_weight=weights)
    X = np.asarray(X, dtype=np.float64)
    lengths = np.linalg.norm(X, axis=1)
    angle = np.arccos(np.clip(X @ X.T / np.outer(lengths, lengths), -1, 1))
    np.fill_diagonal(angle, 0)
    kernel = np.outer(lengths, lengths) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    coefficients = np.linalg.solve(kernel + 0.7 * np.diag(1 / weights), np.eye(3)[y])
    np.testing.assert_allclose(model.decision_function(X), kernel @ coefficients, atol=1e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_weights_are_saved_unlearned_and_relabelled(data, width, tmp_path):
    X, y, weights = data
    model = LoRanPACClassifier(width=width).partial_fit(X, y, sample_weight=weights)
    model.save(tmp_path / "m.lrp")
    for copy in (LoRanPACClassifier.load(tmp_path / "m.lrp"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
        assert copy.train_mse_ == model.train_mse_
        more = LoRanPACClassifier(width=width).partial_fit(X, y, sample_weight=weights)
        for both in (copy, more):
            both.partial_fit(-X[:9], y[:9], sample_weight=weights[:9])
        np.testing.assert_array_equal(copy.decision_function(X), more.decision_function(X))
        copy.unlearn(-X[:9], y[:9], sample_weight=weights[:9])
        np.testing.assert_allclose(copy.decision_function(X), model.decision_function(X), atol=1e-3)
        assert copy.train_mse_ == pytest.approx(model.train_mse_, abs=1e-5)
        assert copy.certificate_["assumed"] == 0
    with pytest.warns(UserWarning, match="learned before"):
        model.partial_fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("width", WIDTHS)
def test_samples_of_weight_zero_are_absent(data, width):
    X, y, weights = data
    weights[y == 1] = 0
    model = LoRanPACClassifier(width=width).fit(X, y, sample_weight=weights)
    assert model.classes_.tolist() == [0, 2] and model.n_samples_seen_ == 40
    expected = LoRanPACClassifier(width=width).fit(X[y != 1], y[y != 1], sample_weight=weights[y != 1])
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    with pytest.raises(ValueError, match="all weights are zero"):
        model.partial_fit(X, y, sample_weight=np.zeros(len(y)))
    assert model.n_samples_seen_ == 40


def test_the_command_line_reads_weights_from_files(data, tmp_path):
    X, y, weights = data
    X = np.asarray(X, dtype=np.float32)

    def run(*arguments):
        subprocess.run([sys.executable, "-m", "loranpac", *map(str, arguments)], check=True, capture_output=True)

    expected = LoRanPACClassifier(width=200).partial_fit(X, y, sample_weight=weights)
    np.savez(tmp_path / "array.npz", x=X, y=y, weight=weights)
    np.savez(tmp_path / "more.npz", x_train=-X[:6], y_train=y[:6], weight_train=weights[:6], x_test=X, y_test=y)
    table = np.column_stack([X, weights])
    header = ",".join([*(f"f{i}" for i in range(X.shape[1])), "w", "label"])
    lines = [",".join(map(repr, row.tolist())) + f",{label}" for row, label in zip(table, y)]
    (tmp_path / "table.csv").write_text("\n".join([header, *lines]))
    for file, options in [("array.npz", []), ("table.csv", ["--weights", "w"])]:
        path = tmp_path / f"{file}.lrp"
        run("init", path, "--dim", X.shape[1], "--width", 200)
        run("learn", path, tmp_path / file, *options)
        np.testing.assert_array_equal(LoRanPACClassifier.load(path).decision_function(X), expected.decision_function(X))
        run("learn", path, tmp_path / "more.npz")
        assert LoRanPACClassifier.load(path).n_samples_seen_ == 66
        run("unlearn", path, tmp_path / "more.npz")
        model = LoRanPACClassifier.load(path)
        np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-3)
        assert model.certificate_["assumed"] == 0


def test_invalid_weights_are_refused(data):
    X, y, weights = data
    for bad in (-1.0, np.nan, np.inf):
        weights[7] = bad
        with pytest.raises(ValueError, match="weight of row 7 is"):
            LoRanPACClassifier(width=50).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="one weight per sample"):
        LoRanPACClassifier(width=50).fit(X, y, sample_weight=weights[:-1])
    with pytest.raises(ValueError, match="sample_weight=given is not possible: only loranpac and loranpac-soft"):
        make("simplecil").fit(X, y, sample_weight=np.full(len(y), 2.0))
