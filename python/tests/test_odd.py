"""Unusual sizes and samples: results are finite, and the same after saving and loading."""

import copy
import pickle

import numpy as np
import pytest

from loranpac import LoRanPACClassifier

INF = float("inf")
DIM = 9

LIFTS = {
    "30": {"width": 30},
    "31": {"width": 31},
    "401": {"width": 401, "filter": "hard"},
    "identity": {"lift": "identity"},
    "abs-random": {"lift": "abs-random", "width": 30},
    "inf": {"width": INF},
    "inf, half": {"width": INF, "half": True},
}
every_lift = pytest.mark.parametrize("parameters", LIFTS.values(), ids=LIFTS)


def samples(seed, labels, dim=DIM):
    return np.random.default_rng(seed).normal(size=(len(labels), dim)).astype(np.float32), np.asarray(labels)


def assert_survives(model, folder):
    """The loaded model is the same, and can be taught, merged, edited and saved again."""
    x, _ = samples(99, np.zeros(7), model.n_features_in_)
    expected = model.decision_function(x)
    assert np.isfinite(expected).all() and np.isfinite(model.train_mse_) and np.isfinite(model.spectrum()).all()
    model.save(folder)
    copies = [LoRanPACClassifier.load(folder), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for other in copies:
        np.testing.assert_array_equal(other.classes_, model.classes_)
        np.testing.assert_array_equal(other.decision_function(x), expected)
        assert other.n_samples_seen_ == model.n_samples_seen_ and other.verdict_ == model.verdict_
    more = samples(98, [0, 1, 50, 51], model.n_features_in_)
    read = copies[0].partial_fit(*more).save(folder)
    np.testing.assert_array_equal(
        LoRanPACClassifier.load(folder).decision_function(x), model.partial_fit(*more).decision_function(x)
    )
    assert np.isfinite(read.decision_function(x)).all()
    assert np.isfinite(copies[1].merge(copies[2], again=True).decision_function(x)).all()


@every_lift
@pytest.mark.parametrize("classes", [1, 3, 5])
def test_odd_sizes_survive(tmp_path, parameters, classes):
    model = LoRanPACClassifier(**parameters).partial_fit(*samples(0, np.arange(7 * classes) % classes))
    assert_survives(model, tmp_path / "m.lrp")


@every_lift
def test_odd_sizes_survive_task_by_task(tmp_path, parameters):
    folder = tmp_path / "m.lrp"
    model, whole = LoRanPACClassifier(**parameters), LoRanPACClassifier(**parameters)
    for task in range(4):
        lesson = samples(task, np.repeat([task, task + 1, task + 2], 1 + task))
        model.partial_fit(*lesson).save(folder)
        model = LoRanPACClassifier.load(folder)
        whole.partial_fit(*lesson)
    x, _ = samples(99, np.zeros(7))
    a, b = model.decision_function(x), whole.decision_function(x)
    assert np.abs(a - b).max() < 1e-3 * np.abs(a).max()


@every_lift
def test_one_class_is_left(tmp_path, parameters):
    model = LoRanPACClassifier(**parameters).partial_fit(*samples(0, np.arange(21) % 3)).forget(0).forget(2)
    assert list(model.classes_) == [1] and (model.predict(samples(1, np.zeros(5))[0]) == 1).all()
    assert_survives(model, tmp_path / "m.lrp")


ODD = {
    "zeros": np.zeros((3, DIM), np.float32),
    "tiny": np.full((3, DIM), 1e-37, np.float32),
    "equal": np.tile(np.eye(DIM, dtype=np.float32)[2], (2, 1)),
}


@every_lift
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("first", [False, True])
def test_samples_without_a_direction_of_their_own_survive(tmp_path, parameters, odd, first):
    tasks = [samples(0, np.arange(5) % 3), (odd, np.arange(len(odd)))]
    model = LoRanPACClassifier(**parameters)
    for task in reversed(tasks) if first else tasks:
        model.partial_fit(*task)
    with pytest.warns(UserWarning, match="learned before"):
        # The second time, nothing at all is new.
        model.partial_fit(*tasks[1])
    assert_survives(model, tmp_path / "m.lrp")


@every_lift
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_nothing_but_odd_samples_survives(tmp_path, parameters, odd):
    model = LoRanPACClassifier(**parameters).partial_fit(odd, np.arange(len(odd)))
    assert_survives(model, tmp_path / "m.lrp")


@pytest.mark.parametrize("dim", [8, 9])
@pytest.mark.parametrize("lift", ["identity", "relu-random"])
def test_equal_one_hot_rows_survive(tmp_path, dim, lift):
    # Under the identity nothing at all is left of the second one, not even a rounding error.
    row = np.eye(dim, dtype=np.float32)[[2]]
    model = LoRanPACClassifier(width=dim, lift=lift).partial_fit(row, [0]).partial_fit(np.tile(row, (2, 1)), [1, 1])
    assert_survives(model, tmp_path / "m.lrp")


@every_lift
@pytest.mark.parametrize("count", [1, 3])
def test_models_of_the_same_few_samples_are_merged_and_written(tmp_path, parameters, count):
    x, y = samples(0, np.arange(count))
    models = [LoRanPACClassifier(**parameters).fit(x, y) for _ in range(5)]
    merged = models[0].merge(models[1:], again=True)
    assert merged.n_samples_seen_ == 5 * count
    assert_survives(merged, tmp_path / "m.lrp")


@pytest.mark.parametrize("dim", [8, 9])
def test_models_of_the_same_one_hot_rows_are_merged_and_written(tmp_path, dim):
    x = np.eye(dim, dtype=np.float32)[:3]
    models = [LoRanPACClassifier(lift="identity").fit(x, [0, 1, 2]) for _ in range(3)]
    assert_survives(models[0].merge(models[1:], again=True), tmp_path / "m.lrp")
