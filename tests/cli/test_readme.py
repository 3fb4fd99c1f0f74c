"""README.md and praison_compressor/docs/cli.md say what the code does, and their examples run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import __version__
from praison_compressor.config import CompressorConfig
from praison_compressor.testing import LocalProvider, Worker
from tests.helpers.hosting import at_home
from tests.helpers.readme_tables import README, REFERENCE, ROOT, commands, reference, with_tables

ANEW = "run python -m tests.helpers.readme_tables"
FACTS = ROOT / "praison_compressor" / "docs" / "facts.md"


def test_the_readmes_tables_are_those_of_the_code() -> None:
    """Options, commands and exit codes."""
    text = README.read_text(encoding="utf-8")
    assert text == with_tables(text), ANEW


def test_the_reference_is_that_of_the_code() -> None:
    """praison_compressor/docs/cli.md has every command and every option as it is."""
    assert REFERENCE.read_text(encoding="utf-8") == reference(), ANEW


def options() -> Iterator[tuple[str, Any]]:
    for name, command in commands().items():
        for parameter in command.params:
            yield name, parameter


def test_every_command_and_option_explains_itself() -> None:
    """None is without help, so none is without a line in the reference."""
    assert [name for name, command in commands().items() if not command.help] == []
    silent = [(name, p.name) for name, p in options() if not getattr(p, "help", None)]
    assert silent == []


def test_every_command_speaks_json() -> None:
    """`--json` everywhere."""
    with_json = {name for name, parameter in options() if "--json" in parameter.opts}
    assert with_json == set(commands())


def test_every_option_of_the_configuration_is_documented() -> None:
    """By its name in the README's table."""
    text = README.read_text(encoding="utf-8")
    assert [name for name in CompressorConfig.names() if f"| `{name}` |" not in text] == []


def python_blocks() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in (README, FACTS)]
    return re.findall(r"^```python\n(.*?)^```", "\n".join(texts), re.S | re.M)


@pytest.mark.parametrize("number", range(len(python_blocks())))
def test_the_documentations_examples_run(
    number: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    provider: LocalProvider,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As they stand, with a provider where they look for one; and print something."""
    with at_home(monkeypatch, tmp_path, provider):
        provider.set_window(128_000)
        provider.answer_with(Worker())
        exec(compile(python_blocks()[number], f"documentation, block {number}", "exec"), {})
    assert provider.refused == []
    assert capsys.readouterr().out.strip()


def test_the_two_commands_are_there() -> None:
    """One installs and runs the main job, one installs what the tests need and passes them."""
    text = README.read_text(encoding="utf-8")
    assert "pip install -e . && praison-compressor demo" in text
    assert "pip install -e '.[test]' && python -m pytest" in text


def test_every_link_of_the_readme_leads_somewhere() -> None:
    """Links into the repository are to files that exist."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_changelog_has_this_version() -> None:
    """The version of the package, of its metadata and of the newest entry are one."""
    project = re.search(r'^version = "(.+?)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.M)
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert newest is not None
    assert project is not None
    assert newest.group(1) == project.group(1) == __version__
