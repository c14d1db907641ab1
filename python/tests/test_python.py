"""The sources are valid in the oldest Python that the package supports."""

import ast
import pathlib
import re

import pytest

import loranpac

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted((ROOT / "python/loranpac").glob("*.py"))


def test_the_sources_are_those_of_the_package():
    assert pathlib.Path(loranpac.__file__).name in {path.name for path in SOURCES}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_sources_need_no_newer_python(path):
    oldest = re.search(r'^requires-python = ">=3\.(\d+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    tree = ast.parse(path.read_text(), feature_version=(3, int(oldest[1])))
    annotations = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    unions = [node for node in annotations if node and any(isinstance(part, ast.BitOr) for part in ast.walk(node))]
    # Without this import Python evaluates `int | None` in an annotation, which fails before 3.10.
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    assert not unions or postponed
