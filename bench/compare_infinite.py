"""LoRanPAC of infinite width against kernel machines and linear classifiers of scikit-learn, on one feature file, in one run.

    cargo build --release
    python bench/compare_infinite.py clinc150-minilm.npz

All training samples are learned at once. Every classifier runs in a process of its own; `memory` is the peak of that process
beyond what it takes to read the data (for LoRanPAC of the whole process). `fit` is the time to learn and to form the
classifier, `predict` that of all test samples. With --cap, LoRanPAC also runs with that many kept samples, in tasks of ten
classes. scikit-learn's classifiers have parameters, which LoRanPAC does not: of each, all choices below run, and the row is
that of the choice with the best accuracy on the test samples. Their kernel is the RBF kernel on samples of length 1.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import time

import numpy as np

CHOICES = {
    "KernelRidge": [{"gamma": gamma, "alpha": 0.1} for gamma in (0.5, 1.0, 2.0)],
    "Nystroem + RidgeClassifier": [{"gamma": gamma, "alpha": 0.1} for gamma in (0.5, 1.0, 2.0)],
    "LogisticRegression": [{"C": C} for C in (1, 10, 100)],
}


def estimator(name, choice, components):
    """Returns functions that fit and predict, with labels 0, 1, ..."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline

    if name == "KernelRidge":
        model = KernelRidge(kernel="rbf", **choice)
        return lambda X, y: model.fit(X, np.eye(y.max() + 1)[y]), lambda X: model.predict(X).argmax(1)
    if name == "LogisticRegression":
        model = LogisticRegression(max_iter=1000, **choice)
    else:
        nystroem = Nystroem(gamma=choice["gamma"], n_components=components, random_state=0)
        model = make_pipeline(nystroem, RidgeClassifier(alpha=choice["alpha"]))
    return model.fit, model.predict


def read(path):
    with np.load(path) as file:
        X, y, X_test, y_test = (file[name] for name in ("x_train", "y_train", "x_test", "y_test"))
    classes, y = np.unique(y, return_inverse=True)
    unit = [x.astype(np.float32) / np.linalg.norm(x.astype(np.float32), axis=1, keepdims=True) for x in (X, X_test)]
    return unit[0], y, unit[1], np.searchsorted(classes, y_test)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(path, name, choice, components, results):
    X, y, X_test, y_test = read(path)
    fit, predict = estimator(name, choice, components)
    before, start = peak(), time.perf_counter()
    fit(X, y)
    middle = time.perf_counter()
    right = predict(X_test) == y_test
    results.put((100 * right.mean(), middle - start, time.perf_counter() - middle, peak() - before))


def theirs(path, name, components):
    """Returns accuracy, seconds, bytes and parameters of the best choice."""
    found = []
    for choice in CHOICES[name]:
        context = multiprocessing.get_context("spawn")
        results = context.Queue()
        process = context.Process(target=measure, args=(path, name, choice, components, results))
        process.start()
        found.append((*results.get(), choice))
        process.join()
    return max(found, key=lambda result: result[0])


def ours(program, path, *words):
    command = [program, "run", "--data", path, "--method", "loranpac-soft", "--width", "infinite"]
    answer = subprocess.run([*command, "--json", "-", "--quiet", *words], check=True, capture_output=True, text=True)
    run = json.loads(answer.stdout)["runs"][0]
    tasks = run["tasks"]
    learn = sum(task["learn_seconds"] + (task["weights_seconds"] or 0) for task in tasks)
    evaluate = sum(task["eval_seconds"] or 0 for task in tasks)
    return run["final_accuracy_samples"], learn, evaluate, run["peak_rss_bytes"], {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--cap", type=int, help="samples that LoRanPAC keeps in another run")
    parser.add_argument("--components", type=int, default=2000, help="of the Nystroem map")
    default = os.path.join(os.path.dirname(__file__), "..", "target", "release", "loranpac")
    parser.add_argument("--loranpac", default=default, help="the program")
    args = parser.parse_args()
    rows = {"loranpac-soft, infinite width": lambda: ours(args.loranpac, args.data, "--scenario", "joint")}
    if args.cap:
        capped = ("--inc", "10", "--max-rank", str(args.cap), "--eval", "final")
        rows[f"the same, {args.cap} samples kept"] = lambda: ours(args.loranpac, args.data, *capped)
    for name in CHOICES:
        rows[name] = lambda name=name: theirs(args.data, name, args.components)
    X, y, X_test, _ = read(args.data)
    print(f"{len(X)} training and {len(X_test)} test samples, d = {X.shape[1]}, {y.max() + 1} classes, {os.cpu_count()} cores\n")
    print("| | accuracy | fit s | predict s | memory MiB |\n|---|---|---|---|---|")
    for name, row in rows.items():
        accuracy, fit, predict, memory, choice = row()
        shown = ", ".join([name, *(f"{setting} = {value}" for setting, value in choice.items())])
        print(f"| {shown} | {accuracy:.2f} | {fit:.1f} | {predict:.1f} | {memory / 2**20:.0f} |", flush=True)


if __name__ == "__main__":
    main()
