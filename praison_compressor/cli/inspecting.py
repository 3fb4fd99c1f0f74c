"""`inspect`: what a compression would keep, mask and summarize, and why, without doing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from .. import ContextCompressor
from ..budget import Budget
from ..facts import Domain, Facts, extract
from ..layout import Layout
from ..messages import Message, text_of, tool_calls_of
from ..models import Limits, model_limits
from ..plan import Plan
from . import parts, transcripts
from .failures import guarded
from .options import (
    AsJson,
    Conversation,
    File,
    Force,
    ForModel,
    KeepTokens,
    Namespace,
    SessionOption,
    Store,
    Target,
    Window,
    config_of,
    window_of,
)
from .parts import Part
from .terminal import Screen, excerpt, number

__all__ = ["inspect"]

Messages = Annotated[
    bool, typer.Option("--messages", help="A line for each message: its fate and its tokens.")
]

KINDS = {
    "user": "things the user said",
    "files": "files",
    "commands": "commands",
    "errors": "errors",
    "decisions": "decisions",
    "open_work": "open threads",
    "identifiers": "identifiers",
}


@dataclass(frozen=True)
class Outlook:
    """What the compressor sees and would do."""

    layout: Layout
    plan: Plan | None
    budget: Budget
    limits: Limits
    masks: Mapping[int, Message]
    compressor: ContextCompressor

    @property
    def parts(self) -> list[Part]:
        tokens = self.compressor.tokens
        masked = {index: tokens.message(message) for index, message in self.masks.items()}
        return parts.of_layout(self.layout, self.plan, masked)

    @property
    def opens(self) -> int:
        return self.compressor.tokens.messages([])

    @property
    def facts(self) -> Facts | None:
        """What was found in the messages that would be summarized."""
        jobs = self.plan.jobs if self.plan is not None else ()
        found = [m for job in jobs for m in self.layout.transcript.messages[job.start : job.end]]
        domain = Domain.of(self.compressor.config)
        return extract(found, domain=domain) if found else None


@guarded
def inspect(
    file: File,
    for_model: ForModel = None,
    window: Window = None,
    keep_tokens: KeepTokens = None,
    target: Target = None,
    force: Force = False,
    messages: Messages = False,
    conversation: Conversation = None,
    session: SessionOption = None,
    store: Store = None,
    namespace: Namespace = "default",
    as_json: AsJson = False,
) -> None:
    """Show what would be kept, masked and summarized, and why, without doing it.

    Asks no model and writes nothing. Takes the options of `compress`.
    """
    given = transcripts.read_one(file, conversation)
    compressor = ContextCompressor(
        config_of(
            model=for_model,
            context_window=window_of(window, for_model),
            protect_last_n_tokens=keep_tokens,
            store_url=store,
            namespace=namespace,
        )
    )
    seen = _outlook(compressor, given, session=session, target=target, force=force)
    screen = Screen()
    if as_json:
        screen.json(_as_json(file, seen))
        return
    _print(screen, seen, assumed=window is None and for_model is None and target is None)
    if messages:
        _print_messages(screen, seen)


def _outlook(
    compressor: ContextCompressor,
    given: Sequence[Any],
    *,
    session: str | None,
    target: int | None,
    force: bool,
) -> Outlook:
    """The compressor's own look at a call, taken before it would act."""
    call = compressor._call(
        given, {"session_id": session, "target_tokens": target, "force": force, "extends": False}
    )
    look = compressor._projector.look(call)
    chosen = look.plan.masks if look.plan is not None else ()
    found = dict(compressor._projector.masked(call, look.layout)) if chosen else {}
    return Outlook(
        layout=look.layout,
        plan=look.plan,
        budget=call.budget,
        limits=model_limits(compressor.config.model, compressor.config.context_window),
        masks={index: found[index] for index in chosen},
        compressor=compressor,
    )


def _print(screen: Screen, seen: Outlook, *, assumed: bool) -> None:
    for line in _budget_lines(seen, assumed):
        screen.say(line)
    screen.say()
    rows = seen.parts
    jobs = sum(part.to_write for part in rows)
    written = sum(1 if part.segment or part.to_write else part.messages for part in rows)
    what = [_why(part, seen) for part in rows]
    parts.show(screen, rows, what, view_messages=written, opens=seen.opens)
    screen.say(_verdict(seen, jobs))
    facts = seen.facts
    if facts is not None:
        counts = ((kind, len(getattr(facts, kind))) for kind in KINDS)
        said = ", ".join(f"{number(count)} {KINDS[kind]}" for kind, count in counts if count)
        screen.say(f"Found there, for the summary to hold: {said or 'nothing special'}.")


def _budget_lines(seen: Outlook, assumed: bool) -> Iterator[str]:
    budget, tokens = seen.budget, seen.compressor.tokens
    if budget.limit == budget.trigger:
        yield f"Target {number(budget.target + seen.opens)} tokens, whatever the window."
    else:
        source = (
            "assumed; --for-model or --window says otherwise" if assumed else seen.limits.source
        )
        yield (
            f"Window {number(seen.limits.window)} tokens ({source}), "
            f"{number(budget.limit)} of them usable: compress above {number(budget.trigger)}, "
            f"down to {number(budget.target)}."
        )
    yield f"Tokens: {tokens.source}{', exact' if tokens.exact else ''}."


def _why(part: Part, seen: Outlook) -> str:
    budget, layout = seen.budget, seen.layout
    masked = f"; {part.masked} tool outputs become one line each" if part.masked else ""
    if part.to_write:
        return f"would be summarized, in at most {number(part.tokens_after)} tokens"
    if part.segment is not None:
        return f"found in the ledger ({part.segment.method}): not paid for again"
    if part.name == "head":
        step = "first exchange" if part.messages > layout.transcript.leading + 1 else "task"
        return f"kept: system prompt and {step} (head_tokens {number(budget.head)}){masked}"
    if part.name == "tail":
        return f"kept: the newest (protect_last_n_tokens {number(budget.tail)}){masked}"
    if part.name == "all":
        return f"kept{masked}"
    roles = {
        str(layout.transcript.messages[part.start + n].get("role")) for n in range(part.messages)
    }
    newest = "the newest user message" if roles == {"user"} else "pinned, or too small to gain"
    return f"kept: {newest}{masked}"


def _verdict(seen: Outlook, jobs: int) -> str:
    size = seen.layout.size()
    if seen.plan is None and size <= seen.budget.trigger:
        left = number(seen.budget.trigger - size)
        return f"Nothing would be done: it fits, {left} tokens below the trigger."
    if seen.plan is None:
        return "Nothing would be done: a compression would not gain enough to be worth it."
    if seen.plan.masks:
        return f"Masking alone is enough: {len(seen.plan.masks)} tool outputs, no model call."
    return f"{jobs} {'summary' if jobs == 1 else 'summaries'} would be written."


def _print_messages(screen: Screen, seen: Outlook) -> None:
    rows, styles = [], []
    layout = seen.layout
    for part in seen.parts:
        for index in range(part.start, part.start + part.messages):
            message = layout.transcript.messages[index]
            fate = _fate(part, index, seen)
            rows.append(
                [
                    str(index),
                    str(message.get("role")),
                    fate,
                    number(layout.tokens[index]),
                    excerpt(_says(message), 80),
                ]
            )
            styles.append({"keep": "", "mask": "cyan"}.get(fate, "yellow"))
    screen.table(["index#", "role", "fate", "tokens#", "begins"], rows, styles=styles)


def _fate(part: Part, index: int, seen: Outlook) -> str:
    if part.to_write or part.segment is not None:
        return part.name
    return "mask" if index in seen.masks or index in seen.layout.replaced else "keep"


def _says(message: Message) -> str:
    calls = [f"{call.name}({call.arguments})" for call in tool_calls_of(message)]
    return " ".join([*calls, text_of(message)])


def _as_json(file: str, seen: Outlook) -> dict[str, Any]:
    layout, facts = seen.layout, seen.facts
    return {
        "file": file,
        "window": asdict(seen.limits),
        "budget": asdict(seen.budget),
        "tokenizer": {
            "source": seen.compressor.tokens.source,
            "exact": seen.compressor.tokens.exact,
        },
        "tokens": layout.size() + seen.opens,
        "would_compress": seen.plan is not None,
        "repaired": layout.transcript.repaired,
        "parts": [
            {
                "part": part.name,
                "first_index": part.start,
                "messages": part.messages,
                "tokens_before": part.tokens_before,
                "tokens_after": part.tokens_after,
                "masked": part.masked,
                "would_be_written": part.to_write,
                "why": _why(part, seen),
            }
            for part in seen.parts
        ],
        "facts": {kind: len(getattr(facts, kind)) for kind in KINDS} if facts else None,
        "messages": [
            {
                "index": index,
                "role": layout.transcript.messages[index].get("role"),
                "tokens": layout.tokens[index],
                "fate": _fate(part, index, seen),
            }
            for part in seen.parts
            for index in range(part.start, part.start + part.messages)
        ],
    }
