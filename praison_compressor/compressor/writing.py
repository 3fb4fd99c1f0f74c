"""Write: the texts that a plan asks for, by a model or without one."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from ..config import Event, Hook
from ..errors import SummaryError
from ..facts import Rule
from ..facts.passages import passages
from ..facts.wording import AGREES
from ..ledger.segments import Usage
from ..messages import Message
from ..summaries.prompts import rendering
from ..summaries.protocol import Brief, Prefix, Written
from ..summaries.static import RuleList, carried_on, without_added
from ..summaries.threads import begin
from ..summaries.writer import SummaryWriter
from ..tokens.counter import TokenCounter
from ..view.frame import unframe
from ..view.jobs import SMALLEST_SUMMARY, Job, view_tokens
from ..view.plan import Plan, tail_to_give, with_longer_tail, with_shorter_tail
from .call import Look

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Draft:
    """A plan and the texts for its jobs, in their order."""

    plan: Plan
    texts: Sequence[Written]
    recorded: bool = True
    """Whether it is to be committed: only then do its references lead anywhere."""


@dataclass(frozen=True)
class Writing:
    """Has plans written, with a model's money or without; thread-safe."""

    writer: SummaryWriter
    tokens: TokenCounter

    async def write(self, look: Look, plan: Plan, spent: Sequence[Usage] = ()) -> Draft:
        """The plan's texts by a model where one is worth its call; `spent`, on texts that came to
        nothing, is on their bill too."""
        call, name = look.call, look.session.id
        coming = [
            self.writer.write(brief, model=call.model, session_id=name, force=call.force)
            for brief in briefs_for(look, plan)
        ]
        texts = await asyncio.gather(*coming)
        if texts:
            texts[0] = replace(texts[0], usage=sum(spent, texts[0].usage))
        return await asyncio.to_thread(self._refitted, look, Draft(plan, texts))

    def static(self, look: Look, plan: Plan, *, recorded: bool = False) -> Draft:
        """The plan's texts without a model, with references where they are to be recorded."""
        texts = [self.writer.static(brief) for brief in briefs_for(look, plan, recorded=recorded)]
        return self._refitted(look, Draft(plan, texts, recorded=recorded))

    def _refitted(self, look: Look, draft: Draft) -> Draft:
        """The draft with a longer tail, where its texts did not fill their room.

        How long a text gets is known only when it is written. A model's prose stays as it is, and
        no model is asked again; the facts beside it are read anew.
        """
        budget = look.budget
        over = self._size(look, draft) - budget.limit
        if over > 0 and draft.plan.jobs:
            return self._given_way(look, draft, over)
        for _ in range(ROUNDS if draft.plan.jobs else 0):
            spare = budget.target - self._size(look, draft)
            if spare < LEFT_OVER * budget.target:
                break
            *others, last = draft.texts
            size = self.tokens.message(last.message)
            plan = with_longer_tail(look.layout, budget, draft.plan, spare, size)
            if plan is None:
                break
            try:
                brief = briefs_for(look, plan, recorded=draft.recorded)[-1]
                text = self.writer.again(brief, last, look.call.model)
            except SummaryError:
                break
            wider = replace(draft, plan=plan, texts=[*others, replace(text, usage=last.usage)])
            if self._size(look, wider) > budget.target:
                break
            draft = wider
        return draft

    def _given_way(self, look: Look, draft: Draft, over: int) -> Draft:
        """The draft with a shorter tail, whose text is too long by so much; static where the tail
        has nothing that may go."""
        plan = with_shorter_tail(look.layout, draft.plan, over)
        if plan is not None:
            small = briefs_for(look, plan, recorded=draft.recorded)[-1]
            shorter = replace(draft, plan=plan, texts=[*draft.texts, self.writer.static(small)])
            if self._size(look, shorter) <= look.budget.limit:
                return shorter
        briefs = briefs_for(look, draft.plan, recorded=draft.recorded)
        paid = zip(map(self.writer.static, briefs), draft.texts, strict=True)
        return replace(draft, texts=[replace(text, usage=old.usage) for text, old in paid])

    def _size(self, look: Look, draft: Draft) -> int:
        """Tokens of the view with these texts in it."""
        gone = sum(view_tokens(look.layout, job.start, job.end) for job in draft.plan.jobs)
        texts = sum(self.tokens.message(text.message) for text in draft.texts)
        return look.layout.size() - gone + texts


ROUNDS = 3

LEFT_OVER = 0.02
"""Share of the target that is not worth another round."""


# -------------------------------------------------------------- the hook before it


def begun(look: Look, plan: Plan) -> Event:
    """The event of a compression that is about to be written, in numbers."""
    call = look.call
    numbers = {
        "tokens": look.layout.size(),
        "messages": len(look.layout.tokens),
        "trigger": call.budget.trigger,
        "target": call.budget.target,
        "limit": call.budget.limit,
        "to_summarize": sum(job.end - job.start for job in plan.jobs),
        "to_mask": len(plan.masks + plan.excerpts),
        "forced": call.force,
    }
    return Event("started", look.session.id, numbers)


_asking: ContextVar[tuple[str, str] | None] = ContextVar("praison_compressor_hook", default=None)


def is_asked_about(key: tuple[str, str]) -> bool:
    """Whether this runs in a hook that is asked about a compression of that session."""
    return _asking.get() == key


async def asked(
    hook: Hook | None, event: Event, key: tuple[str, str]
) -> str | Literal[False] | None:
    """What the hook says of a compression; None where it fails, for then it has refused nothing."""
    if hook is None:
        return None
    token = _asking.set(key)
    try:
        # In a thread, for it may block: of an async one only the making of its coroutine is.
        said = await asyncio.wrap_future(begin(lambda: hook(event)))
        said = await said if inspect.isawaitable(said) else said
    except (Exception, SystemExit):
        logger.exception("session %s: the hook before a compression failed", event.session_id)
        return None
    finally:
        _asking.reset(token)
    if said is None or said is False or isinstance(said, str):
        return said
    logger.warning("the hook before a compression gave %r: expected None, False or text", said)
    return None


# -------------------------------------------------------------- briefs


PROSE_SHARE = 1 / 3
"""Of a summary's room, asked of the model at most. A weak model writes twice what it is asked for:
a third is left then for the facts that its text lacks."""


def briefs_for(look: Look, plan: Plan, *, recorded: bool = True) -> list[Brief]:
    """What each of the plan's jobs is written from, in their order."""
    # The number that the segment will have in the session's ledger once it is committed.
    first = len(look.layout.segments) + 1
    messages = look.layout.transcript.messages
    outside = (*messages[: look.layout.head_end], *messages[plan.tail_start :])
    visible = "\n".join(rendering(outside))
    spare = tail_to_give(look.layout, plan)
    names = [f"s{n}" if recorded else "" for n in range(first, first + len(plan.jobs))]
    return [
        _brief(look, job, name, visible, spare, rules)
        for job, name, rules in zip(plan.jobs, names, _rule_lists(look, plan, names), strict=True)
    ]


def _rule_lists(look: Look, plan: Plan, names: Sequence[str]) -> list[RuleList]:
    """The rules that each text carries: the last with room for them all that the view leaves out
    up to its end, so that they stand together; one behind it those of its own stretch.

    A text of the present turn's steps carries them only where it is alone: a host may drop those
    steps when the turn ends, and the text goes with them.
    """
    messages = look.layout.transcript.messages
    found = look.rules
    turn = max(look.layout.transcript.users, default=0)
    large = [job for job in plan.jobs if job.room >= 2 * SMALLEST_SUMMARY] or [*plan.jobs]
    lasting = [job for job in large if job.start < turn] or large
    carrier = max(lasting, key=lambda job: job.end, default=None)
    references = _all_references(look, plan, names) if look.call.config.recall else {}
    lists = []
    for job in plan.jobs:
        if carrier is None or job.end < carrier.end:
            lists.append(RuleList())
            continue
        own = range(look.layout.head_end if job is carrier else job.start, job.end)
        request, asked = _open_request(messages, found) if job is carrier else ("", 0)
        said = request if asked in own else ""
        # What may not be dropped stands as it is.
        left_out = {index for index in own if look.layout.allowed[index]}
        lists.append(RuleList(_told(found, left_out), references, said, asked))
    return lists


GO_ON_WORDS = 4
UNSPACED_CHARS = 12
"""Of "yes, please go on": what is to be done, a message before says."""
REQUEST_CHARS = 800
MOST_SHORT = 3
"""Short messages that do not merely say to go on: behind more of "Now part 7." lies no open one."""
GOES_ON = re.compile(
    r"\W*(?:please\W+|bitte\W+)?(?:continue|go on|keep going|carry on|resume|next\W*$|more\W*$|"
    r"(?:mach )?weiter|poursui|sigue|continú|prossig|继续|続け)",
    re.I,
)


def _open_request(messages: Sequence[Message], rules: Sequence[Rule]) -> tuple[str, int]:
    """What the user asked for last, and where, if the newest message only says to go on.

    A message of nothing but rules asks for nothing.
    """
    is_newest, others = True, 0
    users = (n for n in reversed(range(len(messages))) if messages[n].get("role") == "user")
    for at, passage in ((n, p) for n in users for p in reversed([*passages([messages[n]])])):
        if passage.source != "user":
            continue
        asked = text = " ".join(passage.text.split())
        for rule in rules:
            asked = asked.replace(rule.text, "").replace(rule.lifted_by or rule.text, "")
        if len(asked.split()) > GO_ON_WORDS or (
            not asked.isascii() and len(asked) > UNSPACED_CHARS
        ):
            return ("", 0) if is_newest or len(text) > REQUEST_CHARS else (text, at)
        is_newest = False
        others += not (AGREES.match(asked) or GOES_ON.match(asked))
        if others > MOST_SHORT:
            break
    return "", 0


def _told(rules: Sequence[Rule], left_out: set[int]) -> tuple[Rule, ...]:
    """The rules that a list tells for these messages: those that hold, and the newest that do not:
    their words may stand above it as if they did."""
    newest = [rule for rule in rules if rule.until in left_out][-MOST_LIFTED:]
    return tuple(r for r in rules if r in newest or (r.holds and r.since in left_out))


MOST_LIFTED = 8


def _all_references(look: Look, plan: Plan, names: Sequence[str]) -> dict[int, str]:
    """By which the archive reads each message that the view leaves out after the plan."""
    numbers = {id(segment): n for n, segment in enumerate(look.layout.segments, 1)}
    runs = [
        (start, end, f"s{numbers[id(segment)]}")
        for start, end, segment in look.layout.standing()
        if id(segment) in numbers
    ]
    runs += [(job.start, job.end, name) for job, name in zip(plan.jobs, names, strict=True) if name]
    return {
        index: named
        for start, end, name in runs
        for index, named in enumerate(_references(look, start, end, name), start)
    }


def _references(look: Look, start: int, end: int, name: str) -> tuple[str, ...]:
    """By which the archive reads each message of a run: their places as they came.

    One that was made up in repair leads to the message before it; one that the archive had no room
    for leads nowhere.
    """
    origins = look.layout.transcript.origins[start:end]
    places = {o: n for n, o in enumerate(sorted(o for o in origins if o is not None), 1)}
    found, last, place = [], -1, 1
    for origin in origins:
        if origin is not None:
            last, place = origin, places[origin]
        found.append("" if last in look.dropped else f"{name}.{place}")
    return tuple(found)


def _brief(
    look: Look, job: Job, reference: str, visible: str, spare: int, rules: RuleList
) -> Brief:
    call = look.call
    layout, messages = look.layout, look.layout.transcript.messages
    # A static text is written anew from the originals; only a model's prose is carried on.
    carried = [segment for segment in job.folds if segment.method == "model"]
    prose_of = (carried_on(unframe(segment.rendered), segment.method) for segment in job.folds)
    covered = {i for t in layout.tiles if t.segment in carried for i in range(t.start, t.end)}
    kept = [segment for segment in layout.summaries() if segment not in job.folds]
    # A fold carries more than one segment did.
    prose = call.budget.prose_for(job.source_tokens) * (2 if carried else 1)
    return Brief(
        messages=messages[job.start : job.end],
        shown=tuple(messages[i] for i in range(job.start, job.end) if i not in covered),
        room=job.room,
        most=job.most,
        # A text that was paid for is worth more than the oldest steps of the tail.
        spare=spare if job.by_model else 0,
        tokens=job.source_tokens,
        facts=job.facts,
        words=job.words,
        prose=max(1, min(prose, int(job.room * PROSE_SHARE))),
        by_model=job.by_model,
        folded=tuple(filter(None, prose_of)),
        # The facts beside an earlier text stand in the view; read anew with each stretch they would
        # cost more than all the summaries do.
        earlier=tuple(without_added(unframe(segment.rendered)) for segment in kept),
        visible=visible,
        originals=messages,
        tools=call.tools or (),
        reference=reference,
        # Who cannot follow them has the room for facts instead: a third of a summary, on each fact.
        references=_references(look, job.start, job.end, reference)
        if reference and call.config.recall
        else (),
        recall=bool(call.config.recall),
        instructions=call.config.summary_instructions,
        prefix=_prefix(look, job),
        rules=rules,
    )


def _prefix(look: Look, job: Job) -> Prefix | None:
    """What the agent's last request began with; None where a summary cannot be asked on it.

    What has no tools from the caller may have some. The originals of a static summary are to be
    read again, and are not in the view.
    """
    call = look.call
    if not call.config.summarize_on_prefix or call.tools is None:
        return None
    if any(segment.method != "model" for segment in job.folds):
        return None
    before = look.layout.view(end=job.start)
    own = look.layout.view(job.start, job.end)
    return Prefix((*before, *own), own[0], call.tools, rolled=bool(job.folds))
