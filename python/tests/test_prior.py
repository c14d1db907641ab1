"""Priors: scores of classes of different sizes, in every form of an estimator."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score, f1_score

import loranpac
from loranpac import LoRanPACClassifier


def unequal():
    """Digits, of which class c keeps 4 + 12 c training samples."""
    X, y = load_digits(return_X_y=True)
    rows = [row for c in range(10) for row in np.flatnonzero(y[:1200] == c)[: 4 + 12 * c]]
    return X[rows], y[rows], X[1200:], y[1200:]


def factors(sizes, prior):
    """The equation, computed independently."""
    n = np.asarray(sizes, dtype=float)
    pi = {"uniform": np.ones_like(n), "train": n}[prior] if isinstance(prior, str) else np.array([prior[c] for c in range(10)])
    raw = pi**0.15 / n**0.4
    return raw / np.exp(np.log(raw).mean())


@pytest.mark.parametrize("width", [300, float("inf")])
@pytest.mark.parametrize("prior", ["uniform", "train", {c: 1.0 + c for c in range(10)}])
def test_scores_are_those_of_least_squares_times_the_factors(width, prior):
    X, y, new, _ = unequal()
    plain = LoRanPACClassifier(width=width).fit(X, y)
    model = LoRanPACClassifier(width=width, prior=prior).fit(X, y)
    expected = plain.decision_function(new) * factors(plain.class_count_, prior)
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-5, atol=1e-6)
    assert model.train_mse_ == plain.train_mse_


def test_the_parameter_can_change_after_fit():
    X, y, new, truth = unequal()
    model = LoRanPACClassifier(width=300).fit(X, y)
    plain = model.predict(new)
    model.set_params(prior="uniform")
    fair = model.predict(new)
    assert balanced_accuracy_score(truth, fair) > balanced_accuracy_score(truth, plain)
    np.testing.assert_array_equal(fair, LoRanPACClassifier(width=300, prior="uniform").fit(X, y).predict(new))
    assert model.score(new, truth) == (fair == truth).mean()
    model.prior = "none"
    np.testing.assert_array_equal(model.predict(new), plain)


def test_a_prior_survives_clones_pickles_and_disks(tmp_path):
    X, y, new, _ = unequal()
    for prior in ["train", "uniform", {c: 1.0 + c for c in range(10)}]:
        model = LoRanPACClassifier(width=300, prior=prior).fit(X, y)
        assert clone(model).prior == prior
        expected = model.predict_proba(new)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(new), expected)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.lrp"
        model.save(path)
        loaded = LoRanPACClassifier.load(path)
        assert loaded.prior == prior
        np.testing.assert_array_equal(loaded.predict_proba(new), expected)


def test_bad_priors_are_refused_by_name():
    X, y, new, _ = unequal()
    for prior in ["equal", None, 3, {0: -1.0}, {0: "a"}]:
        with pytest.raises(ValueError, match="prior"):
            LoRanPACClassifier(width=50, prior=prior).fit(X, y)
    with pytest.raises(ValueError, match="lacks 9 classes"):
        LoRanPACClassifier(width=50, prior={0: 1.0}).fit(X, y).predict(new)


def test_runs_report_what_scikit_learn_computes():
    X, y, new, truth = unequal()
    result = loranpac.bench.run((X, y, new, truth), "loranpac-soft", width=300, scenario="joint", prior="uniform")
    (run,) = result.runs
    model = LoRanPACClassifier(width=300, prior="uniform").fit(X, y)
    answers = model.predict(new)
    assert run["balanced_accuracy"] == pytest.approx(100 * balanced_accuracy_score(truth, answers), abs=0.5)
    assert run["macro_f1"] == pytest.approx(100 * f1_score(truth, answers, average="macro"), abs=0.5)
    recall = np.array([(answers[truth == c] == c).mean() for c in range(10)])
    sizes = model.class_count_
    groups = {"many": sizes > 100, "medium": (sizes >= 20) & (sizes <= 100), "few": sizes < 20}
    for name, chosen in groups.items():
        assert run["group_accuracy"][name] == pytest.approx(100 * recall[chosen].mean(), abs=1.0), name


def test_a_long_tail_keeps_the_first_samples():
    X, y = load_digits(return_X_y=True)
    result = loranpac.bench.run((X, y, X[:300], y[:300]), "simplecil", inc=5, per_class=100, long_tail=20)
    (run,) = result.runs
    sizes = [int(100 * 20 ** (-i / 9) + 1e-9) for i in range(10)]
    assert run["dataset"]["train"] == sum(sizes)
    assert [task["samples_seen"] for task in run["tasks"]] == [sum(sizes[:5]), sum(sizes)]
