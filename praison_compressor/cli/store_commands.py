"""List, search, restore, verify and erase what a store holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace

import click

from ..compressor.context_compressor import ContextCompressor
from ..config import CompressorConfig
from ..errors import HostMoved
from ..ledger.segments import Epoch, Session
from ..ledger.stores import Forgotten, SessionInfo
from ..ledger.words import Hit, distinct_words
from ..messages import Message
from ..messages.display import message_as_text, one_line, pluralize, utc_time
from ..messages.secrets import redactions_in
from ..recall.matches import snippet
from ..recall.passages import query_terms
from ..recall.references import Reference
from ..view.frame import is_framed
from .parameters import (
    AS_JSON,
    SCREEN_TOKENS,
    STORE,
    STORED_WHEN,
    Tenant,
    command,
    open_ledger,
    option,
    with_guessed_window,
    with_tenant,
)
from .terminal import (
    FOUND_FAULT,
    Block,
    Line,
    Table,
    Unusable,
    load_transcript,
    print_answer,
    print_complaint,
    undone_note,
    write_messages,
)


@command
@with_tenant
@AS_JSON
def sessions(tenant: Tenant, as_json: bool) -> None:
    """List the sessions of a store, the last used first.

    $ praison-compressor sessions --store ledger.db
    """
    infos = tenant.store.sessions(tenant.namespace)
    print_answer(infos, [_sessions_table(infos)] if infos else _no_sessions(tenant), as_json)


def _sessions_table(infos: Iterable[SessionInfo]) -> Table:
    rows = [
        (
            info.id,
            info.parent_id,
            f"{info.compressions:,}{undone_note(info.undone)}",
            utc_time(info.updated) or "-",
        )
        for info in infos
    ]
    return Table(("session", "parent", "compressions#", "last used"), rows, spare=("parent",))


def _no_sessions(tenant: Tenant) -> Iterator[str]:
    yield f"No sessions in namespace {tenant.namespace!r} of {tenant.store.location}."
    others = tenant.store.namespaces()
    yield f"Sessions exist in: {', '.join(others)} (--namespace NAME)." if others else STORED_WHEN


@command
@click.argument("session")
@option("--forks", "Include its forks.")
@with_tenant
@AS_JSON
def lineage(session: str, forks: bool, tenant: Tenant, as_json: bool) -> None:
    """Show a session's chain of epochs, root first.

    Each compression and each undo opened one epoch.

    $ praison-compressor lineage audit --forks --store ledger.db
    """
    tenant.find_session(session)
    epochs = (tenant.store.tree if forks else tenant.store.lineage)(tenant.namespace, session)
    lines = (
        f"{'    ' * depth}{epoch.id}  ({origin} {utc_time(epoch.created) or '-'})"
        for depth, origin, epoch in tree_rows(epochs)
    )
    print_answer(epochs, lines, as_json)


def tree_rows(epochs: Iterable[Epoch]) -> Iterator[tuple[int, str, Epoch]]:
    """Yield depth, origin and epoch for each epoch, in order.

    A fork is one level deeper than its parent. The origin is "began", "compressed", "undo" or
    "fork".
    """
    depth: dict[str, int] = {}
    last: dict[str, str] = {}
    for epoch in epochs:
        before = last.get(epoch.session_id)
        is_fork = before is None and epoch.parent_id in depth
        depth[epoch.id] = depth.get(before or epoch.parent_id or "", 0) + is_fork
        last[epoch.session_id] = epoch.id
        origin = "undo" if epoch.undoes else "compressed" if before else "began"
        yield depth[epoch.id], "fork" if is_fork else origin, epoch


# ---------------------------------------------------------------- search


@command
@click.argument("query")
@option("--session ID", "Search only this session.")
@option("--limit N", "Show at most N passages. Default: 10.", default=10)
@with_tenant
@AS_JSON
def search(query: str, session: str | None, limit: int, tenant: Tenant, as_json: bool) -> None:
    """Find messages of stored sessions by their words, best first.

    QUERY has the words to find, as in the agent's search tool. `show SESSION REFERENCE` reads a
    message. A message that was never compressed has no reference: `restore` writes the transcript
    with all messages. With --json each message has the digest that `forget` takes.

    $ praison-compressor search "port 9090" --session audit --store ledger.db
    """
    if not distinct_words(query):
        raise Unusable(f"{one_line(query)!r}: expected words to find")
    if limit < 1:
        raise Unusable(f"--limit={limit}: expected a whole number, 1 or more")
    if session is not None:
        tenant.find_readable_session(session)
    hits = tenant.store.search(tenant.namespace, query, session, limit)
    names = dict.fromkeys(hit.session_id for hit in hits)
    stored = {name: tenant.store.open(tenant.namespace, name) for name in names}
    blocks: list[Block] = []
    for name in names:
        blocks.append(Line(name, "bold"))
        session_hits = [hit for hit in hits if hit.session_id == name]
        if any(hit.entry for hit in session_hits):
            blocks.append(tenant.recall(stored[name]).search(query, limit, SCREEN_TOKENS))
        blocks += [_uncompressed_hit(hit, query) for hit in session_hits if not hit.entry]
    value = [{**asdict(hit), "reference": _reference(hit, stored[hit.session_id])} for hit in hits]
    print_answer(value, blocks or ["Nothing found."], as_json)


MOST_LINE_CHARS = 240
"""A message that was never compressed is cut to this length."""


def _uncompressed_hit(hit: Hit, query: str) -> str:
    text = snippet(message_as_text(hit.message), query_terms(query), MOST_LINE_CHARS)
    return f"(not compressed) {hit.message.get('role')}: {text}"


def _reference(hit: Hit, session: Session) -> str | None:
    hashes = [entry.hash for entry in session.entries]
    return str(Reference(hashes.index(hit.entry) + 1, hit.ordinal + 1)) if hit.entry else None


# ---------------------------------------------------------------- restore, verify


@command
@click.argument("session")
@option("--view FILE", "A view of the session: originals replace its summaries.")
@option("--out FILE", "Write there. Default: -, which is stdout.", default="-")
@with_tenant
@AS_JSON
def restore(session: str, view: str | None, out: str, tenant: Tenant, as_json: bool) -> None:
    """Write a session's transcript, as of its last request or `ContextCompressor.save`.

    With --view the command writes the transcript of that view. Secrets that the ledger redacted
    stay redacted.

    $ praison-compressor restore audit --store ledger.db --out whole.jsonl
    """
    tenant.find_readable_session(session)
    # The window does not matter here. It is set so that the compressor does not report that it
    # guesses one.
    config = with_guessed_window(CompressorConfig(namespace=tenant.namespace))
    compressor = ContextCompressor(config, store=tenant.store)
    view_messages = None if view is None else load_transcript(view)
    messages = compressor.verbatim(view_messages, session_id=session)
    write_messages(out, messages, source=view or "-")
    differences = list(_difference_notes(messages))
    if out == "-":
        for difference in differences:
            print_complaint(difference, kind="note: ")
        return
    value = {"session": session, "messages": len(messages), "out": out, "differences": differences}
    count = f"{pluralize(len(messages), 'message')} written to {out}"
    notes = [Line(f"{difference}.", "yellow") for difference in differences]
    print_answer(value, [count, *notes], as_json)


def _difference_notes(messages: Sequence[Message]) -> Iterator[str]:
    summaries = sum(map(is_framed, messages))
    if summaries:
        count = pluralize(summaries, "summary", "summaries")
        yield f"{count} left, unknown to this session's ledger"
    redacted = redactions_in(messages)
    if redacted:
        yield f"{pluralize(redacted, 'secret')} redacted; the ledger never stored the originals"


@command
@click.argument("session", required=False)
@STORE
@option("--namespace NAME", "Only this tenant.")
@AS_JSON
def verify(
    session: str | None, store_url: str | None, namespace: str | None, as_json: bool
) -> None:
    """Compute every hash of the ledger again, and compare.

    Exits with code 1 when a hash differs.

    $ praison-compressor verify audit --store ledger.db
    """
    with open_ledger(CompressorConfig(store_url=store_url)) as store:
        if session is not None:
            namespace = namespace or CompressorConfig.namespace
            Tenant(store, namespace, store_url).find_readable_session(session)
        faults = store.verify(namespace, session)
        checked = session or store.location
        # A mistyped namespace must not pass as a sound ledger.
        nothing: list[Block] = []
        if namespace is not None and namespace not in store.namespaces():
            nothing += _no_sessions(Tenant(store, namespace, store_url))
    sound = [f"Sound: every hash and every original of {checked} agrees."]
    blocks: list[Block] = [Line(str(fault), "red") for fault in faults]
    print_answer({"sound": not faults, "faults": faults}, blocks or nothing or sound, as_json)
    if faults:
        raise click.exceptions.Exit(FOUND_FAULT)


# ---------------------------------------------------------------- forget


@command
@click.argument("target", required=False)
@option("--yes", "Do not ask.")
@with_tenant
@AS_JSON
def forget(target: str | None, yes: bool, tenant: Tenant, as_json: bool) -> None:
    """Erase a session or a message, and every summary of it.

    TARGET is a session, or a message's digest sha256:... Nothing brings the messages back. Each
    summary of an erased message is erased too. So is each later summary, because its writer read
    the erased ones. The chain keeps a tombstone and still verifies. A fork loses the messages that
    it inherited. Without TARGET the command clears freed pages that an earlier run could not clear.

    $ praison-compressor forget audit --yes --store ledger.db
    """
    if target is None:
        cleared = tenant.store.clear_pages()
        line = "No freed page holds old bytes." if cleared else Line(_PAGES_LEFT, "yellow")
        print_answer({"pages_cleared": cleared}, [line], as_json)
        return
    # A target that does not exist is an error before any question.
    if target.startswith("sha256:"):
        tenant.store.find_message(tenant.namespace, target)
    else:
        tenant.find_readable_session(target)
    question = f"Erase {one_line(target)} for good, and with it what its forks inherited?"
    if not yes and not _is_confirmed(question):
        raise Unusable("nothing was erased; --yes erases without a question")
    forgotten = tenant.store.forget(tenant.namespace, target)
    forgotten = replace(forgotten, left=_host_leftovers(forgotten.sessions))
    print_answer(asdict(forgotten), _forgotten_lines(forgotten), as_json)


def _is_confirmed(question: str) -> bool:
    """Ask the user; without a terminal the answer is no."""
    try:
        return click.confirm(question, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        click.echo(err=True)
        return False


_PAGES_LEFT = "Freed pages may still hold erased text; run `forget` without a target later."


def _host_leftovers(sessions: Sequence[str]) -> tuple[str, ...]:
    try:
        from ..praisonai.agent_ledger import default_host_store, host_leftovers
    except HostMoved as error:
        return (f"the host's own sessions, which were not looked up: {error}",)
    return host_leftovers(default_host_store(), sessions)


def _forgotten_lines(forgotten: Forgotten) -> Iterator[Block]:
    messages = pluralize(forgotten.messages, "message")
    yield f"Erased: {messages}, {pluralize(forgotten.segments, 'segment')}."
    if forgotten.other_sessions:
        names = ", ".join(forgotten.other_sessions)
        yield Line(f"Other sessions that had some of these messages: {names}.", "yellow")
        left = (
            "A fork lost the messages that it inherited. A session's own messages are still there."
        )
        yield Line(left, "yellow")
    for sentence in forgotten.left:
        yield Line(f"Left: {sentence}.", "yellow")
    if not forgotten.pages_cleared:
        yield Line(_PAGES_LEFT, "yellow")
