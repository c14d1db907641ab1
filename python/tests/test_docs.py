"""Every example in a docstring or in docs/python.md runs."""

import doctest
import importlib
import pathlib
import re

import numpy as np
import pytest

MODULES = ["loranpac", "loranpac._estimators", "loranpac._models", "loranpac.bench", "loranpac.features"]
ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    module = importlib.import_module(name)
    outcome = doctest.testmod(module, extraglobs={"np": np}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0
    assert outcome.attempted > 0 or name == "loranpac._models"


def blocks(path):
    """The Python blocks of a page that are not marked as needing something else (``python no-run``)."""
    text = path.read_text()
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    names = {"__name__": "page"}
    found = blocks(ROOT / page)
    assert found
    for number, block in enumerate(found, 1):
        exec(compile(block, f"{page}, block {number}", "exec"), names)


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "python/examples").glob("*.py")))
def test_examples(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__", "__file__": str(ROOT / "python/examples" / example)}
    exec(compile((ROOT / "python/examples" / example).read_text(), example, "exec"), names)
    assert capsys.readouterr().out
