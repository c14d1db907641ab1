"""Many machines: a real local cluster of two worker processes."""

import os
import signal
import time

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, make

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

SHARDS, WIDTH = 8, 800


def samples(number, seconds=0.0):
    """A shard; some classes are in several shards."""
    time.sleep(seconds)
    rng = np.random.default_rng(number)
    y = np.repeat([number, number + 1, 20], 40)
    centres = np.random.default_rng(99).normal(size=(21, 16))
    return (centres[y] + 0.5 * rng.normal(size=(len(y), 16))).astype(np.float32), y


@pytest.fixture(scope="module")
def whole():
    model = LoRanPACClassifier(width=WIDTH)
    for number in range(SHARDS):
        model.partial_fit(*samples(number))
    return model


@pytest.fixture
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster):
            yield cluster


def assert_same(model, whole):
    np.testing.assert_array_equal(model.classes_, whole.classes_)
    assert model.n_samples_seen_ == whole.n_samples_seen_
    x = np.concatenate([samples(number)[0] for number in (0, 3, 7)]) + 0.1
    a, b = whole.decision_function(x), model.decision_function(x)
    assert np.abs(a - b).max() < 1e-4 * np.abs(a).max()


def test_shards_on_a_cluster_are_one_model(cluster, whole, tmp_path):
    from loranpac.dask import fit

    shards = [dask.delayed(samples)(number) for number in range(SHARDS)]
    model = fit(shards, tmp_path / "all.lrp", LoRanPACClassifier(width=WIDTH), fan_in=3)
    assert_same(model, whole)
    assert sorted(os.listdir(tmp_path)) == ["all.lrp"]
    assert_same(LoRanPACClassifier.load(tmp_path / "all.lrp"), whole)
    with pytest.raises(FileExistsError):
        fit(shards, tmp_path / "all.lrp")


def test_shards_of_infinite_width(tmp_path):
    from loranpac.dask import fit

    infinite = LoRanPACClassifier(width=float("inf"))
    whole = LoRanPACClassifier(width=float("inf"))
    for number in range(SHARDS):
        whole.partial_fit(*samples(number))
    shards = [dask.delayed(samples)(number) for number in range(SHARDS)]
    with dask.config.set(scheduler="synchronous"):
        model = fit(shards, tmp_path / "all.lrp", infinite, fan_in=3)
    assert_same(model, whole)
    assert model.width == float("inf") and model.leave_one_out_ > 0.9


def test_a_killed_worker_changes_nothing(cluster, whole, tmp_path):
    from loranpac.dask import fit

    shards = [dask.delayed(samples)(number, seconds=0.5) for number in range(SHARDS)]
    victim = next(iter(cluster.workers.values())).pid

    def kill():
        # In the middle: some shards have been learned, some have not.
        while len(list(tmp_path.glob("all.lrp.work-*/shard-?????.lrp"))) < 2:
            time.sleep(0.02)
        os.kill(victim, signal.SIGKILL)

    import threading

    killer = threading.Thread(target=kill)
    killer.start()
    model = fit(shards, tmp_path / "all.lrp", LoRanPACClassifier(width=WIDTH), fan_in=2)
    killer.join()
    assert victim not in [worker.pid for worker in cluster.workers.values()]
    assert_same(model, whole)


def test_an_interrupted_call_resumes(whole, tmp_path):
    from loranpac.dask import fit

    def learned():
        return list(tmp_path.glob("all.lrp.work-*/shard-?????.lrp"))

    def shard(number, fail):
        if fail and len(learned()) >= 3:
            raise RuntimeError("the disk failed")
        return samples(number)

    def attempt(fail):
        shards = [dask.delayed(shard)(number, fail) for number in range(SHARDS)]
        return fit(shards, tmp_path / "all.lrp", LoRanPACClassifier(width=WIDTH))

    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(RuntimeError, match="the disk failed"):
            attempt(True)
        before = learned()
        assert len(before) >= 3
        written = []
        original = LoRanPACClassifier.save
        LoRanPACClassifier.save = lambda self, path, **kwargs: (written.append(path), original(self, path, **kwargs))[1]
        try:
            model = attempt(False)
        finally:
            LoRanPACClassifier.save = original
    # Shards that had been learned were not learned again; the last save is that of the result.
    assert len(written) == SHARDS - len(before) + 1
    assert_same(model, whole)


def test_a_bag_of_samples(tmp_path):
    bag = pytest.importorskip("dask.bag")
    from loranpac.dask import fit

    x, y = samples(0)
    pairs = bag.from_sequence(list(zip(x, y)), npartitions=4)
    # Partitions without samples are skipped, and other files in the workspace are ignored.
    pairs = bag.concat([pairs, pairs.filter(lambda pair: False)])
    (tmp_path / "notes.txt").write_text("keep me")
    with dask.config.set(scheduler="synchronous"):
        model = fit(pairs, tmp_path / "m.lrp", LoRanPACClassifier(width=200), workspace=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["m.lrp", "notes.txt"]
    expected = LoRanPACClassifier(width=200).fit(x, y)
    a, b = expected.decision_function(x), model.decision_function(x)
    assert np.abs(a - b).max() < 1e-4 * np.abs(a).max()


def test_mistakes_name_the_argument(tmp_path):
    from loranpac.dask import fit

    with pytest.raises(ValueError, match="shards: there are none"):
        fit([], tmp_path / "m.lrp")
    with pytest.raises(ValueError, match="fan_in: "):
        fit([1], tmp_path / "m.lrp", fan_in=1)
    with pytest.raises(ValueError, match=".lrp"):
        fit([1], tmp_path / "m")
    with pytest.raises(TypeError, match="estimator: a LoRanPACClassifier"):
        fit([1], tmp_path / "m.lrp", make("ranpac"))
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="a shard is a pair"):
        fit([dask.delayed(lambda: [1, 2, 3])()], tmp_path / "m.lrp")
