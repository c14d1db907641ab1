"""Models in several threads and processes, and tasks that a signal ends."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

from loranpac import LoRanPACClassifier, make

from common import largest

WIDTH = 400


def test_other_threads_go_on_while_the_engine_works(blobs):
    x, y = blobs(np.arange(3000) % 8)
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    model = make("loranpac", width=3000, schedule="paper")
    model.fit(x[:1500], y[:1500])
    stop.set()
    thread.join()
    # One call of the engine takes far longer than a millisecond.
    assert len(ticks) > 10


def test_predictions_need_not_wait_for_the_end_of_a_task(blobs, model):
    x, y = blobs(np.arange(40_000) % 8)
    teaching, during = threading.Event(), []

    def predict():
        teaching.wait()
        while teaching.is_set():
            model.predict(x[:5])
            during.append(teaching.is_set())

    thread = threading.Thread(target=predict)
    thread.start()
    teaching.set()
    model.partial_fit(x, y)
    teaching.clear()
    thread.join()
    assert sum(during) > 2


def test_answers_during_a_task_are_those_of_the_state_before_it(blobs, model):
    x, y = blobs(np.arange(10_000) % 8)
    test = x[:20]
    before, names, during = model.decision_function(test), list(range(8)), []
    learner = model._learner
    # The call between chunks stands for a prediction of another thread.
    learner.learn(x, (y.astype(np.int64), names), lambda *_: during.append(model.decision_function(test)))
    assert len(during) > 2 and all(np.array_equal(answer, before) for answer in during)
    assert not np.array_equal(model.decision_function(test), before)


def test_an_outdated_classifier_is_never_kept(blobs, model):
    x, y = blobs(np.repeat([2, 4], 50))
    stop = threading.Event()

    def predict():
        while not stop.is_set():
            model.predict(x[:3])

    thread = threading.Thread(target=predict)
    thread.start()
    for number in range(50):
        model.partial_fit(x[2 * number : 2 * number + 2], y[2 * number : 2 * number + 2])
    stop.set()
    thread.join()
    fresh = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(x), fresh.decision_function(x))


def test_several_threads_may_use_one_model(blobs, model):
    x, _ = blobs(np.arange(400) % 8)
    expected, wrong = model.decision_function(x), []

    def work():
        for _ in range(5):
            if not np.array_equal(model.decision_function(x), expected):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert not wrong


def test_answers_are_right_while_another_thread_teaches(blobs):
    x, y = blobs(np.tile([5, 6], 6000))
    model = LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([5, 6], 20)))
    lessons = [blobs(np.repeat([number], 20)) for number in (0, 1, 2)]
    teacher = threading.Thread(target=lambda: [model.partial_fit(*lesson) for lesson in lessons])
    teacher.start()
    accuracies = [model.score(x, y) for _ in range(5)]
    teacher.join()
    assert min(accuracies) > 0.95


def test_two_models_may_be_merged_into_each_other_at_once(blobs):
    a, b = (LoRanPACClassifier(width=WIDTH).fit(*blobs(np.repeat([n, n + 1], 10))) for n in (0, 2))
    workers = [threading.Thread(target=one.merge, args=(other,), kwargs={"again": True}) for one, other in ((a, b), (b, a))]
    [worker.start() for worker in workers]
    [worker.join(60) for worker in workers]
    assert not any(worker.is_alive() for worker in workers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(blobs, model):
    x, _ = blobs(np.arange(8))
    expected = model.predict(x).tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if model.predict(x).tolist() == expected else 1)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hangs")
    assert status == 0


class Interrupted:
    """A long task that a timer interrupts, like Ctrl-C."""

    SAMPLES = 40_000

    def __init__(self, blobs, monkeypatch, handler=signal.default_int_handler):
        self.x, self.y = blobs(np.arange(self.SAMPLES) % 8)
        self.handler, self.armed = handler, False
        original, interruption = LoRanPACClassifier._new_learner, self

        class Armed:
            """A learner that starts the timer when learning starts: earlier steps may take longer than the timer."""

            def __init__(self, learner):
                self.learner = learner

            def __getattr__(self, name):
                return getattr(self.learner, name)

            def learn(self, *arguments, **named):
                if interruption.armed:
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                self.learner.learn(*arguments, **named)

        monkeypatch.setattr(LoRanPACClassifier, "_new_learner", lambda *arguments: Armed(original(*arguments)))

    def __enter__(self):
        self.before, self.armed = signal.signal(signal.SIGALRM, self.handler), True
        return self.x, self.y

    def __exit__(self, *_):
        self.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


needs_signals = pytest.mark.skipif(os.name == "nt", reason="there are no such signals here")


@needs_signals
def test_handlers_may_use_the_model_and_end_the_task(blobs, monkeypatch):
    class Enough(Exception):
        pass

    def handler(*_):
        seen.append(len(model.predict(x[:5])))
        raise Enough

    interruption = Interrupted(blobs, monkeypatch, handler)
    model, seen = LoRanPACClassifier(width=500).fit(*blobs(np.repeat([6, 7], 10))), []
    with pytest.raises(Enough), interruption as (x, y):
        model.partial_fit(x, y)
    assert seen == [5] and 20 < model.n_samples_seen_ < 20 + len(x)
    assert set(model.predict(x[:800])) == set(range(8))


@needs_signals
def test_an_interrupted_fit_changes_nothing(blobs, model, monkeypatch):
    with pytest.raises(KeyboardInterrupt, match="as it was before"):
        with Interrupted(blobs, monkeypatch) as (x, y):
            model.set_params(width=500).fit(x, y)
    assert list(model.classes_) == [2, 4] and model.n_samples_seen_ == 30


@needs_signals
def test_an_interrupt_says_what_has_been_learned(blobs, monkeypatch):
    model = LoRanPACClassifier(width=500)
    with pytest.raises(KeyboardInterrupt, match=r"\d+ of 40000 samples have been learned"):
        with Interrupted(blobs, monkeypatch) as (x, y):
            model.partial_fit(x, y)
    done = model.n_samples_seen_
    assert 0 < done < len(x)
    rest = model.partial_fit(x[done:], y[done:])
    whole = LoRanPACClassifier(width=500).fit(x, y)
    test, _ = blobs(np.arange(80) % 8)
    a, b = whole.decision_function(test), rest.decision_function(test)
    assert largest(a - b) < 1e-3 * largest(a)
