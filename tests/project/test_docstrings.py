"""Docstrings of the package."""

import doctest
import importlib
import pkgutil

import praison_compressor


def test_the_examples_in_docstrings_are_true():
    """Each example prints what its docstring says."""
    found = pkgutil.walk_packages(praison_compressor.__path__, "praison_compressor.")
    modules = [importlib.import_module(m.name) for m in found if "__main__" not in m.name]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 10
