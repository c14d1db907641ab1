"""LoRanPAC in weekly partial_fit calls against what scikit-learn offers, and streaming LDA, on one feature file, in one run.

    pip install .
    python bench/compare_sklearn.py clinc150-minilm.npz

Every week brings all training samples of some new classes. After each week a model must answer for all classes so far.
`learn` is the time to take in the weeks, `answer` the time to form what is needed and to predict all test samples of the
classes so far, both summed over weeks; `refit` says that the model was trained from scratch on all samples so far, which it
therefore must keep. LogisticRegression runs with several C, and the row is that of the C with the best accuracy on the test
samples.
"""

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.neighbors import NearestCentroid

from loranpac import LoRanPACClassifier, make


class Weekly:
    """An estimator that wants to know all classes beforehand."""

    def __init__(self, estimator, classes):
        self.estimator, self.classes = estimator, classes

    def partial_fit(self, X, y):
        self.estimator.partial_fit(X, y, classes=self.classes)

    def predict(self, X):
        return self.estimator.predict(X)


class Refitted:
    """An estimator that is trained from scratch on everything so far."""

    def __init__(self, estimator):
        self.estimator, self.X, self.y = estimator, [], []

    def partial_fit(self, X, y):
        self.X.append(X)
        self.y.append(y)
        self.estimator.fit(np.concatenate(self.X), np.concatenate(self.y))

    def predict(self, X):
        return self.estimator.predict(X)


def evaluate(model, data, weeks):
    """The accuracy after each week, and the seconds of learning and of answering."""
    X, y, X_test, y_test = data
    accuracies, learn, answer = [], 0.0, 0.0
    for week, classes in enumerate(weeks):
        part = np.isin(y, classes)
        samples, labels = X[part], y[part]
        clock = time.perf_counter()
        model.partial_fit(samples, labels)
        learn += time.perf_counter() - clock
        seen = np.isin(y_test, np.concatenate(weeks[: week + 1]))
        clock = time.perf_counter()
        predicted = model.predict(X_test[seen])
        answer += time.perf_counter() - clock
        accuracies.append(100 * (predicted == y_test[seen]).mean())
    return accuracies, learn, answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--width", type=int, default=10_000)
    parser.add_argument("--weeks", type=int, default=15)
    parser.add_argument("--seed", type=int, default=1993)
    parser.add_argument("--only", help="names, separated by commas")
    args = parser.parse_args()
    with np.load(args.data) as file:
        arrays = {name: file[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    X, X_test = (np.ascontiguousarray(arrays[name], dtype=np.float32) for name in ("x_train", "x_test"))
    y, y_test = arrays["y_train"], arrays["y_test"]
    order = np.random.default_rng(args.seed).permutation(np.unique(y))
    weeks = np.array_split(order, args.weeks)
    rivals = {
        "loranpac-soft": lambda: LoRanPACClassifier(args.width),
        "loranpac (hard)": lambda: LoRanPACClassifier(args.width, filter="hard"),
        "ranpac": lambda: make("ranpac", width=args.width),
        "slda": lambda: make("slda"),
        "RidgeClassifier": lambda: Refitted(RidgeClassifier()),
        "LogisticRegression": lambda C: Refitted(LogisticRegression(C=C, max_iter=1000)),
        "NearestCentroid": lambda: Refitted(NearestCentroid()),
        "SGDClassifier": lambda: Weekly(SGDClassifier(random_state=0), np.sort(order)),
    }
    choices = {"LogisticRegression": [{"C": 1}, {"C": 10}, {"C": 100}]}
    names = args.only.split(",") if args.only else rivals
    print(f"{len(X)} training and {len(X_test)} test samples, {len(order)} classes in {args.weeks} weeks, E = {args.width}\n")
    print("| | accuracy, last week | mean over weeks | learn s | answer s | keeps samples |")
    print("|---|---|---|---|---|---|")
    for name in names:
        found = []
        for choice in choices.get(name, [{}]):
            model = rivals[name](**choice)
            found.append((evaluate(model, (X, y, X_test, y_test), weeks), choice))
        (accuracies, learn, answer), choice = max(found, key=lambda result: result[0][0][-1])
        keeps = "yes (refit)" if isinstance(model, Refitted) and name != "NearestCentroid" else "no"
        shown = ", ".join([name, *(f"{setting} = {value}" for setting, value in choice.items())])
        print(
            f"| {shown} | {accuracies[-1]:.2f} | {np.mean(accuracies):.2f} | {learn:.1f} | {answer:.1f} | {keeps} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
