"""Write api.md, command-line.md, tables of other pages, and the README's picture.

Run `python -m tests.helpers.readme_tables`.
"""

import inspect
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from praison_compressor import CompressorConfig, CompressResult, ContextCompressor, TokenCounter
from praison_compressor.cli import build
from praison_compressor.cli.demo import picture
from praison_compressor.cli.demo_agent import MODEL, run_turns
from praison_compressor.cli.terminal import EXIT_CODES
from praison_compressor.praisonai.patches import READ
from tests.helpers.api_page import api_page, table
from tests.helpers.processes import ROOT

README = ROOT / "README.md"
DOCS = ROOT / "praison_compressor" / "docs"
REFERENCE = DOCS / "command-line.md"
API = DOCS / "api.md"
OPTIONS = DOCS / "configuration.md"
HOST = DOCS / "host.md"
HOW = DOCS / "how-it-works.md"
WITH_TABLES = (OPTIONS, HOST, HOW)


def commands() -> dict[str, Any]:
    """Return every command of the program by its name, as the parser knows it."""
    program = build()
    context = click.Context(program)
    return {name: program.get_command(context, name) for name in program.list_commands(context)}


def options_table() -> str:
    """Return the options of `CompressorConfig`: name, default and meaning."""
    default = CompressorConfig()
    rows = (
        (f"`{name}`", _default(getattr(default, name)), meaning)
        for name, meaning in CompressorConfig.meanings().items()
    )
    return table(("option", "default", "meaning"), rows)


def _default(value: Any) -> str:
    return f"`{value:_}`" if type(value) is int else f"`{value!r}`"


def commands_table() -> str:
    """Return the table of commands with the first sentence of their help."""
    rows = (
        (f"`{' '.join([name, *_arguments(command)])}`", _first_sentence(command.help))
        for name, command in commands().items()
    )
    return table(("command", "what it does"), rows)


def reference() -> str:
    """Return the whole of praison_compressor/docs/command-line.md."""
    lines = [
        "# praison-compressor, command by command",
        "",
        "At a terminal a list is cut to the width. Piped, the output is plain and whole.",
        "A number of tokens is written 32000, 32_000, 32,000, 32k (k: 1,000) or 1.5M.",
        "SESSION is a session's id, or the id of any of its epochs.",
        "This line in `.bashrc` completes commands:",
        '`eval "$(_PRAISON_COMPRESSOR_COMPLETE=bash_source praison-compressor)"`.',
        "",
        commands_table(),
        "",
        table(("exit code", "meaning"), EXIT_CODES.items()),
        "",
        "## Options of several commands",
        "",
        "`--set` takes every option of [configuration](configuration.md).",
        "",
        _rows(_shared()),
    ]
    shared = [(each.opts, each.help) for each in _shared()]
    for name, command in commands().items():
        # The table above has the usage and the first sentence.
        rest = inspect.cleandoc(command.help or "").partition("\n\n")[2]
        lines += ["", f"## {name}", "", *([rest, ""] if rest else [])]
        lines += ["```sh", example(command), "```", ""]
        given = [p for p in command.params if p.param_type_name == "option"]
        rows = _rows(p for p in given if (p.opts, p.help) not in shared)
        also = ", ".join(f"`{p.opts[0]}`" for p in given if (p.opts, p.help) in shared)
        lines += [rows, "", f"And {also}."] if rows else [f"Options: {also}."]
    return "\n".join(lines) + "\n"


def example(command: Any) -> str:
    """Return the line that the command's help ends with."""
    return str(command.epilog or "").removeprefix("$ ")


def _shared() -> list[Any]:
    """Return the options that several commands describe alike."""
    every = [each for command in commands().values() for each in command.params]
    alike = [each for each in every if each.param_type_name == "option"]
    counts = Counter((each.opts[0], each.help) for each in alike)
    named = {each.opts[0]: each for each in alike if counts[each.opts[0], each.help] > 1}
    return list(named.values())


def _rows(options: Iterable[Any]) -> str:
    """Return a table of options, or "" for none."""
    rows = [(f"`{_spelled(each)}`", each.help) for each in options]
    return table(("option", "meaning"), rows) if rows else ""


def _spelled(option: Any) -> str:
    takes = "" if option.is_flag else f" {option.metavar}"
    return ", ".join([*option.opts, *option.secondary_opts]) + takes


def _arguments(command: Any) -> list[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    words = [(each.metavar or each.name.upper(), each.required) for each in arguments]
    return [word if is_required else f"[{word}]" for word, is_required in words]


def _first_sentence(text: str | None) -> str:
    return re.split(r"(?<=[.:])\s", " ".join((text or "").split()))[0].rstrip(":.") + "."


def read_table() -> str:
    """Return the table of host names that are only read or set."""
    rows = (
        (
            f"`{row.owner.replace(':', '.')}`",
            f"`{row.names}`",
            f"left out: {row.part}" if row.part else "`HostMoved`",
        )
        for row in READ
    )
    return table(("of", "names", "without one"), rows)


NOTES = 160


def growth_table() -> str:
    """Return the requests around each compression of a conversation that grows by a note each."""
    compressor = ContextCompressor(CompressorConfig(model="gpt-4o"))
    messages = [{"role": "system", "content": "You file notes."}]
    rows: list[tuple[object, ...]] = []
    before: tuple[object, ...] = ()
    for number in range(1, NOTES + 1):
        boxes = (f"box {120 * number + n} weighs {n % 13} kg," for n in range(120))
        messages.append({"role": "user", "content": " ".join([f"Note {number}:", *boxes])})
        result = compressor.compress_sync(messages)
        sizes = (number, f"{result.tokens_before:,}", f"{result.tokens_after:,}")
        if result.newly_summarized:
            rows += [(*before, "nothing: below the trigger"), (*sizes, _what_happened(result))]
        before = sizes
        messages.append({"role": "assistant", "content": f"Filed note {number}."})
    columns = ("request", "tokens of the transcript", "tokens of the view", "what happens")
    return table(columns, rows)


def _what_happened(result: CompressResult) -> str:
    head = 3  # the system prompt, the first note and its answer
    kept = len(result.messages) - head - len(result.segments)
    return f"a summary replaces {result.newly_summarized} messages; the newest {kept} stay"


TABLES = {"growth": growth_table, "options": options_table, "read": read_table}


def with_tables(text: str) -> str:
    """Return the text of a page with its tables as the code has them."""
    for name in re.findall(r"<!-- (\w+) -->", text):
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}{TABLES[name]()}\n{end}{rest.partition(end)[2]}"
    return text


PICTURE = re.compile(r"(\n[^\n]*`praison-compressor demo`, [^`]*```\n)(.*?)(?=```\n)", re.S)
"""The README's picture, after the sentence that introduces it."""


def with_picture(text: str) -> str:
    """Return the README's text with the picture of the last question of the demo."""
    *_, last = run_turns()
    lines = picture(last.requests[0], TokenCounter(MODEL))
    return PICTURE.sub(lambda found: found[1] + "".join(f"{line}\n" for line in lines), text)


if __name__ == "__main__":
    README.write_text(with_picture(README.read_text(encoding="utf-8")), encoding="utf-8")
    for page in WITH_TABLES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
    API.write_text(api_page(), encoding="utf-8")
