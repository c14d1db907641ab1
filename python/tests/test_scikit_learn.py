"""The conventions of scikit-learn."""

import copy
import importlib
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from loranpac import ContinualClassifier, LoRanPACClassifier, make, methods

# Small, so that hundreds of checks take seconds; nothing else differs from the defaults.
WIDTH = 300


@parametrize_with_checks([LoRanPACClassifier(width=WIDTH), LoRanPACClassifier(width=WIDTH, filter="hard", truncate=0.05)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_check_estimator_with_the_defaults():
    outcomes = check_estimator(LoRanPACClassifier(), on_fail="raise")
    assert not [outcome for outcome in outcomes if outcome["status"] == "xfail"]


def test_pipelines_searches_and_cross_validation():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600], y[:600]
    pipeline = make_pipeline(StandardScaler(), LoRanPACClassifier(width=WIDTH))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85
    search = GridSearchCV(LoRanPACClassifier(filter="hard"), {"width": [50, WIDTH], "truncate": [0.1, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_["width"] == WIDTH
    assert search.predict(X[:5]).shape == (5,)


def test_parameters_survive_cloning():
    model = LoRanPACClassifier(width=7, filter="hard", rank=3, random_state=5)
    assert clone(model).get_params() == model.get_params()
    assert LoRanPACClassifier().set_params(truncate=0.5).truncate == 0.5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_equal_and_independent(blobs, copied):
    model = LoRanPACClassifier(width=WIDTH).partial_fit(*blobs(np.repeat([0, 1, 2], 10)))
    other = copied(model)
    x, _ = blobs(np.arange(8))
    np.testing.assert_array_equal(model.decision_function(x), other.decision_function(x))
    other.partial_fit(*blobs(np.repeat([3, 4], 10)))
    assert list(model.classes_) == [0, 1, 2] and list(other.classes_) == [0, 1, 2, 3, 4]
    model.partial_fit(*blobs(np.repeat([5], 10)))
    assert list(model.classes_) == [0, 1, 2, 5]


def test_labels_keep_their_kind(blobs):
    x, y = blobs(np.repeat([0, 1, 2], 10))
    for labels in (
        y.astype(np.int8),
        y.astype(float),
        np.array(["a", "b", "c"])[y],
        np.array(["a", "b", "c"], object)[y],
    ):
        model = pickle.loads(pickle.dumps(LoRanPACClassifier(width=WIDTH).fit(x, labels)))
        assert model.classes_.dtype == np.unique(labels).dtype
        assert (model.predict(x) == labels).mean() > 0.9
    truth = y > 0
    assert LoRanPACClassifier(width=WIDTH).fit(x, truth).predict(x).dtype == bool


def test_every_method_is_an_estimator():
    X, y = load_digits(return_X_y=True)
    X, y = X / 16, y
    for entry in methods():
        if entry["name"] == "layup" or entry["raw"]:  # they need the features of several layers, or images and texts
            continue
        model = make(entry["name"], width=200)
        assert isinstance(clone(model), ContinualClassifier)
        if entry["continual"]:
            model.partial_fit(X[:500], y[:500]).partial_fit(X[500:1000], y[500:1000])
        else:
            model.fit(X[:1000], y[:1000])
        # Some methods are included because they fail.
        fails = entry["name"].startswith("min-norm") or entry["name"] in ("ogd", "pca-ogd", "or-fit")
        accuracy = model.score(X[1000:], y[1000:])
        assert accuracy > (0.05 if fails else 0.75), (entry["name"], accuracy)


def test_other_methods_cannot_be_pickled(blobs):
    model = make("simplecil").fit(*blobs(np.repeat([0, 1], 10)))
    with pytest.raises(TypeError, match="simplecil|cannot be saved"):
        pickle.dumps(model)


def test_messages_name_the_argument(blobs, tmp_path):
    x, y = blobs(np.repeat([0, 1], 10))
    fit = lambda **parameters: LoRanPACClassifier(**{"width": WIDTH, **parameters}).fit(x, y)  # noqa: E731
    for parameters, message in [
        ({"width": 0}, "width: a whole number of at least 1, float"),
        ({"width": 2.5}, "width: .*2.5"),
        ({"max_rank": 0}, "max_rank: "),
        ({"random_state": -1}, "random_state: "),
        ({"filter": "medium"}, "filter: 'soft' or 'hard' is expected, not 'medium'"),
        ({"schedule": "never"}, "schedule: "),
        ({"truncate": 0.1, "rank": 3}, "at most one of truncate, threshold and rank"),
        ({"truncate": 1.5}, "truncate"),
        ({"truncate": "a lot"}, "truncate: a number is expected"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": "big"}, "ridge: a number or 'loo' is expected"),
        ({"rank": 2.7}, "rank: a whole number"),
        ({"gamma": "x"}, "gamma: a number is expected"),
        ({"n_jobs": 0}, "n_jobs: a whole number other than 0"),
        ({"n_jobs": "2"}, "n_jobs: "),
        ({"n_jobs": 10**9}, "n_jobs: at most .* threads are expected on .* cores"),
        ({"lift": "magic"}, "magic"),
        ({"width": float("nan")}, "width: a whole number"),
        ({"width": "wide"}, "width: a whole number"),
        ({"encoder": 3}, "encoder: an Encoder, a name, a path or None is expected, not 3"),
        ({"encoder": ""}, "encoder: an Encoder, a name, a path or None is expected, not ''"),
        ({"verbose": -1}, "verbose: 0, 1 or 2 is expected"),
        ({"verbose": "yes"}, "verbose: 0, 1 or 2 is expected"),
        ({"schedule": "paper"}, "soft filter never cuts"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(**parameters)
    with pytest.raises(ValueError, match="method: one of loranpac, .* is expected, not 'magic'"):
        make("magic")
    with pytest.raises(TypeError, match="ranpac has no parameter 'depth'"):
        make("ranpac", depth=3)
    with pytest.raises(NotFittedError):
        LoRanPACClassifier().predict(x)
    model = LoRanPACClassifier(width=WIDTH).fit(x, y)
    with pytest.raises(ValueError, match="X has 3 features, but LoRanPACClassifier is expecting 12"):
        model.predict(x[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full_like(x, np.nan), y)
    with pytest.raises(ValueError, match="y: some labels are texts"):
        model.partial_fit(x, np.where(y == 0, "a", "b"))
    with pytest.raises(ValueError, match=r"y: the labels 1 are not in classes=0, 7"):
        model.partial_fit(x, y, classes=[0, 7])
    with pytest.raises(ValueError, match="there is no class|unknown|nine"):
        model.forget("nine")
    with pytest.raises(ValueError, match="the name of a model ends with .lrp"):
        model.save(tmp_path / "model")
    with pytest.raises(FileNotFoundError, match="no such model"):
        LoRanPACClassifier.load(tmp_path / "absent.lrp")
    with pytest.raises(ValueError, match="y: some labels are texts"):
        model.rename(1, "one")
    with pytest.raises(ValueError, match="y: some labels are texts"):
        model.merge(LoRanPACClassifier(width=WIDTH).fit(x, np.where(y == 0, "a", "b")))
    with pytest.raises(ValueError, match="y: some labels are texts"):
        LoRanPACClassifier(width=WIDTH).fit(x, np.array(["a", 1] * 10, dtype=object))
    with pytest.raises(ValueError, match="labels 0, 1 are not in classes='0', '1'"):
        model.partial_fit(x, y, classes=["0", "1"])
    with pytest.raises(ValueError, match=r"y: whole numbers below 2\*\*63"):
        model.partial_fit(x, y.astype(np.uint64) + np.uint64(2**63))
    with pytest.raises(ValueError, match="filter: 'hard' is expected"):
        make("loranpac", filter="soft")
    with pytest.raises(ValueError, match="ends with .onnx"):
        model.to_onnx(tmp_path / "model.pb")
    with pytest.raises(TypeError, match="other: a fitted LoRanPACClassifier is expected"):
        model.merge(3)
    # None of these calls has changed the model.
    assert list(model.classes_) == [0, 1] and model.n_samples_seen_ == 20
    with pytest.raises(ValueError, match="truncate"):
        model.set_params(truncate=7.0).fit(x[:, :5], y)
    assert model.predict(x).shape == (20,) and model.n_features_in_ == 12


def test_attributes_exist_once_something_has_been_learned(blobs):
    model = LoRanPACClassifier(width=WIDTH)
    for name in ("classes_", "train_mse_", "certificate_", "verdict_", "n_samples_seen_", "class_count_"):
        assert not hasattr(model, name)
    model.fit(*blobs(np.repeat([0, 1], 10)))
    assert model.n_features_in_ == 12 and model.n_samples_seen_ == 20
    assert list(model.class_count_) == [10, 10]
    assert model.certificate_["lost"] == 0.0
    assert "nothing" in model.verdict_
    assert make("simplecil").fit(*blobs([0, 1])).n_samples_seen_ == 2
    assert not hasattr(make("simplecil").fit(*blobs([0, 1])), "train_mse_")


@pytest.mark.parametrize("width", [1e2, np.float64(100), np.int32(100)])
def test_whole_numbers_of_any_type_are_widths(blobs, width):
    x, y = blobs(np.repeat([0, 1], 10))
    expected = LoRanPACClassifier(width=100).fit(x, y).decision_function(x)
    np.testing.assert_array_equal(LoRanPACClassifier(width=width).fit(x, y).decision_function(x), expected)


def test_a_pickle_without_newer_parameters_is_read(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = LoRanPACClassifier(width=100).fit(x, y)
    state = model.__getstate__()
    del state["encoder"], state["verbose"]
    old = LoRanPACClassifier.__new__(LoRanPACClassifier)
    old.__setstate__(state)
    assert old.get_params() == model.get_params()
    assert old.partial_fit(x + 1, y).n_samples_seen_ == 40
    # The module of the classes in pickles of version 0.1.0.
    assert importlib.import_module("loranpac._estimators").LoRanPACClassifier is LoRanPACClassifier
