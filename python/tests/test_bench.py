"""Experiments from Python."""

import inspect
import json
import subprocess
import sys

import numpy as np
import pytest

from loranpac import _engine, bench


def test_a_run_equals_that_of_the_command_line(tmp_path):
    result = bench.run("digits", ["loranpac", "simplecil"], inc=2, width=300, seeds=[1993, 1994])
    arguments = ["run", "--data", "digits", "--method", "loranpac,simplecil", "--inc", "2", "--width", "300"]
    done = subprocess.run(
        [sys.executable, "-m", "loranpac", *arguments, "--seed", "1993,1994", "--json", "-"],
        capture_output=True,
        text=True,
        check=True,
    )
    runs = json.loads(done.stdout)["runs"]
    found = {(run["method"], run["seed"]): run["accuracy_matrix"] for run in result.runs}
    assert found == {(run["method"], run["seed"]): run["accuracy_matrix"] for run in runs}


def test_results_show_themselves(blobs):
    train, test = blobs(np.arange(160) % 8), blobs(np.arange(80) % 8)
    calls = []
    result = bench.run(
        (*train, *test), ["simplecil", "loranpac-soft"], inc=4, width=200, progress=lambda *call: calls.append(call)
    )
    assert [row["method"] for row in result.summary()][0] in ("simplecil", "loranpac-soft")
    assert repr(result).splitlines()[0].split() == [
        "method",
        "accuracy",
        "%",
        "final",
        "%",
        "total",
        "%",
        "forgetting",
        "learn",
        "s",
        "form",
        "s",
    ]
    assert len(repr(result).splitlines()) == 3 and "<table>" in result._repr_html_()
    assert calls[-1] == ("loranpac-soft", 1.0)
    pandas = pytest.importorskip("pandas")
    frame = result.to_dataframe()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 4 and frame.accuracy_samples.between(50, 100).all()
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = result.plot()
    assert len(axes.lines) == 2


def test_mistakes_name_the_argument(blobs):
    x, y = blobs(np.arange(16) % 8)
    for arguments, message in [
        (("digits", "magic"), "methods: names among .* are expected, not 'magic'"),
        (({"x_train": x}, "loranpac"), "dataset: the arrays y_train, x_test, y_test are missing"),
        (((x, y), "loranpac"), "dataset: four arrays are expected"),
        (("absent.npz", "loranpac"), "absent.npz"),
    ]:
        with pytest.raises((ValueError, OSError), match=message):
            bench.run(*arguments)
    with pytest.raises(ValueError, match="inc=0 is not possible: a whole number of at least 1 is expected"):
        bench.run("digits", "loranpac", inc=0)
    with pytest.raises(ValueError, match="inc=true is not possible: a whole number of at least 1 is expected"):
        bench.run("digits", "loranpac", inc=True)
    with pytest.raises(ValueError, match="random_state=-1 is not possible"):
        bench.run("digits", "loranpac", random_state=-1)
    with pytest.raises(TypeError, match="no argument 'widht'; the settings of runs are lift, width"):
        bench.run("digits", "loranpac", widht=3)
    with pytest.raises(ValueError, match="settings: none of the methods has depth"):
        bench.run("digits", "loranpac", settings={"depth": 3})
    with pytest.raises(ValueError, match="eval=sometimes is not possible: never, final or every is expected"):
        bench.run("digits", "loranpac", eval="sometimes")


def test_every_setting_of_the_engine_is_a_keyword():
    signature = inspect.signature(bench.run)
    for entry in json.loads(_engine.settings()):
        assert signature.parameters[entry["name"]].default == entry["default"]
        assert f"    {entry['name']} : default" in bench.run.__doc__
    assert signature.parameters["width"].default == "auto" and signature.parameters["random_state"].default == 0
    run = bench.run("digits", "loranpac", inc=5, rank=50, gamma=None, order="sorted", width=np.int64(100)).runs[0]
    spec = run["config"]["spec"]
    assert (spec["truncation"], spec["order"], spec["width"]) == ({"rank": 50}, "sorted", 100)
    assert bench.run("digits", "loranpac", inc=10, width=float("inf"), per_class=5).runs[0]["config"]["lift"]["width"] is None


def test_an_exception_in_progress_ends_the_run():
    def stop(method, share):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bench.run("digits", "loranpac", inc=2, width=100, progress=stop)
