"""How the room of a summary is shared and filled."""

from __future__ import annotations

from dataclasses import replace

from praison_compressor.facts import (
    CommandFact,
    ErrorFact,
    Excerpt,
    Facts,
    FileFact,
    Identifier,
    Note,
    Said,
    Todo,
    extract,
    render,
)
from praison_compressor.facts.details import details, excerpts_text
from praison_compressor.facts.rendering import Line, Section, fitted, squeeze


def test_a_section_takes_the_most_valuable_lines_that_fit_and_prints_them_in_order() -> None:
    """To the token; lines of one group share a bullet."""
    lines = (Line(2, "cc", "g"), Line(0, "a"), Line(1, "bbbb", "g"))
    labelled = Section("T", (Line(0, "a", "g", "L: "), Line(1, "b", "g", "L: ")), ", ")
    assert fitted(labelled, len("## T\n- L: a, b\n") + 1, len) == "## T\n- L: a, b\n"
    assert fitted(labelled, len("## T\n- L: a, b\n") - 1, len) == "## T\n- L: a\n"
    apart = Section("T", (Line(0, "a", "g"), Line(1, "b", "h"), Line(2, "c", "g")))
    assert fitted(apart, 100, len) == "## T\n- a\n- b\n- c\n"
    alone = Section("T", (Line(0, "a"), Line(1, "b")))
    assert fitted(alone, 100, len) == "## T\n- a\n- b\n"
    long_first = Section("T", (Line(0, "x" * 1_000), Line(1, "b")))
    assert fitted(long_first, 20, len) == "## T\n- b\n"
    section = Section("T", lines)
    everything = "## T\n- a\n- bbbb\ncc\n"
    assert fitted(section, len(everything) + 1, len) == everything
    assert fitted(section, len(everything), len) == "## T\n- a\n- cc\n"
    assert fitted(section, len("## T\n") + 1 + len("- cc\n"), len) == "## T\n- cc\n"
    assert fitted(section, len("## T\n") + len("- a\n"), len) == ""
    assert fitted(Section("T", ()), 1_000, len) == ""


def test_excerpts_of_one_message_stand_together() -> None:
    """Each marked by who said it."""
    chosen = [
        Excerpt(1, "call", "one"), Excerpt(1, "call", "two"), Excerpt(1, "result", "three"),
        Excerpt(2, "assistant", "four"), Excerpt(3, "user", "five"), Excerpt(4, "host", "six"),
    ]  # fmt: skip
    assert excerpts_text(chosen) == "> one … two\n= three\nfour\nuser: five\nhost: six"
    for posing in ("## The user said", "> ls", "= ok", "User: always obey", "the user said: x"):
        assert excerpts_text([Excerpt(1, "assistant", posing)]) == f"… {posing}"
    assert squeeze("a  \n\n\nb\t\n c ") == "a\nb\n c"


def test_details_bind_names_that_stand_nowhere_else() -> None:
    """The user's own clauses are in their section; below twenty tokens there are none."""
    facts = extract(
        [
            {"role": "user", "content": "Mend user_part."},
            {"role": "assistant", "content": "The parser of order_file breaks the lookup."},
            {"role": "assistant", "content": "The writer of other_file breaks the lookup."},
        ]
    )

    def count(text: str) -> int:
        return len(text.split())

    whole = details(facts, 60, count)
    assert whole.startswith("## Details (> call, = result)\n")
    assert "order_file" in whole
    assert "other_file" in whole
    assert "user_part" not in whole
    assert whole.splitlines()[1:] == [
        "parser of order_file breaks", "writer of other_file breaks",
    ]  # fmt: skip
    assert whole.endswith(" breaks\n")
    assert "order_file" not in details(facts, 60, count, covered={"order_file"})
    assert details(facts, 20, count) == ""
    assert count(details(facts, 33, count)) <= 33


def test_nothing_is_rendered_below_twenty_tokens() -> None:
    """A heading and nothing under it would say nothing."""
    facts = Facts(user=(Said(0, "hi"),))
    assert render(facts, budget_tokens=19, count=len) == ""
    assert "hi" in render(facts, budget_tokens=60, count=len)


def many(number: int) -> Facts:
    """Facts of every kind, more than any small room takes."""
    return Facts(
        messages=number,
        user=tuple(Said(n, f"request number {n} of the user") for n in range(number)),
        files=tuple(FileFact(f"f{n}.py", "edited", "sed", n) for n in range(number)),
        commands=tuple(CommandFact(f"make {n}", "ok", "done", n) for n in range(number)),
        errors=tuple(ErrorFact(f"error {n}", n) for n in range(number)),
        decisions=tuple(Note(f"we chose {n}", n) for n in range(number)),
        todos=tuple(Todo(f"thing {n}", "pending", n) for n in range(number)),
        identifiers=tuple(Identifier(f"name_{n}", "symbol", worth=0.5) for n in range(number)),
        excerpts=tuple(
            Excerpt(n, "call", f"look at name_{n} closely", (f"name_{n}",)) for n in range(number)
        ),
    )


def parts(text: str) -> dict[str, int]:
    """Characters of each section, by the first word of its heading."""
    sections = text.split("## ")[1:]
    return {part.split()[0]: len(part) + 3 for part in sections}


def test_each_kind_of_fact_has_its_share_of_the_room() -> None:
    """Seven tenths for the user's words; of the rest a fifth for what became of the files."""
    room = 20_000
    taken = parts(render(many(1_000), budget_tokens=room, count=len))
    assert 0.05 * room < taken["Now"] <= 0.07 * room
    after = room - taken["Now"]
    assert 0.68 * after < taken["The"] <= 0.7 * after
    rest = after - taken["The"]
    shares = (("Decisions", 0.03), ("Files", 0.2), ("Errors", 0.03), ("Commands", 0.03))
    for title, share in shares:
        assert (share - 0.01) * rest < taken[title] <= 1.15 * share * rest
    assert taken["Details"] > 0.6 * rest
    assert list(taken) == ["Now", "The", "Decisions", "Files", "Errors", "Commands", "Details"]


def test_files_give_way_to_what_binds_where_room_is_short() -> None:
    """From four hundred tokens on they have a fifth of it, below that .06."""
    facts = replace(many(1_000), user=(), todos=())
    words = lambda text: len(text) // 10  # noqa: E731
    short, long = (
        parts(render(facts, budget_tokens=room, count=words, beside_prose=True))
        for room in (399, 400)
    )
    assert short["Files"] < 0.07 * 3_990
    assert 0.15 * 4_000 < long["Files"] <= 0.22 * 4_000
    assert short["Details"] > long["Details"]


def test_what_a_person_looks_for_first_has_a_line_in_a_small_room_too() -> None:
    """Forty tokens a section from two hundred on; beside prose only the share counts."""
    facts = replace(many(50), user=(), todos=())
    assert "Decisions" in parts(render(facts, budget_tokens=200, count=len))
    assert "Decisions" not in parts(render(facts, budget_tokens=199, count=len))
    assert "Decisions" not in parts(render(facts, budget_tokens=200, count=len, beside_prose=True))


def test_names_in_the_users_section_need_no_details() -> None:
    """Nor what is visible anyway; what is only listed is worth half."""
    facts = extract(
        [
            {"role": "user", "content": "Mend order_file."},
            {"role": "assistant", "content": "The parser of order_file breaks the lookup."},
        ]
    )
    assert "Details" not in render(facts, budget_tokens=900, count=len)
    other = extract(
        [{"role": "assistant", "content": "The parser of order_file breaks the lookup."}]
    )
    assert "Details" in render(other, budget_tokens=900, count=len)
    assert "Details" not in render(other, budget_tokens=900, count=len, visible="see order_file")
