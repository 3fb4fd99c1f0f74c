"""References are read: messages, ranges, lines, outlines, passages about something."""

import json
import re

import pytest

from tests.helpers.talks import count, holding, talk
from tests.helpers.transcripts import step, user


def test_a_range_shows_both_ends_of_each_long_message():
    """A range fills its budget with both ends of each long message, and names what is left out."""
    long = [f"line {n} of a long output, END-{n}" for n in range(400)]
    said = [
        user("A short word FIRST-1."),
        {"role": "assistant", "content": "\n".join(long)},
        user("A short word THIRD-3."),
        {"role": "assistant", "content": "\n".join(f"and {line}" for line in reversed(long))},
    ]
    _, read = holding(said)
    assert 2_700 < count(read("s1.1-4", tokens=3_000)) <= 3_000
    answer = read("s1.1-4", tokens=800)
    assert 700 < count(answer) <= 800
    for seen in ("FIRST-1", "END-0\n", "END-399\n", "THIRD-3"):
        assert seen in answer
    assert answer.count("END-0\n") == answer.count("END-399\n") == 2
    first, last = re.findall(r"\[… s1\.2:(\d+)-(\d+) …\]", answer)[0]
    assert f"END-{int(first) - 2}\n" in answer
    assert f"END-{int(first) - 1}\n" in read(f"s1.2:{first}-{last}")


def test_segments_are_listed_and_outlined():
    """`read("")` lists segments, newest first, and `read("s1")` outlines one with references."""
    _, read = holding(talk(4, "alpha"), talk(3, "beta"))
    assert re.search(r"s2: 3 messages\n  s2\.1.*beta number0.*\n(.*\n)*s1: 4 messages", read())
    assert "s1.1 user: alpha number0" in read("s1")
    assert "read_file (alpha_1.py)" in read("s1")


def test_a_long_outline_is_shown_to_its_end():
    """In a long outline neighbours share a row, no row is useless, and its end fits."""
    turns = [user(f"Now part {n}: " + "word " * 30) for n in range(600)]
    _, read = holding(turns[:60])
    assert "s1.59-60 user: Now part 58" in read("s1", tokens=800)
    _, read = holding(turns)
    rows = read("s1", tokens=800).splitlines()[1:-1]
    assert rows[-1].startswith("s1.577-600 user: Now part ")
    assert min(map(len, rows)) >= 70
    assert count(read("s1", tokens=800)) <= 800


def test_an_object_of_json_is_not_cut_in_its_middle():
    """A match in JSON is shown with the object around it, where that fits."""
    cards = [
        {"id": f"card-{n}", "holder": f"holder {n}", "limits": {"day": n * 7, "month": n * 90}}
        | {f"note {m}": f"{n} and {m} of the card " * 2 for m in range(3)}
        for n in range(30)
    ]
    _, read = holding([user("Look."), *step("c1", json.dumps(cards))])
    answer = read("s1.3", about="card-17")
    assert re.search(
        r"\n\*: id; holder; .*\n(.*\n)*card-17; holder 17; 119; 1530; 17 and 0", answer
    )


def test_a_table_that_does_not_fit_a_range_has_its_first_rows():
    """In a range long JSON of like objects is a table, with a reference to the rows left out."""
    cards = [{"id": f"card-{n}", "holder": f"holder {n}", "limit": n * 7} for n in range(200)]
    _, read = holding([user("Look."), *step("c1", json.dumps(cards)), user("And now?")])
    answer = read("s1.2-4")
    assert "[s1.3] tool (its JSON as a table)\n*: id; holder; limit\ncard-0; holder 0; 0" in answer
    assert re.search(r"\n\[… s1\.3:1-\d+ …\]\n", answer)
    assert "And now?" in answer
    assert 400 < count(answer) <= 600


@pytest.fixture
def read():
    """Return the tool that reads a long page with one line about a pier, and a short talk."""
    page = "\n".join(f"{n}: filler of a long page, {n * n}" for n in range(300))
    long = page.replace("150: filler", "150: the gauge of the pier")
    first = [user("Look."), *step("c1", long), *step("c2", page)]
    return holding(first, talk(3, "beta"))[1]


@pytest.mark.parametrize("reference", ["s1.1-5", "s1.3", "s1"])
def test_reading_about_something_gives_those_passages_alone(read, reference):
    """With `about` long messages give matching passages alone."""
    answer = read(reference, about="pier gauge")
    assert re.search(r"\[s1\.3:\d+-\d+\] \(of 300 lines\) tool, of \[s1\.2\]", answer)
    assert "150: the gauge of the pier" in answer
    assert count(answer) < 300


def test_reading_about_something_returns_what_is_short(read):
    """With `about` messages and lines that fit the answer are returned whole."""
    assert "beta number0" in read("s2.1", about="zebra")
    assert read("s2.1-3", about="number0") == read("s2.1-3")
    assert read("s1.3:148-160", about="pier gauge") == read("s1.3:148-160")
    assert read("s1.3:150-160", about="zebra") == read("s1.3:150-160")


def test_reading_about_something_says_what_does_not_match(read):
    """With `about` the answer names what was not found, or was found beside the call."""
    assert "Nothing in s1.5 matches 'pier guage'" in read("s1.5", about="pier guage")
    assert "matches 'zebra'.\n[Quoted" in read("s2.1", about="zebra")
    assert "150: the gauge of the pier" in read("s1.2", about="pier gauge")
    assert "(not in s1.3: zebra)" in read("s1.3", about="pier zebra")
    elsewhere = read("s1.5", about="beta")
    assert "Nothing in s1.5 matches 'beta'; s2." in elsewhere
    assert "[s2.1] user\nbeta number0 says hello 0" in elsewhere
    assert "matches 'guage'. Words that do occur: gauge.\n(" in read("s1.5", about="guage")


def test_reading_the_result_of_a_written_file_quotes_the_file():
    """Where the named result has less of `about` than its call, the call is quoted."""
    text = "\n".join(f"{n}: filler of a page" for n in range(200)) + "\nthe gauge of the pier"
    _, read = holding(step("c", "Wrote pier.md", path="pier.md", text=text))
    assert "\nthe gauge of the pier\n" in read("s1.2", about="gauge pier")


def test_an_empty_result_is_said_to_be_empty():
    """A result without text is marked, read with its call or alone."""
    search, read = holding(step("c", "", path="pier.md"))
    for answer in (read("s1.1"), read("s1.2"), search("pier.md")):
        assert re.search(r"\[s1\.2\](?: tool\n| )\(empty\)\n", answer)


def test_a_range_shows_the_users_words_beside_the_matches():
    """In a range about something a user's short message without these words has a row."""
    long = "filler of a page. " * 150
    talk = [
        user("Go."),
        {"role": "assistant", "content": f"{long} Pay by card? {long}"},
        user("No, never."),
        user(long),
    ]
    _, read = holding(talk)
    answer = read("s1.1-4", about="card")
    assert "Pay by card?" in answer
    assert "\n[s1.1] user: Go.\n[s1.3] user: No, never.\n(" in answer
    assert "[s1.4]" not in answer


def test_a_number_is_looked_for():
    """A number in `about` is sought, as an order's or a port's is."""
    page = "\n".join(f"value {n * 37}" for n in range(2_000))
    _, read = holding([user("Go."), user(page)])
    answer = read("s1.2", about="33300")
    assert "value 33300\n" in answer
    assert count(answer) <= 400


def test_an_outline_about_nothing_in_it_is_the_outline():
    """A segment in which nothing matches is outlined, as without words."""
    _, read = holding(talk(8, "alpha"))
    assert read("s1", about="outline") == read("s1")


def test_a_named_call_is_quoted_before_its_result():
    """Reading a call about something quotes the call's lines, though its result has more."""
    plan = "\n".join(f"plank {n} of the pier" for n in range(200))
    call = {"id": "c", "function": {"name": "write", "arguments": json.dumps({"plan": plan})}}
    result = {"role": "tool", "tool_call_id": "c", "content": plan.replace("150", "150 gauge")}
    _, read = holding([user("Go."), {"role": "assistant", "tool_calls": [call]}, result])
    answer = read("s1.2", about="plank 150")
    assert re.search(r"\n\[s1\.2:\d+-\d+\] .*\n(.*\n)*plank 150 of the pier\n", answer)


@pytest.fixture
def piers():
    """Return the lines of a message about piers, and the tool that reads it."""
    lines = [f"{n}: filler of a long page, {n * n}" for n in range(1, 301)]
    piers = [20, 50, 80, 120, 220, 270]
    for number in piers:
        lines[number - 1] = f"the gauge of pier {number}"
    return piers, holding([user("\n".join(lines))])[1]


def test_reading_about_something_names_the_other_lines(piers):
    """Matching lines that are not quoted are named."""
    numbers, read = piers
    answer = read("s1.1", about="gauge")
    quoted = {int(number) for number in re.findall(r"the gauge of pier (\d+)", answer)}
    (named,) = re.findall(r"more matching lines? of s1\.1: ([\d, ]+)", answer)
    assert sorted([*quoted, *map(int, named.split(", "))]) == numbers


def test_reading_about_something_searches_only_many_lines(piers):
    """With `about` a range of many lines is searched, and a short one returned whole."""
    _, read = piers
    answer = read("s1.1:100-200", about="gauge")
    assert re.findall(r"the gauge of pier (\d+)", answer) == ["120"]
    assert len(re.findall("filler", answer)) < 50
    assert len(re.findall("filler", read("s1.1:100-140", about="gauge"))) == 40


PAGE = "\n".join(f"line {n} of a page" for n in range(100))


def test_a_message_that_fits_is_read_whole():
    """A message that fits an answer is read whole."""
    _, read = holding([user(PAGE)])
    assert PAGE in read("s1.1", tokens=800)


def test_a_message_a_little_above_the_default_size_is_not_cut():
    """A message is cut only if it exceeds a read's default size by more than a quarter."""
    lines = [f"Line {n} says that pier {n} is free." for n in range(60)]
    _, read = holding([user("\n".join(lines[:46])), user("\n".join(lines))])
    assert 400 < count(read("s1.1")) <= 500
    assert "…" not in read("s1.1")
    assert count(read("s1.2")) <= 400
    assert "s1.2:" in read("s1.2")


def test_a_word_that_is_missing_is_named_without_its_comma(read):
    """A remark names the missing words of `about` without the commas between them."""
    assert "(not in s1.3: walrus)" in read("s1.3", about="pier, walrus,")


@pytest.mark.parametrize(
    "asked",
    [
        {"reference": "s1.2"},
        {"reference": "s1.1-2"},
        {"reference": "s1.2:7-"},
        {"reference": "s1.2", "about": "line 7 of"},
    ],
    ids=lambda asked: "-".join(asked.values()),
)
def test_a_cut_answer_ends_with_the_next_reference(asked):
    """A cut answer has at most 800 tokens and ends with the reference of what follows."""
    _, read = holding([user(PAGE), user(PAGE * 3)])
    answer = read(**asked)
    assert count(answer) <= 800
    rest = re.findall(r"go on: .*?(s1\.[12]:(\d+)-\d+)\)\n\(\d+ tokens", answer)[0]
    assert f"lines {rest[1]}-" in read(rest[0])


def test_a_range_that_does_not_fit_is_outlined_step_by_step():
    """Of a long range each step has a row with its reference, tools and words."""
    _, read = holding(talk(24, "alpha"))
    answer = read("s1.1-24")
    assert "s1.2-3 assistant: read_file (alpha_1.py)" in answer
    assert "s1.21 user: alpha number20" in answer
    assert count(answer) <= 300


def test_several_references_are_read_at_once():
    """References after commas are answered in one call, what does not fit is named."""
    _, read = holding(talk(8, "alpha"), talk(8, "beta"))
    answer = read("s1.4, s2.4:1-1 and s1.8")
    assert re.findall(r"^\[(s\d\.\d)\]", answer, re.M) == ["s1.4", "s2.4", "s1.8"]
    assert "beta number3 says" in answer
    assert answer.count("[Quoted from") == 1
    some = read(", ".join(["s1.4", "s2.1"] * 40), tokens=200)
    assert count(some) <= 200


def test_messages_asked_for_together_are_printed_once():
    """A call and its result, asked for together, are each printed once."""
    said = [user("Go."), *step("a", "CAME-1", path="src/gauge.py")]
    _, read = holding(said)
    for reference in ("s1.2, s1.3", "s1.3, s1.2", "s1.3, s1.3"):
        assert read(reference).count("CAME-1") == 1
    assert read("s1.2, s1.3").count("gauge.py") == 1
    assert read("s1.2, s1.3", about="CAME-1").count("CAME-1") == 2  # the remark on s1.2


def test_several_messages_that_match_elsewhere_are_named():
    """Where only other messages match, the first line names all of these."""
    _, read = holding([user("A gull."), user("A kestrel."), user("The kestrel again.")])
    assert "Nothing in s1.1 matches 'kestrel'; s1.2-3 match." in read("s1.1", about="kestrel")


def test_a_segment_of_one_message_is_counted_in_the_singular():
    """A list of segments counts a single message in the singular."""
    assert "s1: 1 message\n" in holding([user("A gull.")])[1]("")


def test_a_neighbour_that_matches_is_named_first():
    """Where only a message's call or result matches, or nothing, the first line says so."""
    page = "\n".join(f"{n}: filler of a page, {n * n}" for n in range(200))
    _, read = holding([*step("a", "short", path="p1"), *step("b", page, path="src/gauge.py")])
    for asked, about, beside in (
        ("s1.2", "p1", "s1.1"),
        ("s1.1", "short", "s1.2"),
        ("s1.4", "gauge.py", "s1.3"),
        ("s1.3", "filler", "s1.4"),
    ):
        answer = read(asked, about=about)
        said = f"Nothing in {asked} matches {about!r}; {beside} matches."
        assert said in answer.split("\n")[:2]
        assert f"[{beside}" in answer
    _, alone = holding(step("c", page)[1:])
    assert "100: filler of a page" in alone("s1", about="filler 10000")
    lines = read("s1.4:4-123", about="zebra page, 14400")
    assert "(not in s1.4:4-123: zebra)" in lines
    assert "120: filler" in lines


def test_a_range_gives_short_messages_whole():
    """Of a few messages those that fit are whole, and each longer one's gap is named."""
    sizes = [30, 40, 140]
    said = [
        user("\n".join(f"M{m} row {n}: {n * 37}" for n in range(size)))
        for m, size in enumerate(sizes)
    ]
    _, read = holding([user("Go."), *said * 4])
    answer = read("s1.2-4", tokens=800)
    assert 700 < count(answer) <= 800
    assert [said[n]["content"] in answer for n in range(3)] == [True, True, False]
    assert re.search(r"go on: s1\.4:\d+-\d+\)", answer)
    several = read("s1.1-12", tokens=800)
    assert len(re.findall(r"\[… s1\.\d+:", several)) == 11
    assert count(several) <= 800
    assert "(go on: s1.2-12)" in several


TEXT = "\n".join(f"line {n}" for n in range(1, 2_000))


def test_a_long_message_is_read_to_its_end():
    """Cut answers, each with the next reference, are together the message."""
    _, read = holding([user(TEXT)])
    pieces, reference = [], "s1.1:1-"
    while reference:
        answer = read(reference)
        body = answer.split("] user, lines", 1)[1].partition("\n")[2].rpartition("\n(")[0]
        piece, _, rest = body.partition("\n(cut at line ")
        pieces.append(piece)
        reference = "".join(re.findall(r"go on: (.*)\)", rest))
    assert len(pieces) > 3
    assert "\n".join(pieces) == TEXT


def test_a_long_message_is_read_by_its_lines():
    """A range has those lines, and one line its neighbours, to the message's end."""
    _, read = holding([user(TEXT)])
    assert "lines 900-940 of 1999\nline 900\n" in read("s1.1:900-940")
    assert "\nline 940\n(" in read("s1.1:900-940")
    assert "line 922" in read("s1.1:922")
    assert "lines 910-934 of 1999" in read("s1.1:922")
    assert "lines 1987-1999 of 1999" in read("s1.1:99999")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("x", "is no reference; expected one like"),
        ("s" + "9" * 5_000, "is no reference; expected one like"),
        ("s1.4-2", "is no reference; expected one like"),
        ("s1.4-2", "a range ascends and stays within one segment"),
        ("s0", "There is no segment s0; there is s1 alone."),
        ("s9", "There is no segment s9"),
        ("s1.0", "Segment s1 has the messages s1.1 to s1.4."),
        ("s1.9", "Segment s1 has the messages s1.1 to s1.4."),
    ],
    ids=lambda text: text[:5],
)
def test_a_wrong_reference_is_answered_with_what_there_is(reference, expected):
    """An invalid reference is answered with the form or the valid range."""
    answer = holding(talk(4))[1](reference)
    assert expected in answer
    assert "number" not in answer


def listing(first: int, lines: list[str]) -> str:
    """Return lines as a tool shows a file's."""
    return "\n".join(f"{n:6}→{line}" for n, line in enumerate(lines, first))


def test_a_listing_names_its_numbers_once():
    """Lines of a listing are quoted without their numbers, whose range the head names."""
    lines = [f"    value_{n} = gauge({n * n}, of='the old pier')" for n in range(80)]
    search, read = holding(step("c1", listing(200, lines)))
    for answer in (search("value_40"), read("s1.2", about="value_40"), read("s1.2:39-44")):
        first, last = map(int, re.findall(r"numbered (\d+)-(\d+)", answer)[0])
        assert first <= 240 <= last
        assert "\n".join(lines[first - 200 : last - 199]) in answer
        assert "→" not in answer


def test_a_listing_is_read_by_its_own_numbers():
    """Lines beyond a message's last one are those that its listing numbers so."""
    _, read = holding(step("c1", listing(200, [f"value_{n}" for n in range(200, 280)])))
    answer = read("s1.2:240-249")
    assert "lines 41-50 of 80, numbered 240-249" in answer
    assert "value_240\nvalue_241" in answer
    assert "value_260" in read("s1.2:260")
    assert "lines 80-80 of 80" in read("s1.2:900-940")


def test_lines_of_a_message_come_before_its_listings_numbers():
    """Lines up to a message's last one are its own, also if its listing has these numbers."""
    _, read = holding(step("c1", listing(20, [f"value_{n}" for n in range(20, 100)])))
    assert "lines 41-50 of 80, numbered 60-69" in read("s1.2:41-50")


def test_a_passage_ends_where_its_block_does():
    """A passage longer than its share goes on to a block's end, or stops at a paragraph's."""
    body = [f"        step_{n} = measure(pier, depth={n}, tide='low water')" for n in range(14)]
    block = ["    # The kestrel is counted first.", "    if kestrel:", *body, "    done()", ""]
    other = [*(f"    filler_{n} = {n}" for n in range(60)), "def other():"]
    search, _ = holding(step("c1", "\n".join(["def f():", *block, *other, *other])))
    quoted = search("kestrel is counted")
    assert "step_13" in quoted
    assert "done()" in quoted
    assert "filler_9" not in quoted


def test_a_passage_does_not_end_with_a_comment():
    """Where a passage is cut in a long comment, the line below the comment is shown."""
    comment = [f"# The kestrel, rule {n}: no gauge is read before low water." for n in range(12)]
    code = ["if gauge.is_ready:", *(f"    read_gauge({n})" for n in range(200))]
    search, _ = holding(step("c1", "\n".join([*comment, *code])))
    assert "if gauge.is_ready:" in search("kestrel rule 2")


def test_the_conclusion_of_a_repeated_command_is_shown():
    """Outputs of one command that end alike keep their ends: these are no host's reminder."""
    verdict = "Verdict: the gauge of the pier is sound, " + "and no plank is loose, " * 8
    reports = [["Gauge report", *(f"pier {n}: {n * k}" for n in range(9))] for k in range(2, 6)]
    texts = ["\n".join([*report, "", verdict]) for report in reports]
    said = [message for n, text in enumerate(texts) for message in step(f"c{n}", text)]
    _, read = holding([user("Go."), *said])
    assert "Verdict: the gauge" in read("s1.3")
