"""What commands share: options described once, groups of them, and the decorator `command`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_args

import typer

from ..config import MOST, CompressorConfig
from ..errors import CompressorError, StoreUnavailable
from ..messages.display import one_line
from ..tokens.models import GUESSED_WINDOW
from .terminal import Answer, Unusable, errors_in_a_line

if TYPE_CHECKING:
    from ..ledger.sql.store import SqlStore

# ---------------------------------------------------------------- the decorator


def command(function: Callable[..., Answer | None]) -> Callable[..., None]:
    """Make a command of a function that returns what it found.

    A parameter whose type is a dataclass stands for its fields, one of the type `CompressorConfig`
    for those whose names it is annotated with. Whole numbers are read as people write them.
    `--json` is added, the answer is printed, and errors become one line and an exit code.
    """
    groups: dict[str, tuple[Callable[..., Any], list[str]]] = {}
    parameters: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        make, own = _expanded(parameter)
        if make is not None:
            groups[name] = make, [one.name for one in own]
        parameters |= {one.name: one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own}
    flags = {name: _flag_of(one) for name, one in parameters.items()}
    counts = [name for name, one in parameters.items() if _is_whole(one)]
    for name in counts:
        said = Annotated[str | None, parameters[name].annotation.__metadata__[0]]
        parameters[name] = parameters[name].replace(annotation=said)
    parameters["as_json"] = inspect.Parameter(
        "as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson
    )

    @functools.wraps(function)
    def run(*, as_json: bool, **given: Any) -> None:
        with errors_in_a_line(flags):
            given |= {name: whole(flags[name], given[name]) for name in counts}
            grouped = {
                name: make(**{field: given.pop(field) for field in names})
                for name, (make, names) in groups.items()
            }
            answer = function(**grouped, **given)
            if answer is not None:
                answer.print(as_json=as_json)
        if answer is not None and answer.code:
            raise typer.Exit(answer.code)

    # typer reads the command line off this signature; the annotations must say the same.
    signature = inspect.Signature([*parameters.values()], return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: one.annotation for name, one in parameters.items()}
    del run.__wrapped__
    return run


def _expanded(
    parameter: inspect.Parameter,
) -> tuple[Callable[..., Any] | None, list[inspect.Parameter]]:
    """What is made of a group of options (None: it is a single one), and the options."""
    kind = parameter.annotation
    if is_dataclass(kind) and isinstance(kind, type):
        return kind, [*inspect.signature(kind, eval_str=True).parameters.values()]
    if get_args(kind)[0] is CompressorConfig:
        return _configured, list(map(_of_config, *kind.__metadata__))
    return None, [parameter]


def _is_whole(parameter: inspect.Parameter) -> bool:
    kind, _ = get_args(parameter.annotation)
    return int in (kind, *get_args(kind))


def _flag_of(parameter: inspect.Parameter) -> str:
    """How a person writes it: an option's first name, an argument's metavar."""
    (described,) = parameter.annotation.__metadata__
    name = described.default  # where typer keeps the first name
    return name.partition("/")[0] if isinstance(name, str) else str(described.metavar)


_COUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?)([km]?)", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}


def whole(flag: str, said: str | int | None) -> int | None:
    """The whole number given to an option: 32000, 32_000, 32,000, 32k or 1.5M; None for None.

    Raises:
        Unusable: it is none, or absurd.
    """
    if said is None or isinstance(said, int):
        return said
    found = _COUNT.fullmatch(said.strip())
    if found is not None:
        value = Decimal(re.sub("[_,]", "", found[1])) * _TIMES[found[2].lower()]
        if value <= MOST and value == int(value):
            return int(value)
    raise Unusable(f"{flag} {said[:60]}: expected a whole number, such as 32000, 200_000 or 32k")


# ---------------------------------------------------------------- single options


def option(name: str, metavar: str, help: str) -> Any:
    """An option that takes a value."""
    return typer.Option(name, metavar=metavar, help=help)


def flag(name: str, help: str) -> Any:
    """An option that takes none."""
    return typer.Option(name, help=help)


AsJson = Annotated[bool, flag("--json", "For a program: one JSON value on stdout.")]
Conversation = Annotated[
    int | None, option("--conversation", "N", "Which conversation, where the file holds several.")
]
File = Annotated[str, typer.Argument(metavar="FILE", help="The transcript; - is standard input.")]
_OUT = option("--out", "FILE", "Write there (.jsonl: a message a line); - is standard output.")
Out = Annotated[str | None, _OUT]
ToFile = Annotated[str, _OUT]

# ---------------------------------------------------------------- options of the configuration

ELSEWHERE = (
    *("store_url", "namespace"),  # `Place` has them
    *("store_key", "auxiliary_api_key"),  # others can read a command line: the environment has them
    *("background", "soft_ratio", "summarize_on_prefix"),  # of an agent's requests, not of a file
)
"""Options of `CompressorConfig` that are none of a command."""

SHORT = {
    "context_window": "--window",
    "protect_last_n_tokens": "--keep-tokens",
    "auxiliary_api_base": "--api-base",
    "timeout_seconds": "--timeout",
}
"""Options that have a shorter name too; the others are written as in Python, with dashes."""

TAKES: dict[str, tuple[Any, str | None]] = {
    "int": (int, "N"),
    "float": (float, "NUMBER"),
    "str": (str, "TEXT"),
    "bool": (bool, None),
    "tuple[str, ...]": (list[str], "TEXT"),
    "Mapping[str, str]": (list[str], "NAME=VALUE"),
}
"""Of each type of a field, None aside: the type of its option, and what stands for a value."""

UNITS = {
    **dict.fromkeys(("window", "reserve", "floor", "tokens"), "TOKENS"),
    **dict.fromkeys(("model", "models"), "MODEL"),
    **dict.fromkeys(("ratio", "share"), "RATIO"),
    "base": "URL",
    "seconds": "SECONDS",
}
"""What stands for a value where the last word of the name says more than the type."""

MEANINGS = CompressorConfig.meanings()


def without(*names: str) -> tuple[str, ...]:
    """The names of all options that make sense on a command line, but these."""
    left_out = (*ELSEWHERE, *names)
    return tuple(name for name in CompressorConfig.names() if name not in left_out)


BUDGET = ("context_window", "output_reserve", "trigger_ratio", "target_ratio", "token_floor")
"""Options that a target takes the place of."""

MASKING = ("tool_policies", "mask_above_tokens", "mask_keep_recent_tokens", "large_result_share")
"""Options of masks, and of results that are archived at once."""

ASKING = (
    *("auxiliary_api_base", "fallback_models", "shown_message_tokens", "summary_instructions"),
    *("summary_prompt", "verify_with", "summary_max_retries", "timeout_seconds"),
)
"""Options of requests to the auxiliary model."""

WRITING = ("auxiliary_model", *ASKING, "summary_target_tokens", "redact_secrets", "redact_archive")
"""Options of what is written by a compression."""

OfFile = Annotated[CompressorConfig, without()]


def _of_config(name: str) -> inspect.Parameter:
    """The option that a field of the configuration is."""
    field = CompressorConfig.__dataclass_fields__[name]
    typed, *nothing = str(field.type).split(" | ")
    kind, metavar = TAKES[typed]
    metavar = UNITS.get(name.split("_")[-1], metavar)
    if nothing and field.default is not None:  # None is a value of its own
        kind, metavar = str, f"{metavar}|none"
    long = "--" + name.replace("_", "-")
    names = [f"{long}/--no-{long[2:]}"] if kind is bool else [long]
    if name in SHORT:
        names.insert(0, SHORT[name])
    first, *more = re.split(r"(?<=\.)\s+(?=[A-Z])", MEANINGS[name])
    help = [first]
    if isinstance(field.default, (int, float)):
        usual = "on" if field.default is True else f"{field.default:,g}"
        help = [f"{first.rstrip('.')} ({usual})."]
    instead = "Else " if field.default is None else "none: "
    help += [one.replace("None: ", instead) for one in more if one.startswith("None: ")]
    if kind == list[str]:
        help.append("Repeatable.")
    described = typer.Option(*names, metavar=metavar, help=" ".join(help))
    annotation: Any = Annotated[Optional[kind], described]  # noqa: UP045  # a value, not a type
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _configured(**given: Any) -> CompressorConfig:
    """The configuration with what was given on the command line; None and [] mean not given."""
    said = {name: _value(name, value) for name, value in given.items() if value not in (None, [])}
    idle = next((name for name in ASKING if name in said), None)
    if idle is not None and "auxiliary_model" not in said:
        raise Unusable(f"{idle}: does nothing without auxiliary_model, no model is asked")
    return CompressorConfig(**said)


def _value(name: str, given: Any) -> Any:
    """A field's value: of NAME=VALUE a mapping; one word alone ("keep_all") is the value itself."""
    field = CompressorConfig.__dataclass_fields__[name]
    if str(field.type).startswith("Mapping"):
        if len(given) == 1 and "=" not in given[0]:
            return given[0]
        pairs = (one.partition("=") for one in given)
        return {key: value for key, _, value in pairs}
    if not isinstance(given, str) or not isinstance(field.default, (int, float)):
        return given
    if given.lower() == "none":
        return None
    if isinstance(field.default, int):
        return whole("--" + name.replace("_", "-"), given)
    with contextlib.suppress(ValueError):  # the configuration says what is wrong with a text
        return float(given)
    return given


def with_window(config: CompressorConfig) -> CompressorConfig:
    """The configuration; where no window and no model was given, with the usual guess, unlogged."""
    known = config.context_window is not None or config.model is not None
    return config if known else replace(config, context_window=GUESSED_WINDOW)


# ---------------------------------------------------------------- sessions


def _session_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The sessions of the store on the command line, for a shell that completes."""
    given = context.params
    place = Place(store=given.get("store"), namespace=given.get("namespace") or "default")
    try:
        with place.open() as store:
            found = store.sessions(place.namespace)
    except CompressorError:
        return []  # a shell that completes has nowhere to say what is wrong
    names = (info.id for info in found if info.id.startswith(incomplete))
    return [name for name in names if name == one_line(name)]  # a shell prints them as they are


_SESSION: Any = {"metavar": "SESSION", "help": "Its stable id, or any of its epochs'."}
SessionId = Annotated[str, typer.Argument(**_SESSION, autocompletion=_session_ids)]

# ---------------------------------------------------------------- groups of options

STORED_WHEN = (
    "A session is stored when it is first compressed: by an agent with "
    "CompressorContext(store_url=...) or PRAISON_COMPRESSOR_STORE, or by "
    "praison-compressor compress FILE --store URL --session ID."
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A store, and whose sessions in it are meant."""

    store: Annotated[
        str | None,
        option(
            "--store",
            "URL",
            "Where the ledger is, such as sqlite:///ledger.db; else what PRAISON_COMPRESSOR_STORE "
            "says. PRAISONAI_SESSION_KEY opens an encrypted one.",
        ),
    ] = None
    namespace: Annotated[str, option("--namespace", "NAME", "The tenant.")] = "default"

    @contextlib.contextmanager
    def open(self, *, new: bool = False) -> Iterator[SqlStore]:
        """The store at the URL, else where the environment says, else in the user's data directory.

        The key of an encrypted one is in the environment: on a command line others would read it.
        A ledger that is not there is made with `new` alone: a mistyped path is no empty store.
        """
        from ..ledger.sql.database import default_path
        from ..ledger.sql.store import open_store

        config = CompressorConfig(store_url=self.store).with_environment()
        encrypted = config.store_key is not None and not default_path().exists()
        url = config.store_url or default_path(encrypted=encrypted)
        store = open_store(url, key=config.store_key)
        try:
            if not new and not store.is_there():
                raise StoreUnavailable(
                    f"{store.place}: there is no such file, or no ledger in it; check --store. "
                    + STORED_WHEN
                )
            yield store
        finally:
            store.close()


@dataclass(frozen=True, kw_only=True)
class Reading(Place):
    """A transcript in a file, and how it is to be read."""

    file: File
    target_tokens: Annotated[
        int | None, option("--target", "TOKENS", "A view of at most so many, whatever the window.")
    ] = None
    force: Annotated[bool, flag("--force", "Compress although the transcript fits.")] = False
    conversation: Conversation = None
    session: Annotated[
        str | None, option("--session", "ID", "The session it belongs to, in the store.")
    ] = None

    def configured(self, config: CompressorConfig) -> CompressorConfig:
        """The configuration with its store."""
        return replace(with_window(config), store_url=self.store, namespace=self.namespace)

    def absent(self) -> str | None:
        """The store that is named and was not made yet; None where there is one, or none named."""
        url = CompressorConfig(store_url=self.store).with_environment().store_url
        if url is None:
            return None
        with self.open(new=True) as store:
            return None if store.is_there() else store.place

    @property
    def call(self) -> dict[str, Any]:
        """What it asks of one call of the compressor."""
        return {
            "session_id": self.session,
            "target_tokens": self.target_tokens,
            "force": self.force,
        }
