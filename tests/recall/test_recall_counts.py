"""An answer of recall counts, pairs and names; masks and schemas of the tools."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import praison_compressor
from praison_compressor import (
    CompressorConfig,
    ConfigError,
    ContextCompressor,
    MemoryStore,
    TokenCounter,
)
from praison_compressor.messages.responses import to_messages
from praison_compressor.recall.answers import (
    RANGE_TOKENS,
    READ,
    READ_TOKENS,
    SEARCH,
    SEARCH_TOKENS,
    TABLE_TOKENS,
    TEXT_TOKENS,
    TURN_TOKENS,
    api_of,
    schemas_for,
)
from praison_compressor.view.frame import IN_REACH, frame_summary
from tests.helpers.compressing import Model
from tests.helpers.native import to_native
from tests.helpers.talks import NAMESPACE, committed, count, holding, segment, talk, tools
from tests.helpers.transcripts import outputs, step, user

# ---------------------------------------------------------------- counted, paired, in view


@pytest.fixture
def ships():
    """Return the search of an archive in which 40 messages have the same words."""
    said = [user(f"Ship {n}: the crate is sealed.") for n in range(40)]
    return holding(said, talk(8, "alpha"))[0]


def test_all_matches_are_counted(ships):
    """A search counts all matches, also those that its answer has no room for."""
    assert "\n40 archived messages match\n" in ships("crate sealed")
    assert "\n40 archived messages match\n" in ships("crate sealed", 3, 200)


def test_matches_that_are_not_quoted_are_listed(ships):
    """Matches without a quote stand by reference and a few words."""
    answer = ships("crate sealed")
    assert "(23 more much like these: s1.17-39)" in answer
    assert "s1.16 user: Ship 15: the crate is sealed.\n" in answer
    assert "\ns1.1-11\n" in answer


def test_references_that_do_not_fit_are_counted():
    """A small answer counts the references that it leaves out."""
    scattered = [user(f"No {n}. " + "crate! " * (n % 2)) for n in range(99)]
    assert re.search(r"s1\.\d+ and \d+ more\n", holding(scattered)[0]("crate", 3, 100))


@pytest.mark.parametrize("query", ["Ship 7:", '"Ship 7:"'])
def test_exact_matches_are_counted_apart(ships, query):
    """Messages that have the query's very words are counted apart."""
    assert "\n1 archived message matches, 1 with these very words\n" in ships(query)


def test_a_search_without_a_match_says_so(ships):
    """The answer repeats the query that nothing matches."""
    assert "Nothing archived of this conversation matches 'barge'" in ships("barge")


def test_partial_matches_are_counted(ships):
    """If no message has all words, those with a part are counted."""
    answer = ships("sealed barge")
    assert "No archived message has all of it (none has barge); 40 have a part:" in answer


def test_every_store_counts_partial_matches_to_one_limit(store):
    """Every store counts at most 100 messages with a part of a query."""
    committed(store, "s", [user(f"Ship {n}: the crate is sealed.") for n in range(150)])
    assert "; 100 or more have a part:" in tools(store)[0]("sealed barge")


def test_a_word_that_no_message_has_is_named():
    """The answer names the query's word that no message has, also beside joined names."""
    search, _ = holding([user("FetchBranch: context.WithTimeout(ctx, 2)")])
    assert "none has sealed)" in search("FetchBranch timeout sealed")


def test_a_search_for_a_name_that_no_message_has_is_answered_briefly():
    """Messages with a query's words, but none of its names, get half of an answer."""
    piers = [f"Pier {n}: the crate of hold {n} is sealed" for n in range(99)]
    search, _ = holding([user("\n".join(piers[n::3])) for n in range(3)])
    found, lacking = (count(search(f"{name} crate sealed", 9)) for name in ("lamp", "hold-99"))
    assert lacking <= 250 < found


@pytest.fixture
def timetables(store):
    """Return search and read of an archive with a timetable for each of six calls."""
    rows = [f"row {n} of the timetable" for n in range(30)]
    said = [user("Look.")]
    for day in range(10, 16):
        rows[3] = f"departs 2024-05-{day} at 07:{day}"
        said += step(f"c{day}", "\n".join(rows), path=f"HAT{day}")
    committed(store, "s", said)
    return tools(store)


def test_call_and_result_are_one_document(timetables):
    """Words of a call and words of its result find both, and count once."""
    search, _ = timetables
    answer = search("HAT13 2024-05-13")
    assert "\n1 archived message matches\n" in answer
    assert "departs 2024-05-13 at 07:13" in answer
    assert "2024-05-12" not in answer
    assert re.search(r"of \[s1\.8\] read_file\(.*HAT13", answer)
    assert "No archived message has all of it" in search("HAT12 2024-05-13")


def test_call_and_result_name_each_other(timetables):
    """A result is read with its call, and a call with its result's reference."""
    _, read = timetables
    assert "HAT13" in read("s1.9")
    assert "=> [s1.9]" in read("s1.8")


@pytest.mark.parametrize(
    ("query", "other"),
    [
        ("kestrel-9", "9 outputs of the kestrel"),
        ("google.com/finance", "finance.yahoo.com google metadata"),
        ("ORD-4102", "ORD-41023 and 4102 ORD"),
    ],
)
def test_half_a_name_is_no_match(store, query, other):
    """The parts of a query's word match only side by side."""
    committed(store, "s", [user(other)])
    assert store.search(NAMESPACE, query, "s") == store.search(NAMESPACE, query) == []
    exact = user(f"It is {query}, as said.")
    committed(store, "s", [exact])
    assert [hit.message for hit in store.search(NAMESPACE, query, "s")] == [exact]
    assert [hit.message for hit in store.search(NAMESPACE, query)] == [exact]


def test_a_search_says_what_is_still_in_view(store):
    """Words that only the view has are not sought in vain."""
    run, newest = talk(6, "alpha"), user("Mind the magenta heron.")
    session = store.open(NAMESPACE, "s")
    store.commit(session, [(segment(run), run)], (0, newest))
    search, _ = tools(store)
    assert "It is still in view: user: Mind the magenta heron." in search("magenta heron")


def test_masks_are_listed(store):
    """`read("")` names neighbouring masked outputs in one row, with what the newest replace."""
    committed(store, "s", talk(4, "alpha"))
    session = store.open(NAMESPACE, "s")
    for n in range(8):
        run = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"output {n} " * 40}]
        mask = segment(run, f"[masked] bash make {n}: 1 line; s{n + 2}.1", kind="mask")
        session = store.commit(session, [(mask, run)])
    _, read = tools(store)
    assert "s2 to s9: 8 masked outputs, whole at s9.1 …\n  bash make 7: 1 line; s9.1" in read()
    assert "s1: 4 messages" in read()


def test_an_answer_keeps_to_its_tokens():
    """An answer has at most `tokens`."""
    _, read = holding(talk(60, "alpha"))
    assert count(read("s1.1-60", tokens=200)) <= 200


def test_an_answer_ends_with_the_tokens_left():
    """Without a turn id an answer ends with its tokens and those left."""
    store = MemoryStore()
    committed(store, "s", talk(4))
    search, _ = tools(store, turn_tokens=500)
    assert re.search(r"\(\d+ tokens, \d+ left\)$", search("hello"))


def test_progress_and_passed_tests_leave_a_range_first():
    """Progress, frames and passed tests leave a range before a word of the rest does."""
    meter = [f"downloading {n}% [####    ]" for n in range(100)]
    meter += ['<picture><source srcset="a.svg">', '<a href="b"><img src="c" alt="d"></a>'] * 9
    passed = [f"tests/test_a.py::test_{n} PASSED" for n in range(200)]
    loud = ["E  assert 41 == 42", "1 failed, 200 passed in 3.1 s"]
    output = "\n".join([*meter, "Total: 14 files", *passed[:100], loud[0], *passed[100:], loud[1]])
    long = "\n".join(f"row {n}: {n * 37}" for n in range(400))
    _, read = holding([user("Go."), *step("a", output), *step("b", long)])
    for reference in ("s1.1-5", "s1.3"):
        answer = read(reference)
        assert all(line in answer for line in ("Total: 14 files", *loud))
        assert "PASSED" not in answer
        assert "[… s1.3:1-118 …]" in answer


def test_an_ending_of_several_messages_gives_way():
    """A reference replaces an ending of several messages, unless the ending itself is asked for."""
    ending = "<reminder>\n" + "Mind what you read, and who wrote it. " * 12 + "\n</reminder>"
    said = [user("Go.")]
    for n in range(4):
        said += step(f"c{n}", f"The gauge of pier {n} is red.\n\n{ending}", path=f"p{n}")
    search, read = holding(said)
    reads = [read("s1.5"), read("s1.1-9"), read("s1.5:1-6"), read("s1.5", about="gauge of pier")]
    for answer in reads:
        assert "The gauge of pier 1 is red.\n(end; left out" in answer
        assert "Mind what you read" not in answer
    for answer in (search("gauge of pier 1"), read("s1.4")):
        assert "The gauge of pier 1 is red." in answer
        assert "Mind what you read" not in answer
    asked = [read("s1.5:2-6"), read("s1.5", about="who wrote it"), search("who wrote it")]
    assert all("Mind what you read" in answer for answer in asked)


def test_a_listing_that_does_not_fit_gives_its_first_lines():
    """A file's numbered lines are cut once, so that they can be read on."""
    files = ["\n".join(f"{n:6}→value_{n} = {n * n}" for n in range(200)) for _ in range(2)]
    _, read = holding([user("Go."), *step("a", files[0]), *step("b", files[1])])
    gaps = re.findall(r"\[… (s1\.\d):(\d+)-(\d+) …\]", read("s1.1-5", tokens=800))
    assert [(where, last) for where, _, last in gaps] == [("s1.3", "200"), ("s1.5", "200")]
    assert all(int(first) > 15 for _, first, _ in gaps)


def test_a_value_of_json_stands_by_its_key():
    """A passage of long JSON holds whole members, and names their parent keys."""
    items = [{"sku": f"HAT{n}", "price": n + 0.5, "note": "woollen " * 12} for n in range(40)]
    text = json.dumps({"shop": {"items": items}})
    search, read = holding([user("Go."), *step("a", text)])
    found = search("HAT17")
    assert re.search(r"\nshop\.items\.\*: sku; price; note\n(.*\n)*HAT17; 17\.5; woollen", found)
    assert "HAT30" not in found
    assert "in shop.items" in read("s1.3:19-19")


# ---------------------------------------------------------------- masked outputs


SMALL = CompressorConfig(
    model="gpt-4o", context_window=8_000, protect_last_n_tokens=1_000, namespace=NAMESPACE
)
PARTS = Model("## Done\nThe parts up to here are in order.")


def test_every_masked_output_says_how_it_is_read_whole(store):
    """A masked line's reference reads the whole output, also after a later summary."""
    ours = ContextCompressor(replace(SMALL, recall=True), summarizer=PARTS, store=store)
    messages = outputs(20)
    view = ours.compress_sync(messages, session_id="s")
    assert view.context_status == "masked"
    whole = {
        re.fullmatch(r"\[masked\] .*; (s\d+\.1)", sent["content"])[1]: given["content"]
        for sent, given in zip(view.messages, messages, strict=True)
        if sent != given
    }
    assert len(whole) == view.masked >= 10
    _, tool = ours.recall_tools("s", turn_tokens=None)

    def lost() -> list[str]:
        """Return references whose output is not read whole; a long line is wrapped."""
        return [r for r, text in whole.items() if text not in tool(r).replace("\n", "")]

    assert lost() == []
    later = ours.compress_sync(outputs(60), session_id="s", force=True)
    assert later.context_status == "summarized"
    assert lost() == []


# ---------------------------------------------------------------- resumed without the tools


@pytest.mark.parametrize("shape", [list, to_native], ids=["texts", "blocks"])
def test_a_view_without_recall_tools_does_not_mention_them(shape):
    """A view for an agent without recall tools does not mention the tools."""
    store = MemoryStore()
    having = ContextCompressor(replace(SMALL, recall=True), summarizer=PARTS, store=store)
    messages = shape(outputs(60))
    result = having.compress_sync(messages, session_id="s", force=True)
    assert "read_conversation_archive" in str(result.messages)
    without = ContextCompressor(SMALL, store=store)
    view = without.compress_sync(messages, session_id="s")
    assert (view.context_status, view.written) == ("summarized", ())
    assert len(view.messages) == len(result.messages)
    assert "read_conversation_archive" not in str(view.messages)
    assert having.compress_sync(view.messages, session_id="s").messages == result.messages
    for sent in (messages, result.messages, view.messages):
        assert without.compress_sync(sent, session_id="s").messages == view.messages
        assert without.verbatim(sent, session_id="s") == messages


# ---------------------------------------------------------------- schemas


@pytest.mark.parametrize(
    ("api", "first"),
    [
        ("chat", {"type", "function"}),
        ("messages", {"name", "description", "input_schema"}),
        ("responses", {"type", "name", "description", "parameters"}),
    ],
)
def test_schemas_have_the_form_of_each_api(api, first):
    """Each API gets the tools in its form, and the caller may change them."""
    found = schemas_for(api)
    assert [set(each) for each in found] == [first, first]
    assert all(name in str(found) for name in (SEARCH, READ))
    found[0].clear()
    assert schemas_for(api)[0]


def test_schemas_follow_the_form_of_the_list():
    """Schemas follow the calls of a list, or are those of chat without any."""
    call = {"type": "function_call", "id": "i", "call_id": "c", "name": "f", "arguments": "{}"}
    items = [user("Go."), call]
    lists = [outputs(2), to_native(outputs(2)), to_messages(None, items), outputs(2)[:1]]
    assert [api_of(each) for each in lists] == ["chat", "messages", "responses", "chat"]


def test_schemas_of_an_unknown_api_are_refused():
    """An unknown API is an error that names the known ones."""
    with pytest.raises(ConfigError, match="expected one of chat, messages, responses"):
        schemas_for("other")


def test_schemas_and_frame_take_at_most_300_tokens():
    """The recall tools add at most 300 tokens to each request."""
    tokens = TokenCounter("gpt-4o")
    framed = frame_summary("", count=5, method="model", reference="s99", in_reach=IN_REACH)
    assert tokens.tools(schemas_for("chat")) + tokens.text(framed) <= 300


def test_the_page_of_recall_has_the_default_sizes():
    """The page's table of answers has the sizes of the code."""
    page = Path(praison_compressor.__file__).parent / "docs" / "recall.md"
    table = page.read_text(encoding="utf-8").partition("| answer | at most, in tokens |\n")[2]
    sizes = re.findall(r"^\| (.*) \| ([\d,]+) \|$", table.partition("\n\n")[0], re.M)
    assert [int(size.replace(",", "")) for _, size in sizes] == [
        TEXT_TOKENS,
        TABLE_TOKENS,
        SEARCH_TOKENS,
        READ_TOKENS,
        RANGE_TOKENS,
        TURN_TOKENS,
    ]
