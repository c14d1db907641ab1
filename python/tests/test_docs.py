"""Every example in a docstring or in docs/python.md runs."""

import doctest
import importlib
import pathlib
import pkgutil
import re

import pytest

import loranpac

ROOT = pathlib.Path(__file__).parents[2]


def docstrings():
    """The docstrings with examples, each with an empty namespace, as in a fresh interpreter."""
    modules = [loranpac]
    for module in pkgutil.iter_modules(loranpac.__path__):
        if module.name not in ("__main__", "_engine"):
            modules.append(importlib.import_module(f"loranpac.{module.name}"))
    finder = doctest.DocTestFinder()
    return [found for module in modules for found in finder.find(module, globs={}) if found.examples]


@pytest.mark.parametrize("docstring", docstrings(), ids=lambda docstring: docstring.name)
def test_a_docstring_runs_alone(docstring):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    output = []
    assert runner.run(docstring, out=output.append).failed == 0, "".join(output)


def test_the_docstrings_that_users_read_first_have_examples():
    names = {docstring.name.rsplit(".", 1)[-1] for docstring in docstrings()}
    assert {"loranpac", "LoRanPACClassifier", "ContinualClassifier", "make", "methods", "bench", "features"} <= names


def blocks(path):
    """The blocks of a page that run: ``python``, and not ``py``."""
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
