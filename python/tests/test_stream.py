"""Learning task by task, predictions and edits."""

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, make

from common import largest

WIDTH = 400


def test_new_classes_at_any_call(blobs, model):
    assert list(model.classes_) == [2, 4]
    model.partial_fit(*blobs(np.repeat([0, 2, 7], 15)))
    assert list(model.classes_) == [0, 2, 4, 7]
    x, y = blobs(np.tile([0, 2, 4, 7], 25))
    assert model.score(x, y) > 0.95
    assert model.decision_function(x).shape == (100, 4)
    probabilities = model.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(x))


def test_tasks_give_what_one_batch_gives(blobs):
    x, y = blobs(np.arange(240) % 8)
    at_once = LoRanPACClassifier(width=WIDTH).fit(x, y)
    in_tasks = LoRanPACClassifier(width=WIDTH)
    for part in np.split(np.argsort(y, kind="stable"), 6):
        in_tasks.partial_fit(x[part], y[part])
    test, _ = blobs(np.arange(80) % 8)
    a, b = at_once.decision_function(test), in_tasks.decision_function(test)
    assert largest(a - b) < 1e-4 * largest(a)


def test_two_classes_have_one_score(blobs, model):
    x, y = blobs(np.tile([2, 4], 20))
    scores = model.decision_function(x)
    assert scores.shape == (40,)
    np.testing.assert_array_equal(model.predict(x), np.where(scores > 0, 4, 2))


def test_declared_classes_wait_for_their_samples(blobs):
    model = LoRanPACClassifier(width=WIDTH).partial_fit(*blobs(np.repeat([1, 3], 10)), classes=[1, 2, 3])
    x, _ = blobs([1, 2, 3])
    assert list(model.classes_) == [1, 2, 3]
    assert np.isneginf(model.decision_function(x)[:, 1]).all()
    assert (model.predict_proba(x)[:, 1] == 0).all() and 2 not in model.predict(x)
    model.partial_fit(*blobs(np.repeat([2], 10)))
    assert np.isfinite(model.decision_function(x)).all()


def test_declared_classes_stay_when_others_go(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = LoRanPACClassifier(width=WIDTH).partial_fit(x, y, classes=[0, 1, 2, 3])
    assert list(model.forget(0).classes_) == [1, 2, 3]


def test_large_labels_of_several_kinds_stay_apart(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = LoRanPACClassifier(width=WIDTH).partial_fit(x, y + 2**60)
    model.partial_fit(x + 1, (y + 2**60 + 3).astype(np.uint64))
    assert model.classes_.tolist() == [2**60, 2**60 + 1, 2**60 + 3, 2**60 + 4]


def test_a_call_is_a_task_in_the_paper_schedule(blobs):
    x, y = blobs(np.arange(5000) % 8)
    model = LoRanPACClassifier(width=50, filter="hard", schedule="paper").partial_fit(x, y)
    assert model.certificate_["cuts"] == 0
    assert model.partial_fit(x[:100] + 1, y[:100]).certificate_["cuts"] == 1


def test_a_temperature_goes_with_what_it_was_fitted_to(blobs):
    x, y = blobs(np.repeat([0, 1, 2], 10))
    model = LoRanPACClassifier(width=WIDTH).fit(x, y).calibrate(x + 0.1, y)
    assert hasattr(model, "temperature_")
    assert not hasattr(model.fit(x, y), "temperature_")


def test_the_same_samples_twice_are_noticed(blobs):
    x, y = blobs(np.repeat([0, 1], 10))
    model = LoRanPACClassifier(width=WIDTH).partial_fit(x, y)
    with pytest.warns(UserWarning, match="learned before"):
        model.partial_fit(x, y)
    assert model.n_samples_seen_ == 40


def test_a_failed_call_changes_nothing(blobs, model):
    x, _ = blobs(np.arange(8))
    before = model.decision_function(x)
    bad, labels = blobs(np.repeat([5], 10))
    bad[7, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(bad, labels)
    assert list(model.classes_) == [2, 4]
    np.testing.assert_array_equal(model.decision_function(x), before)
    fresh = LoRanPACClassifier(width=WIDTH)
    with pytest.raises(ValueError):
        fresh.partial_fit(bad, labels)
    assert not hasattr(fresh, "classes_")


def test_merging_is_learning_everything(blobs):
    sites = [blobs(np.repeat([i, i + 1, 7], 12)) for i in range(4)]
    together = LoRanPACClassifier(width=WIDTH)
    models = []
    for x, y in sites:
        together.partial_fit(x, y)
        models.append(LoRanPACClassifier(width=WIDTH).fit(x, y))
    merged = models[0].merge(models[1:])
    assert list(merged.classes_) == list(together.classes_) and merged.n_samples_seen_ == 144
    x, _ = blobs(np.arange(64) % 8)
    a, b = together.decision_function(x), merged.decision_function(x)
    assert largest(a - b) < 1e-4 * largest(a)
    with pytest.raises(ValueError, match="learned by another"):
        merged.merge(models[1])
    with pytest.raises(ValueError, match="different lifts"):
        merged.merge(LoRanPACClassifier(width=WIDTH, random_state=1).fit(*sites[0]))
    with pytest.raises(ValueError, match="different settings"):
        merged.merge(LoRanPACClassifier(width=WIDTH, ridge=3.0).fit(*sites[0]))
    for others in (merged, [models[1], models[1]]):
        with pytest.raises(ValueError, match="itself"):
            merged.merge(others, again=True)


def test_forgetting_renaming_and_unlearning(blobs):
    x, y = blobs(np.repeat([0, 1, 2], 15))
    extra, labels = blobs(np.repeat([1, 6], 10))
    plain = LoRanPACClassifier(width=WIDTH).fit(x, y)
    model = LoRanPACClassifier(width=WIDTH).partial_fit(x, y).partial_fit(extra, labels)
    model.unlearn(extra, labels)
    assert list(model.classes_) == [0, 1, 2]
    a, b = plain.decision_function(x), model.decision_function(x)
    assert largest(a - b) < 1e-3 * largest(a)
    with pytest.raises(ValueError):
        model.unlearn(extra + 1, labels)
    model.forget(1)
    assert list(model.classes_) == [0, 2] and 1 not in model.predict(x)
    model.rename(2, 5)
    assert list(model.classes_) == [0, 5]
    assert (model.predict(x[y == 2]) == 5).mean() > 0.9


def test_novelty_is_higher_for_unknown_classes(blobs, model):
    known, _ = blobs(np.tile([2, 4], 20))
    foreign, _ = blobs(np.tile([0, 6], 20))
    novelty = model.novelty(known), model.novelty(foreign)
    assert all(((values >= 0) & (values <= 1)).all() for values in novelty)
    assert np.median(novelty[1]) > np.median(novelty[0])
    with pytest.raises(TypeError, match="simplecil cannot measure novelty"):
        make("simplecil").fit(*blobs([0, 1])).novelty(known)


def test_calibration_lowers_the_log_loss(blobs):
    from sklearn.metrics import log_loss

    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.arange(160) % 8, spread=1.0))
    held_out, test = blobs(np.arange(400) % 8, spread=1.0), blobs(np.arange(400) % 8, spread=1.0)
    before = log_loss(test[1], model.predict_proba(test[0]))
    model.calibrate(*held_out)
    assert log_loss(test[1], model.predict_proba(test[0])) < before
    assert model.temperature_ > 0


def test_arrays_of_all_kinds_give_the_same(blobs, tmp_path):
    x, y = blobs(np.arange(64) % 8)
    expected = LoRanPACClassifier(width=WIDTH).fit(x, y).decision_function(x)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    padded = np.zeros((64, 24), np.float32)
    padded[:, ::2] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    misaligned = np.frombuffer(b"-" + x.tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(x.shape)
    assert not misaligned.flags.aligned
    for kind in (
        misaligned,
        x.astype(np.float64),
        np.asfortranarray(x),
        mapped,
        padded[:, ::2],
        read_only,
        x.tolist(),
        x.astype(">f4"),
    ):
        scores = LoRanPACClassifier(width=WIDTH).fit(kind, y).decision_function(kind)
        np.testing.assert_array_equal(scores, expected)
    half = LoRanPACClassifier(width=WIDTH).fit(x.astype(np.float16), y).decision_function(x)
    assert largest(half - expected) < 0.05 * largest(expected)


def test_frames_are_taken_with_their_names(blobs):
    x, y = blobs(np.arange(64) % 8)
    expected = LoRanPACClassifier(width=WIDTH).fit(x, y).decision_function(x)
    for library in ("pandas", "polars"):
        frames = pytest.importorskip(library)
        frame = frames.DataFrame({f"f{i}": x[:, i] for i in range(x.shape[1])})
        model = LoRanPACClassifier(width=WIDTH).fit(frame, frames.Series(y))
        np.testing.assert_array_equal(model.decision_function(frame), expected)
        assert list(model.feature_names_in_) == [f"f{i}" for i in range(12)]


def test_tensors_on_any_device_are_accepted(blobs):
    class Tensor:
        """A tensor on a device, with a gradient, which NumPy cannot convert."""

        def __init__(self, array, ready=False):
            self.array, self.ready, self.dtype = array, ready, "torch.float32"

        def detach(self):
            return self

        def cpu(self):
            return Tensor(self.array, ready=True)

        def numpy(self):
            assert self.ready
            return self.array

        def __array__(self, *_, **__):
            raise TypeError("can't convert a tensor on a device")

        def __len__(self):
            return len(self.array)

    x, y = blobs(np.arange(64) % 8)
    expected = LoRanPACClassifier(width=WIDTH).fit(x, y).decision_function(x)
    model = LoRanPACClassifier(width=WIDTH).partial_fit(Tensor(x), Tensor(y))
    np.testing.assert_array_equal(model.decision_function(Tensor(x)), expected)


def test_real_tensors(blobs):
    torch = pytest.importorskip("torch")
    x, y = blobs(np.arange(64) % 8)
    expected = LoRanPACClassifier(width=WIDTH).fit(x, y).decision_function(x)
    tensor = torch.tensor(x, requires_grad=True)
    model = LoRanPACClassifier(width=WIDTH).fit(tensor, torch.tensor(y))
    np.testing.assert_array_equal(model.decision_function(tensor), expected)
    assert model.predict(torch.tensor(x).bfloat16()).shape == (64,)
