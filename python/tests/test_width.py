"""Automatic widths of estimators."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from loranpac import LoRanPACClassifier, bench, make

INF = float("inf")


def samples(count, classes=3, dim=4):
    rng = np.random.default_rng(count)
    return rng.normal(size=(count, dim)).astype(np.float32), np.arange(count) % classes


def test_the_width_follows_the_samples_of_the_first_call_and_then_stays():
    model = LoRanPACClassifier()
    assert model.width == "auto" and not hasattr(model, "width_")
    model.fit(*samples(30))
    assert model.width == "auto" and model.width_ == 10_000
    assert model.width_choice_ == "width 10000, chosen for 30 samples: at least 3 times as many"
    model.partial_fit(*samples(2_400))
    assert model.width_ == 10_000
    assert model.fit(*samples(2_400)).width_ == 12_000


def test_expected_samples_and_samples_that_may_be_kept():
    assert LoRanPACClassifier(expected_samples=2_600).partial_fit(*samples(30)).width_ == 13_000
    assert LoRanPACClassifier(expected_samples=20).fit(*samples(30)).width_choice_.startswith("width 10000, chosen for 30 ")
    kept = LoRanPACClassifier(keep_samples=True).fit(*samples(30))
    assert kept.width_ == INF and kept.leave_one_out_ >= 0
    assert LoRanPACClassifier(keep_samples=True, lift="fourier").fit(*samples(30)).width_ == 10_000
    assert make("ogd", keep_samples=True).fit(*samples(30)).width_ == 10_000
    assert LoRanPACClassifier(lift="identity").fit(*samples(30)).width_ == 4


def test_widths_that_are_given_are_not_chosen():
    for width in (50, INF):
        model = LoRanPACClassifier(width=width, keep_samples=True).fit(*samples(30))
        assert model.width_ == width
        with pytest.raises(AttributeError, match="given"):
            _ = model.width_choice_


def test_saved_copied_and_pickled_models_have_the_width_that_was_chosen(tmp_path):
    model = LoRanPACClassifier(expected_samples=2_600).fit(*samples(30))
    model.save(tmp_path / "m.lrp")
    loaded = LoRanPACClassifier.load(tmp_path / "m.lrp")
    assert loaded.width == loaded.width_ == 13_000 and loaded.width_choice_ == model.width_choice_
    assert pickle.loads(pickle.dumps(model)).width_ == 13_000
    assert clone(model).width == "auto"


@pytest.mark.parametrize("parameters", [{"width": "wide"}, {"expected_samples": 0}, {"expected_samples": 1.5}, {"keep_samples": 1}])
def test_what_cannot_be_a_width_is_refused(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        LoRanPACClassifier(**parameters).fit(*samples(30))


def test_a_width_close_to_the_samples_is_warned_of():
    assert "close to the number of samples" in LoRanPACClassifier(width=50).fit(*samples(60)).verdict_
    assert "close to" not in LoRanPACClassifier(width=200).fit(*samples(60)).verdict_


def test_experiments_choose_a_width_and_record_it():
    result = bench.run("digits", ["loranpac-soft", "ogd"], per_class=2, inc=10, eval="final", keep_samples=True)
    soft, ogd = (run["config"] for run in result.runs)
    assert soft["spec"]["width"] == "infinite" and soft["width_choice"]["reason"] == "kept"
    assert ogd["lift"]["width"] == 10_000 and ogd["width_choice"]["samples"] == 20
