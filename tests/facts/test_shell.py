"""What a command line does to files, read as a shell reads it."""

from __future__ import annotations

import pytest

from praison_compressor.facts.shell import applies_a_patch, effects, spoken


def told(command: str) -> list[tuple[str, str]]:
    """What a command line does: path and action, `path>target` for a move."""
    return [(e.path + (f">{e.target}" if e.target else ""), e.action) for e in effects(command)]


@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("cat src/a.py", [("src/a.py", "read")]),
        ("cd x && cat a.txt; touch b || rm c\nrmdir d", [
            ("x/a.txt", "read"), ("x/b", "created"), ("x/c", "deleted"), ("x/d", "deleted"),
        ]),
        ("make 2>&1 | tee out.log", [("out.log", "created")]),
        ("echo x >> a.txt", [("a.txt", "edited")]),
        ("echo x > /dev/null", []),
        ("rm -rf build '*.o' $TMP", [("build", "deleted")]),
        ("cp -r a/ b.txt c/", [("c/a", "created"), ("c/b.txt", "created")]),
        ("tee a.txt < b.txt", [("b.txt", "read"), ("a.txt", "created")]),
        ("echo '> a.txt'", []),
        ("cp $(npm root -g)/a.json b.json", []),
        ("grep 'x > y' a.c", [("a.c", "read")]),
        ("if ! rm a.txt; then touch b.txt; fi", [("a.txt", "deleted"), ("b.txt", "created")]),
        ("rm \\\n  a.txt \\\n  b.txt", [("a.txt", "deleted"), ("b.txt", "deleted")]),
        ("cd src/lib && rm ../a.txt ~/b /c", [
            ("src/a.txt", "deleted"), ("~/b", "deleted"), ("/c", "deleted"),
        ]),
        ("cd src && mv a.txt old/", [("src/a.txt>src/old/", "moved")]),
        ("(cd src && touch a.txt) && touch b.txt", [
            ("src/a.txt", "created"), ("b.txt", "created"),
        ]),
        ("*** Begin Patch\n*** Update File: a\n rm b.txt\n*** End Patch", []),
        ("grep \"a|b;c\" a.txt && rm 'x;y'", [("a.txt", "read"), ("x;y", "deleted")]),
        ("sed 's/a;b/c/' a.txt", [("a.txt", "read")]),
        ("sed -i -e s/a/b/ a.txt b.txt", [("a.txt", "edited"), ("b.txt", "edited")]),
        ("cat 'unclosed a.txt", [("a.txt", "read")]),
        ("cat > a.txt <<'EOF'\nrm b.txt\nEOF\ncat c.txt", [
            ("a.txt", "created"), ("c.txt", "read"),
        ]),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_command_line_does_to_files(command: str, done: list[tuple[str, str]]) -> None:
    """In order; pipes, chains, redirections, quotes and here-documents are read as a shell does."""
    assert told(command) == done


@pytest.mark.parametrize("name", ["bash", "sh", "zsh", "/bin/dash"])
def test_a_shells_script_is_the_command_line(name: str) -> None:
    """A list of words that hands it a script is told as that script."""
    assert spoken([name, "-lc", "rm a.txt"]) == "rm a.txt"
    assert spoken([name, "run.sh", "two words"]) == f"{name} run.sh 'two words'"


@pytest.mark.parametrize(
    ("command", "applies"),
    [
        ("apply_patch <<'EOF'\n*** Begin Patch\nEOF\nls", True),
        ("cd /r && patch -p1 <<E\n--- a/x\n+++ b/x\nE", True),
        ("*** Begin Patch\n*** Delete File: a", True),
        ("cat > fix.diff <<'EOF'\n+++ b/x\nEOF", False),
        ("apply_patch fix.diff", False),
    ],
)
def test_what_applies_a_patch(command: str, applies: bool) -> None:
    """One written behind the command; one that is only saved, or stands in a file, is not seen."""
    assert applies_a_patch(command) is applies
