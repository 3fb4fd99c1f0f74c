"""The report: one page, complete in itself, that shows what happened and executes nothing."""

import re
import shutil
import subprocess
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import CompressorConfig, ContextCompressor, open_store
from praison_compressor.cli.report import render
from praison_compressor.cli.report_data import ReportData, data_of_session, data_of_transcript
from tests.helpers.command import SESSION
from tests.helpers.compressing import compressor
from tests.helpers.hosting import OPENAI, OUTGROWING, agent, chat, context
from tests.helpers.transcripts import audit

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)></pre></details>"
    "\x1b]0;owned\x07{{ 7 * 7 }}"
)


def test_a_sessions_bill_is_shown_after_a_restart(run, tmp_path):
    """After a restart `bill`, `report` and the page show a session's bill."""
    store = open_store(f"sqlite:///{tmp_path / 'ledger.db'}")
    ours = ContextCompressor(CompressorConfig(model="gpt-4o"), store=store)
    ours.compress_sync(audit(2), session_id="paid")
    details = {"cached_tokens": 1_000}
    used = {"prompt_tokens": 5_000, "completion_tokens": 9, "prompt_tokens_details": details}
    ours.record_usage(used, session_id="paid")
    ours.close()
    paid, without = run("bill", "paid").out.splitlines()
    assert paid == "Paid: 1 request, 5.0k input (1.0k cached), 9 output, $0.0113"
    assert without.startswith("Without praison_compressor: 5.0k input")
    assert run("bill", "paid", "--json").json["usage"]["cache_read_tokens"] == 1_000
    page = tmp_path / "page.html"
    assert paid in run("report", "paid", "--out", page).out
    assert paid in Page(page.read_text("utf-8")).text
    assert run("bill", "unknown").code == 4


def test_the_page_counts_requests_and_summaries_as_the_bill(host, run, tmp_path):
    """The page and the bill count an agent's requests alike."""
    made = agent(host, OPENAI, context(host, store_url=str(tmp_path / "ledger.db")))
    chat(made, OUTGROWING)
    made.context_compressor.save()
    session = made.context_compressor.session_id
    bill = run("bill", session, "--json").json
    assert (bill["requests"], bill["summaries"]["prompt_tokens"] > 0) == (len(OUTGROWING), True)
    found = run("report", session, "--out", "page.html", "--json").json
    assert found["requests"] == bill["requests"]
    html = Path("page.html").read_text("utf-8")
    summaries = bill["summaries"]
    read, written = summaries["prompt_tokens"], summaries["completion_tokens"]
    assert f"{bill['requests']} requests" in Page(html).text
    assert f"{read:,} tokens read, {written:,} written" in Page(html).text
    assert len(re.findall(r"<tr.*><td>\d+</td><td>[\d,]+</td>", html)) == len(OUTGROWING)


def test_a_bill_without_requests_says_who_fills_it(run, view):
    """The command line's own sessions have no bill: they send nothing to a model."""
    done = run("bill", SESSION)
    assert done.code == 0
    assert done.out.startswith(f"No request of {SESSION} is known. An agent's requests are billed")


class Page(HTMLParser):
    """What a browser would make of the page: elements, addresses, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in ("meta", "br", "img", "link", "input"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data"):
                self.addresses.append(str(value))
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def made(**options: Any) -> ContextCompressor:
    """Return a compressor with a small window."""
    return compressor(**{"context_window": 8_000, **options})


def lived(messages: list[dict[str, Any]], **options: Any) -> ReportData:
    """Return a transcript lived again, its tool outputs summarized."""
    compressor = made(tool_policies={"*": "summarize"}, **options)
    return data_of_transcript(messages, compressor, title="An audit")


@pytest.fixture(scope="module")
def evil():
    """Return the page of messages that hold elements, scripts and control characters."""
    messages = audit()
    for message in messages[2:]:
        message["content"] = f"{message['content'] or ''} {EVIL}"
    return render(lived(messages))


def test_the_page_loads_nothing(evil):
    """The page loads nothing from the network."""
    page = Page(evil)
    assert [address for address in page.addresses if not address.startswith("#")] == []
    assert page.handlers == []
    assert "default-src 'none'" in evil
    assert page.tags.count("script") == 3


def test_messages_of_the_page_are_text(evil):
    """Elements, scripts and templates in messages are text."""
    page = Page(evil)
    assert page.open == []
    assert "img" not in page.tags
    assert "alert(1)" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in evil


@pytest.fixture(scope="module")
def long():
    """Return a transcript of sixty turns, lived again."""
    return lived(audit(60))


def test_a_replayed_transcript_grows_and_its_views_fit(long):
    """A replayed transcript grows from request to request while the views fit the window."""
    assert (long.messages, long.points[-1].messages) == (len(audit(60)), 3 + 4 * 59 + 2 - 1)
    assert [point.request for point in long.points] == [*range(1, 121)]
    wholes = [point.whole for point in long.points]
    assert wholes == sorted(wholes)
    assert max(point.view for point in long.points) < 8_000 < wholes[-1]


def test_each_compression_cuts_the_view(long):
    """The view falls at each compression."""
    cuts = [index for index, point in enumerate(long.points) if point.is_compressed]
    assert len(cuts) == long.compressions > 1
    assert all(long.points[cut].view < long.points[cut - 1].view for cut in cuts)


def test_what_was_not_sent_is_priced(long):
    """Tokens that were not sent have the listed price."""
    assert long.tokens_not_sent == sum(point.whole - point.view for point in long.points)
    assert long.dollars_not_paid == pytest.approx(long.tokens_not_sent * long.price)
    assert "at the listed price" in Page(render(long)).text


def test_each_summary_has_a_card(long):
    """Each summary has its text, its request and its originals."""
    text = Page(render(long)).text
    standing = [card for card in long.cards if card.is_in_view]
    assert all(len([*card.originals()]) == len(card.segment.run) > 0 for card in standing)
    assert all(card.text.splitlines()[0] in text for card in long.cards)
    assert all(f"at request {long.epoch_requests[card.epoch]}" in text for card in long.cards)


def test_summaries_of_the_view_come_first(long):
    """Summaries in the view come before those folded into later ones."""
    text = Page(render(long)).text
    standing = [card for card in long.cards if card.is_in_view]
    assert 0 < len(standing) < len(long.cards)
    assert text.index(standing[0].text.splitlines()[0]) < text.index("folded into later ones")


def test_window_and_trigger_are_drawn_where_they_are_known():
    """The page has window and trigger where the window or the model is known."""
    known = lived(audit())
    assert (known.limits["window"], 0 < known.limits["trigger"] < 8_000) == (8_000, True)
    assert max(point.view for point in known.points) <= known.limits["window"]
    unknown = lived(audit(), model=None, context_window=None)
    assert unknown.limits == {}
    assert "of the window" not in Page(render(unknown)).text


def test_the_page_shows_the_compression_to_come():
    """The page previews the next compression if it gains."""
    data = lived(audit())
    (part,) = [part for part in data.next.parts if part.to_write]
    page = render(data)
    assert f"<code>{part.reference}</code></td><td>{part.messages}</td>" in page
    assert f"The text of {part.reference}" in Page(page).text
    assert "If it were compressed now" not in Page(render(lived(audit(1)[:2]))).text


BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_browser_draws_both_panels(tmp_path):
    """A browser draws two charts without an error."""
    page = tmp_path / "page.html"
    page.write_text(render(lived(audit())), encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}")
    command = [str(BROWSER), *options, "--enable-logging=stderr", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("<canvas") == done.stdout.count('class="u-legend') == 2
    assert "CONSOLE" not in done.stderr


@pytest.fixture
def page(tmp_path):
    """Return the path of a page."""
    return tmp_path / "page.html"


def test_report_writes_a_transcripts_page(file, page, run):
    """`report` writes the page of a transcript's file."""
    done = run("report", file, "--window", 8_000, "--out", page, "--json")
    assert done.code == 0, done.err
    assert done.json["compressions"] >= 1
    assert file.name in Page(page.read_text("utf-8")).text


def test_report_prints_a_page(file, run):
    """`--out -` prints the page alone to stdout."""
    printed = run("report", file, "--window", 8_000, "--out", "-")
    assert (printed.code, printed.out[:15]) == (0, "<!doctype html>")
    assert "compression" in printed.err


def test_report_writes_a_sessions_family(view, page, run, tmp_path):
    """`report` writes the page of a session with its compressions and forks."""
    with closing(open_store(f"sqlite:///{tmp_path / 'ledger.db'}")) as store:
        store.open("default", "the-fork", SESSION)
    stored = run("report", SESSION, "--out", page)
    assert stored.code == 0, stored.err
    assert SESSION in Page(page.read_text("utf-8")).text
    family = page.read_text("utf-8").partition('<ol class="family">')[2]
    assert [f'"{how}"' in family for how in ("began", "compressed", "fork")] == [True] * 3


def test_forgotten_words_are_not_on_the_page(view, page, run):
    """The page says "forgotten" in place of forgotten words."""
    digests = [hit["digest"] for hit in run("search", "FACT-3", "--json").json]
    assert {run("forget", digest, "--yes").code for digest in digests} == {0}
    assert run("report", SESSION, "--out", page).code == 0
    text = Page(page.read_text("utf-8")).text
    assert "forgotten; the chain keeps the link" in text
    assert "FACT-3" not in text


def test_a_store_that_has_only_what_was_compressed_says_so(tmp_path):
    """Without the whole transcript the page has only summaries."""
    ours = made(store_url=f"sqlite:///{tmp_path / 'ledger.db'}")
    ours.compress_sync(audit(40), session_id=SESSION)
    assert ours.save(audit(40)[:3], session_id=SESSION)
    stored = data_of_session(ours, SESSION)
    ours.close()
    assert (stored.points, stored.tokens_not_sent, stored.dollars_not_paid) == ((), 0, None)
    assert (len(stored.cards), stored.masks) == (1, ())
    assert "has not the whole transcript" in Page(render(stored)).text


def test_a_stored_session_takes_no_conversation(run, view):
    """`--conversation` with a session is refused: it chooses one of a file."""
    done = run("report", SESSION, "--conversation", 2)
    assert (done.code, "--conversation" in done.err) == (2, True)
