"""The public face: what is listed is there, typed, and light to import."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

import praison_compressor
from tests.helpers.api_page import api_page

PUBLIC = set(
    """Balance Bill BudgetTooSmall CompressResult CompressorConfig CompressorError ConfigError
    ContextCompressor ContextUse Epoch Event Hit HostMoved InvalidMessages LedgerConflict
    LedgerCorrupt LedgerError MemoryStore NothingShorter Part Preview RequestUsage Segment
    Session SessionNotFound Store StoreUnavailable Summarizer SummarizerUnavailable SummaryError
    SummaryRejected SummaryReply Telemetry TokenCounter Usage __version__ install open_store
    to_items to_messages uninstall""".split()
)
MODULES = ["praison_compressor", "praison_compressor.praisonai", "praison_compressor.testing"]


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Yield each node of the package's code with its module's name."""
    for path in sorted(Path(praison_compressor.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield path.name, node


def names_in_args(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the parameters that a docstring describes."""
    text = ast.get_docstring(function) or ""
    section = re.search(r"^Args:\n((?: {4}.*\n?|\n)*)", text, re.MULTILINE)
    named = re.findall(r"^ {4}(\w[\w, ]*):", section[1], re.MULTILINE) if section else []
    return [name.strip() for names in named for name in names.split(",")]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_true(name):
    """Every name in `__all__` exists, once, in order."""
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert listed == sorted(set(listed))
    assert [item for item in listed if not hasattr(module, item)] == []


@pytest.fixture
def things():
    """Return the object of every public name."""
    return [getattr(praison_compressor, name) for name in praison_compressor.__all__]


def test_every_public_thing_exists_and_has_a_docstring(things):
    """Every public name has a docstring."""
    assert set(praison_compressor.__all__) == PUBLIC
    assert [thing for thing in things if not isinstance(thing, str) and not thing.__doc__] == []


def test_every_annotation_can_be_read_at_run_time(things):
    """`typing.get_type_hints` evaluates each public method, for tools that read signatures."""
    methods = [
        method
        for thing in things
        if isinstance(thing, type)
        for name, method in vars(thing).items()
        if inspect.isfunction(method) and not name.startswith("_")
    ]
    assert praison_compressor.ContextCompressor.compress in methods
    for method in methods:
        get_type_hints(method)


def test_every_error_is_a_compressor_error(things):
    """Every public error is a `CompressorError`."""
    errors = [t for t in things if isinstance(t, type) and issubclass(t, Exception)]
    assert len(errors) >= 12
    assert [e for e in errors if not issubclass(e, praison_compressor.CompressorError)] == []


def test_an_unknown_name_is_an_attribute_error():
    """A name that is not public is an AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="no_such_thing"):
        praison_compressor.no_such_thing  # noqa: B018


def test_the_repr_of_a_result_leaves_the_conversation_out():
    """A result's repr shows the status instead of the conversation."""
    messages = [{"role": "user", "content": f"word{n} " * 40} for n in range(60)]
    config = praison_compressor.CompressorConfig(context_window=4_000)
    result = praison_compressor.ContextCompressor(config).compress_sync(messages)
    assert result.segments
    assert result.written
    assert "word" not in repr(result)
    assert "context_status='summarized'" in repr(result)


def test_importing_loads_no_slow_library():
    """Importing the command line loads no slow library."""
    code = "import praison_compressor.cli, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"litellm", "sqlalchemy", "praisonaiagents", "openai", "aiohttp", "opentelemetry"}
    assert slow & set(done.stdout.split()) == set()


# ---------------------------------------------------------------- the reference


def test_each_public_attribute_has_a_meaning():
    """The API page gives each field and property a type and a meaning."""
    rows = [
        (name, meaning)
        for section in re.split(r"^## ", api_page(), flags=re.M)
        for table in re.findall(r"^\| attribute .*\n((?:\|.*\n)+)", section, re.M)
        for name, meaning in re.findall(r"^\| `(\w+)` \|(?: `[^`]*`) ?(.*) \|$", table, re.M)
    ]
    assert len(rows) == len(re.findall(r"^\| `\w+` \| ", api_page(), re.M)) > 100
    assert [name for name, meaning in rows if not meaning or meaning.startswith("Return")] == []


def test_help_describes_each_parameter_that_the_reference_leaves_out(things):
    """The docstring of a class names each parameter of its constructor."""
    left_out = re.findall(r"`help\((\w+)\)` describes the parameters", api_page())
    classes = [thing for thing in things if getattr(thing, "__name__", "") in left_out]
    assert praison_compressor.ContextCompressor in classes
    unnamed = [
        (thing.__name__, name)
        for thing in classes
        for name in inspect.signature(thing).parameters
        if not re.search(rf"^    {name}: |`{name}`", inspect.getdoc(thing) or "", re.M)
    ]
    assert unnamed == []


def test_help_describes_each_option():
    """`help(CompressorConfig)` shows the meaning of each option."""
    text = inspect.getdoc(praison_compressor.CompressorConfig) or ""
    meanings = praison_compressor.CompressorConfig.meanings()
    assert len(meanings) > 30
    absent = [name for name, meaning in meanings.items() if f"\n    {name}: {meaning}" not in text]
    assert absent == []


# ---------------------------------------------------------------- packages

ROOT = Path(praison_compressor.__file__).parent
PACKAGES = sorted(path.parent for path in ROOT.rglob("*/__init__.py"))


def listed_modules(package: Path) -> list[str]:
    """Return the modules that a package's docstring lists, in order."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""
    return re.findall(r"^- `(\w+)`:", text, re.M)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_lists_its_modules(package):
    """A package's docstring lists each of its modules once."""
    files = {path.stem for path in package.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert sorted(listed_modules(package)) == sorted(files | packages)


def test_the_docstring_of_a_property_is_a_noun_phrase():
    """The docstring of each property is a noun phrase, without a verb first."""
    decorators = {"property", "computed_once"}
    lines = [
        (module, text.partition("\n")[0])
        for module, node in nodes()
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node))
        if decorators & {ast.unparse(each) for each in node.decorator_list}
    ]
    assert len(lines) > 100
    verbs = ("Return ", "Count ", "Sum ")
    assert [line for line in lines if line[1].startswith(verbs)] == []


def test_docstrings_describe_parameters_that_exist():
    """Each name in a docstring's Args section is a parameter."""
    described = [
        (module, node, names_in_args(node))
        for module, node in nodes()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    unknown = [
        (module, node.name, name)
        for module, node, names in described
        for name in names
        if name not in {part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)}
    ]
    assert unknown == []
    assert sum(bool(names) for *_, names in described) > 10


def test_the_examples_in_docstrings_are_true():
    """Each example prints what its docstring says."""
    found = pkgutil.walk_packages(praison_compressor.__path__, "praison_compressor.")
    modules = [importlib.import_module(m.name) for m in found if "__main__" not in m.name]
    results = [doctest.testmod(module) for module in modules]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) > 10
