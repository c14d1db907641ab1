"""Edits of models: their results, and that they are idempotent."""

import copy
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from loranpac import LoRanPACClassifier, make

from common import largest

INF = float("inf")
WIDTH = 401
ALREADY = "already applied; nothing has changed"

both_widths = pytest.mark.parametrize("width", [WIDTH, INF])


def assert_alike(one, other, x):
    a, b = one.decision_function(x), other.decision_function(x)
    np.testing.assert_array_equal(one.classes_, other.classes_)
    assert largest(a - b) < 1e-3 * largest(a)


def model_of(width, *tasks, **parameters):
    model = LoRanPACClassifier(width=width, ridge=0.2, **parameters)
    for task in tasks:
        model.partial_fit(*task)
    return model


EDITS = {
    "forget": lambda model, x, y: model.forget(2),
    "rename": lambda model, x, y: model.rename(2, 9),
    "unlearn": lambda model, x, y: model.unlearn(x, y),
    "relabel": lambda model, x, y: model.relabel(x, y, 0),
}


@both_widths
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_second_identical_edit_changes_nothing_and_warns(blobs, tmp_path, width, edit):
    first, second = blobs(np.repeat([0, 1], 15)), blobs(np.repeat([2], 9))
    model = model_of(width, first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edit(model, *second)
    scores, classes, samples = model.decision_function(first[0]), list(model.classes_), model.n_samples_seen_
    model.save(tmp_path / "m.lrp")
    for again in (model, copy.deepcopy(model), LoRanPACClassifier.load(tmp_path / "m.lrp")):
        with pytest.warns(UserWarning, match=ALREADY):
            edit(again, *second)
        assert list(again.classes_) == classes and again.n_samples_seen_ == samples
        np.testing.assert_array_equal(again.decision_function(first[0]), scores)


@both_widths
def test_samples_that_were_learned_twice_are_unlearned_twice_on_request(blobs, width):
    first, second = blobs(np.repeat([0, 1], 15)), blobs(np.repeat([1, 2], 6))
    once, none = model_of(width, first, second), model_of(width, first)
    model = model_of(width, first, second)
    with pytest.warns(UserWarning, match="learned before"):
        model.partial_fit(*second)
    assert_alike(model.unlearn(*second), once, first[0])
    with pytest.warns(UserWarning, match="again=True applies it once more"):
        model.unlearn(*second)
    assert_alike(model, once, first[0])
    assert_alike(model.unlearn(*second, again=True), none, first[0])


@both_widths
def test_samples_that_were_learned_twice_are_relabelled_twice_on_request(blobs, width):
    x, y = blobs(np.repeat([0, 1], 15))
    wrong, labels = blobs(np.repeat([0], 6))
    model = model_of(width, (x, y), (wrong, labels + 1))
    with pytest.warns(UserWarning, match="learned before"):
        model.partial_fit(wrong, labels + 1)
    model.relabel(wrong, labels + 1, 0).relabel(wrong, labels + 1, 0, again=True)
    assert_alike(model, model_of(width, (x, y), (np.tile(wrong, (2, 1)), np.tile(labels, 2))), x)


@both_widths
def test_edits_are_possible_again_after_the_samples_were_learned_again(blobs, width):
    first, second = blobs(np.repeat([0, 1], 15)), blobs(np.repeat([2], 6))
    model = model_of(width, first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.unlearn(*second).partial_fit(*second).unlearn(*second)
        model.partial_fit(*second).relabel(*second, 0)
        model.partial_fit(*second).forget(2)
    assert list(model.classes_) == [0, 1]


@both_widths
def test_a_class_that_never_existed_is_refused(blobs, width):
    x, y = blobs(np.repeat([0, 1, 2], 10))
    model = model_of(width, (x, y)).forget(1)
    before = model.decision_function(x)
    for refused in (
        lambda: model.forget(7),
        lambda: model.rename(7, 8),
        lambda: model.rename(1, 8),
        lambda: model.rename(0, 2),
        lambda: model.unlearn(x[:3], [7, 7, 7]),
        lambda: model.relabel(x[:3], [7, 7, 7], 0),
    ):
        with pytest.raises(ValueError, match="class"):
            refused()
    assert list(model.classes_) == [0, 2]
    np.testing.assert_array_equal(model.decision_function(x), before)


@both_widths
def test_relabelling_is_learning_under_the_right_labels(blobs, width):
    x, y = blobs(np.repeat([0, 1, 2], 12))
    mistaken = np.where(np.arange(36) % 4 == 0, 3, y)
    wrong = mistaken != y
    right, test = model_of(width, (x, y)), blobs(np.arange(30) % 3)[0]
    # An array of labels, with which a class ends; then one label, for a class that is new.
    model = model_of(width, (x, mistaken)).relabel(x[wrong], mistaken[wrong], y[wrong])
    assert_alike(model, right, test)
    assert list(model.class_count_) == [12, 12, 12] and "exact" in model.verdict_
    model.relabel(x[y == 2], y[y == 2].tolist(), 6)
    assert_alike(model, model_of(width, (x, np.where(y == 2, 6, y))), test)


def test_texts_are_relabelled_and_renamed(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    names = np.array(["no", "yes"])[y]
    model = model_of(WIDTH, (x, names)).relabel(x[:4], names[:4], "perhaps").rename("yes", "certainly")
    assert list(model.classes_) == ["certainly", "no", "perhaps"]
    assert list(model.class_count_) == [10, 6, 4]
    with pytest.raises(ValueError, match="texts and some are numbers"):
        model.relabel(x[4:6], names[4:6], 7)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.relabel(x[4:6], names[4:6], ["a", "b", "c"])
    assert list(model.class_count_) == [10, 6, 4]


def test_relabelling_again_does_not_bring_a_class_back(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = model_of(WIDTH, (x, y)).relabel(x[:4], y[:4], 5).forget(5)
    with pytest.warns(UserWarning, match=ALREADY):
        model.relabel(x[:4], y[:4], 5)
    assert list(model.classes_) == [0, 1]


def test_declared_classes_stay_when_samples_are_relabelled(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = LoRanPACClassifier(width=WIDTH).partial_fit(x, y, classes=[0, 1, 2, 3])
    assert list(model.relabel(x[y == 0], y[y == 0], 3).classes_) == [1, 2, 3]


def test_samples_that_cannot_be_checked_end_exactness(blobs, tmp_path):
    # More samples than directions: the features prove nothing.
    x, y = blobs(np.arange(120) % 3)
    for edit in (
        lambda model: model.unlearn(x[:3] + 0.01, y[:3]),
        lambda model: model.relabel(x[:3] + 0.01, y[:3], 1),
    ):
        model = model_of(15, (x, y))
        assert "exact" in model.verdict_
        with pytest.warns(UserWarning, match="could not check that 3 of the samples .* training error is no longer exact"):
            edit(model)
        model.save(tmp_path / "m.lrp", overwrite=True)
        for read in (model, LoRanPACClassifier.load(tmp_path / "m.lrp")):
            assert "exact" not in read.verdict_ and read.certificate_["assumed"] == 3


def test_the_samples_of_one_call_stay_exact(blobs):
    first, second = blobs(np.arange(90) % 3), blobs(np.arange(30) % 3)
    model = model_of(15, first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.relabel(*second, 1).unlearn(second[0], np.ones(30, int))
    assert "exact" in model.verdict_ and model.certificate_["assumed"] == 0
    assert_alike(model, model_of(15, first), first[0])


def test_samples_that_were_never_learned_are_refused_where_the_features_prove_it(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = model_of(WIDTH, (x, y))
    before = model.decision_function(x)
    for refused in (
        lambda: model.unlearn(x[:2] + 1, y[:2]),
        lambda: model.unlearn(x[:2], y[:2] + 1),
        lambda: model.relabel(x[:2] + 1, y[:2], 5),
        lambda: model.relabel(x[:2], y[:2] + 1, 5),
    ):
        with pytest.raises(ValueError):
            refused()
    np.testing.assert_array_equal(model.decision_function(x), before)
    assert list(model.classes_) == [0, 1] and model.n_samples_seen_ == 20


def test_other_methods_cannot_be_edited(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = make("simplecil").fit(x, y)
    for name, edit in [("forget", lambda: model.forget(1)), ("relabel", lambda: model.relabel(x[:1], y[:1], 1))]:
        with pytest.raises(TypeError, match=f"cannot {name}"):
            edit()
    with pytest.raises(NotFittedError):
        LoRanPACClassifier().relabel(x, y, 1)
