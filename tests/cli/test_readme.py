"""README.md and praison_compressor/docs say what the code does, and their examples run."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, __version__
from praison_compressor.cli import build
from praison_compressor.testing import Worker
from tests.helpers.api_page import api_page
from tests.helpers.command import RAW
from tests.helpers.hosting import at_home
from tests.helpers.readme_tables import (
    API,
    DOCS,
    OPTIONS,
    PICTURE,
    README,
    REFERENCE,
    ROOT,
    WITH_TABLES,
    commands,
    reference,
    with_tables,
)

OUTDATED = "run python -m tests.helpers.readme_tables"


def test_the_generated_documentation_is_that_of_the_code():
    """The generated pages have every option, command, exit code and public method."""
    for page in WITH_TABLES:
        text = page.read_text(encoding="utf-8")
        assert text == with_tables(text), OUTDATED
    text = OPTIONS.read_text(encoding="utf-8")
    assert [name for name in CompressorConfig.names() if f"| `{name}` |" not in text] == []
    assert REFERENCE.read_text(encoding="utf-8") == reference(), OUTDATED
    text = API.read_text(encoding="utf-8")
    assert text == api_page(), OUTDATED
    methods = [name for name in vars(ContextCompressor) if not name.startswith("_")]
    assert [name for name in methods if f"| `{name}(" not in text] == []


def test_the_readmes_picture_is_what_the_demo_prints(run):
    """The README's picture is a part of what the demo prints."""
    done = run("demo")
    (shown,) = PICTURE.findall(README.read_text(encoding="utf-8"))
    assert len(shown[1].splitlines()) > 8
    assert shown[1] in done.out, OUTDATED
    assert "request; search_conversation_archive found it." in done.out
    assert [word for word in ("Wait: ", "Cost: ", "Prefix kept: ") if word not in done.out] == []
    assert "0 refused" in done.out
    assert RAW.findall(done.out) == []
    assert "\x1b" not in done.out


def test_every_measured_figure_has_its_command():
    """Each figure begins with the name of its command, unless its section has only one."""
    benchmarks = {path.stem for path in (ROOT / "tests" / "benchmarks").iterdir()}
    nameless, commands_named, figures = [], set(), 0
    for section in (DOCS / "measured.md").read_text("utf-8").split("\n## ")[1:]:
        named = dict(re.findall(r"^- \*\*(.+?)\*\* \(`(\w+)[^`]*`\)", section, re.M))
        rows = "".join(re.findall(r"^\|---.*\n((?:\| .*\n)+)", section, re.M)).splitlines()
        names = [row.removeprefix("| ").partition(":")[0].capitalize() for row in rows]
        nameless += [name for name in names if name not in named and len(named) != 1]
        commands_named |= set(named.values())
        figures += len(rows)
    assert figures > 90
    assert nameless == []
    assert commands_named - benchmarks == set()


def options() -> Iterator[tuple[str, Any]]:
    for name, command in commands().items():
        for parameter in command.params:
            yield name, parameter


def test_every_command_and_option_explains_itself():
    """Every command, option and word has a help text."""
    assert [name for name, command in commands().items() if not command.help] == []
    helps = {name: f"{build().help} {command.help}" for name, command in commands().items()}
    silent = [
        (name, each.name)
        for name, each in options()
        for word in re.findall(r"[A-Z]+", each.metavar or each.name.upper())
        if not (each.help if each.param_type_name == "option" else word in helps[name])
    ]
    assert silent == []


def test_every_command_has_json_output():
    """Every command has `--json`."""
    assert {name for name, p in options() if "--json" in p.opts} == set(commands())


def python_blocks() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in (README, *sorted(DOCS.glob("*.md")))]
    return re.findall(r"^```python\n(.*?)^```", "\n".join(texts), re.S | re.M)


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_the_documentations_examples_run(number, monkeypatch, tmp_path, provider, capsys):
    """Each Python example of the documentation runs as it stands."""
    code = python_blocks()[number]
    monkeypatch.setenv("PRAISON_COMPRESSOR_STORE", f"sqlite:///{tmp_path / 'ledger.db'}")
    with at_home(monkeypatch, tmp_path, provider):
        provider.set_window(128_000)
        provider.answer_with(Worker())
        monkeypatch.setattr("sys.stdin", io.StringIO("What is next?\n"))
        with contextlib.suppress(EOFError):  # the end of what is typed
            exec(compile(code, f"documentation, block {number}", "exec"), {})
    assert provider.refused == []
    assert bool(capsys.readouterr().out.strip()) == ("print(" in code)


@pytest.mark.parametrize("page", [README, *sorted(DOCS.glob("*.md"))], ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page):
    """Links into the repository lead to files and headings that exist."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8"))
    targets = [(page.parent / file if file else page, anchor) for file, anchor in links]
    assert [file for file, _ in targets if not file.exists()] == []
    assert [pair for pair in targets if pair[1] and pair[1] not in anchors(pair[0])] == []


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as links write them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_every_named_file_exists():
    """Files and folders that the pages name exist in the repository or the package."""
    pages = (README, ROOT / ".github" / "CONTRIBUTING.md", *DOCS.glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    names = set(re.findall(r"`((?:[\w.]+/)*\w+\.py|(?:\w+/)+)`", text))
    assert len(names) > 20
    places = (ROOT, ROOT / "praison_compressor")
    assert [name for name in names if not any((top / name).exists() for top in places)] == []


@pytest.mark.parametrize("page", [README, DOCS / "agents.md"], ids=lambda page: page.stem)
def test_the_hosts_command_names_its_package(page):
    """A page with the host's command names the package that has it."""
    text = page.read_text(encoding="utf-8")
    assert "`pip install praisonai`" in text.partition("praisonai plugins add")[0][-300:]


def test_the_changelog_begins_with_what_is_unreleased():
    """The changelog has unreleased changes, then the package's version if it is released."""
    entries = re.findall(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert entries[0] == "Unreleased"
    assert set(entries[1:2]) <= {__version__}
