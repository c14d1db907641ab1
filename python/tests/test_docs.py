"""Every example in a docstring or in docs/python.md runs."""

import doctest
import importlib
import importlib.util
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest

import loranpac

ROOT = pathlib.Path(__file__).parents[2]


def docstrings():
    """The docstrings with examples, each with an empty namespace, as in a fresh interpreter."""
    modules = [loranpac]
    for module in pkgutil.iter_modules(loranpac.__path__):
        missing = module.name == "dask" and importlib.util.find_spec("dask") is None
        if module.name not in ("__main__", "_engine") and not missing:
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


def test_every_command_is_in_the_table_of_commands_and_all_functions_exist():
    shown = subprocess.run([sys.executable, "-m", "loranpac", "--help"], capture_output=True, text=True, check=True).stdout
    listed = shown.partition("Commands:\n")[2].partition("\n\n")[0]
    commands = set(re.findall(r"^  (\w+)", listed, re.MULTILINE))
    experiments = {"demo", "run", "bench", "completions", "man", "help"}
    table = re.findall(r"^\| (`.*) \| (.*) \|$", (ROOT / "docs/python.md").read_text().partition("| command |")[2], re.MULTILINE)
    rows = {name: row[1] for row in table for name in re.findall("`([a-z]+)`", row[0])}
    assert commands - experiments <= rows.keys()
    for name, row in rows.items():
        if name not in commands:
            continue
        functions = [name] if "same names" in row else re.findall(r"`((?:loranpac\.)?\w+)", row)
        for function in functions:
            owner = loranpac if function in loranpac.__all__ or "." in function else loranpac.LoRanPACClassifier
            assert hasattr(owner, function.removeprefix("loranpac.")), function
