"""Infinite width: the kernel form against scikit-learn's kernel ridge regression, and the conventions of estimators."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import check_estimator

from loranpac import LoRanPACClassifier, bench, make

from common import largest

INF = float("inf")


def kernel(x, z):
    """The arc-cosine kernel of order one, after Cho and Saul, in double precision."""
    a, b = (np.linalg.norm(v.astype(np.float64), axis=1) for v in (x, z))
    angle = np.arccos(np.clip(x.astype(np.float64) @ z.T.astype(np.float64) / np.outer(a, b), -1, 1))
    return np.outer(a, b) * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)


def test_it_is_kernel_ridge_regression(blobs):
    x, y = blobs(np.arange(90) % 5)
    test, _ = blobs(np.arange(40) % 5)
    model = LoRanPACClassifier(width=INF, ridge=0.3).partial_fit(x[:50], y[:50]).partial_fit(x[50:], y[50:])
    ridge = KernelRidge(alpha=0.3, kernel="precomputed").fit(kernel(x, x), np.eye(5)[y])
    expected = ridge.predict(kernel(test, x))
    found = model.decision_function(test)
    assert largest(found - expected) < 1e-5 * largest(expected)
    assert model.n_samples_seen_ == 90 and model.predict_proba(test).shape == (40, 5)


def test_leave_one_out_is_scikit_learns(blobs):
    x, y = blobs(np.arange(60) % 3)
    y = np.where(np.arange(60) % 4 == 0, 1, y)  # too easy otherwise
    model = LoRanPACClassifier(width=INF, ridge=0.1).fit(x, y)
    ridge = KernelRidge(alpha=0.1, kernel="precomputed")
    left_out = cross_val_predict(ridge, kernel(x, x), np.eye(3)[y], cv=LeaveOneOut())
    expected = np.mean(left_out.argmax(axis=1) == y)
    assert 0.3 < expected < 1
    assert model.leave_one_out_ == pytest.approx(expected, abs=1e-12)
    chosen = LoRanPACClassifier(width=INF, ridge="loo").fit(x, y)
    assert chosen.leave_one_out_ >= expected
    with pytest.raises(AttributeError, match="width=inf"):
        _ = LoRanPACClassifier(width=50).fit(x, y).leave_one_out_


def test_check_estimator_at_infinite_width():
    check_estimator(LoRanPACClassifier(width=INF))


def test_it_is_written_read_copied_merged_and_edited(blobs, tmp_path):
    x, y = blobs(np.arange(80) % 4)
    test, _ = blobs(np.arange(20) % 4)
    whole = LoRanPACClassifier(width=INF, ridge="loo", half=True).fit(x, y)
    expected = whole.decision_function(test)
    whole.save(tmp_path / "m.lrp")
    read = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert {**read.get_params(), "gamma": None} == whole.get_params()
    for other in (read, pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        np.testing.assert_array_equal(other.decision_function(test), expected)
        assert other.leave_one_out_ == whole.leave_one_out_
    parts = [LoRanPACClassifier(width=INF, ridge=0.2).fit(x[y % 2 == k], y[y % 2 == k]) for k in (0, 1)]
    together = LoRanPACClassifier(width=INF, ridge=0.2).fit(x, y)
    merged = parts[0].merge(parts[1])
    assert largest(merged.decision_function(test) - together.decision_function(test)) < 1e-5 * largest(expected)
    never = LoRanPACClassifier(width=INF, ridge=0.2).fit(x[y != 3], y[y != 3])
    for changed in (merged.forget(3), together.unlearn(x[y == 3], y[y == 3])):
        assert largest(changed.decision_function(test) - never.decision_function(test)) < 1e-5 * largest(expected)
    assert (never.novelty(-test) > never.novelty(x[:20])).mean() > 0.9


def test_a_cap_keeps_what_matters(blobs):
    x, y = blobs(np.arange(400) % 4)
    test, truth = blobs(np.arange(100) % 4)
    model = LoRanPACClassifier(width=INF, max_rank=100)
    for part in range(4):
        model.partial_fit(x[part::4], y[part::4])
    assert model.certificate_["capped"] == 0  # within the slack of a chunk
    capped = LoRanPACClassifier(width=INF, max_rank=40).fit(np.tile(x, (2, 1)), np.tile(y, 2))
    assert capped.certificate_["capped"] > 0 and capped.n_samples_seen_ == 800
    assert capped.score(test, truth) > 0.9


def test_other_methods_and_lifts_have_no_infinite_width(blobs):
    x, y = blobs(np.arange(20) % 2)
    with pytest.raises(ValueError, match="width=infinite"):
        make("ranpac", width=INF).fit(x, y)
    with pytest.raises(ValueError, match="the limit of fourier is not known"):
        LoRanPACClassifier(width=INF, lift="fourier").fit(x, y)
    with pytest.raises(ValueError, match="width: a whole number of at least 1, float"):
        LoRanPACClassifier(width=float("nan")).fit(x, y)
    with pytest.raises(ValueError, match="ridge=loo"):
        LoRanPACClassifier(width=50, ridge="loo").fit(x, y)
    with pytest.raises(ValueError, match="cannot be exported"):
        LoRanPACClassifier(width=INF).fit(x, y).to_onnx("model.onnx")
    with pytest.raises(ValueError, match="infinitely many"):
        LoRanPACClassifier(width=INF).fit(x, y).lifted(x)


def test_runs_report_that_samples_are_kept():
    result = bench.run("digits", ["loranpac-soft"], inc=5, width=INF, per_class=20, eval="final")
    assert result.runs[0]["exemplar_free"] is False and result.runs[0]["config"]["lift"]["width"] is None
    assert result.runs[0]["final_accuracy"] > 80
