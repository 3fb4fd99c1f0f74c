"""What a command line does to files, read as a shell reads it."""

from __future__ import annotations

import pytest

from praison_compressor.facts.shell import effects, patches, spoken


def told(command: str) -> list[tuple[str, str]]:
    """What a command line does: path and action, `path>target` for a move."""
    return [(e.path + (f">{e.target}" if e.target else ""), e.action) for e in effects(command)]


@pytest.mark.parametrize(
    ("command", "done"),
    [
        ("cat src/a.py", [("src/a.py", "read")]),
        ("cat README", []),
        ("/bin/cat a.txt b.txt", [("a.txt", "read"), ("b.txt", "read")]),
        ("sudo time cat a.txt", [("a.txt", "read")]),
        ("LANG=C cat a.txt", [("a.txt", "read")]),
        ("cat -n a.txt", [("a.txt", "read")]),
        ("cat a.txt | grep x | head", [("a.txt", "read")]),
        ("cd x && cat a.txt; touch b || rm c\nrmdir d", [
            ("x/a.txt", "read"), ("x/b", "created"), ("x/c", "deleted"), ("x/d", "deleted"),
        ]),
        ("sleep 1 & cat a.txt", [("a.txt", "read")]),
        ("make 2>&1 | tee out.log", [("out.log", "created")]),
        ("make &> all.log", [("all.log", "created")]),
        ("echo x >a.txt", [("a.txt", "created")]),
        ("echo x > a.txt", [("a.txt", "created")]),
        ("echo x >> a.txt", [("a.txt", "edited")]),
        ("echo x 2>>err.txt", [("err.txt", "edited")]),
        ("echo x > /dev/null", []),
        ("> a.txt", [("a.txt", "created")]),
        ("cp a b c/d.txt", [("c/d.txt", "created")]),
        ("cp a", []),
        ("mv a b c", [("a>c", "moved"), ("b>c", "moved")]),
        ("mv a", []),
        ("git mv a b", [("a>b", "moved")]),
        ("git rm a.txt", [("a.txt", "deleted")]),
        ("git restore a.txt", [("a.txt", "edited")]),
        ("git status a.txt", []),
        ("git", []),
        ("rm -rf build '*.o' $TMP", [("build", "deleted")]),
        ("unlink a", [("a", "deleted")]),
        ("rename a b", [("a>b", "moved")]),
        ("black src/a.py", [("src/a.py", "edited")]),
        ("black --check src/a.py", [("src/a.py", "read")]),
        ("ruff check src/a.py", [("src/a.py", "read")]),
        ("ruff check --fix src/a.py", [("src/a.py", "edited")]),
        ("ruff format src/a.py", [("src/a.py", "edited")]),
        ("prettier --write a.ts b.ts", [("a.ts", "edited"), ("b.ts", "edited")]),
        ("perl -pi -e 's/a.b/c/' a.txt", [("a.txt", "edited")]),
        ("perl -i.bak -pe 's/a.b/c/' a.txt", [("a.txt", "edited")]),
        ("perl report.pl a.txt", []),
        ("truncate -s 10M a.log", [("a.log", "edited")]),
        ("jq . a.json | sponge a.json", [("a.json", "edited")]),
        ("ln -s src/a.py link", [("link", "created")]),
        ("ln -s src/a.py", []),
        ("install -m 755 run bin/", [("bin/run", "created")]),
        ("cp -r a/ b.txt c/", [("c/a", "created"), ("c/b.txt", "created")]),
        ("dd if=/dev/zero of=disk.img bs=1M", [("disk.img", "created")]),
        ("curl -sS -o a.json https://x.y/z.json", [("a.json", "created")]),
        ("wget -q -O - https://x.y/z.json", []),
        ("wget --output-document a.json https://x.y", [("a.json", "created")]),
        ("patch -p1 < fix.diff", [("fix.diff", "read")]),
        ("patch src/a.py fix.diff", [("src/a.py", "edited")]),
        ("git checkout main", []),
        ("git checkout HEAD~1 -- a.txt b.txt", [("a.txt", "edited"), ("b.txt", "edited")]),
        ("git restore --source HEAD~1 a.txt", [("a.txt", "edited")]),
        ("tee a.txt < b.txt", [("b.txt", "read"), ("a.txt", "created")]),
        ("tee a.txt <<< 'b.txt'", [("a.txt", "created")]),
        ("diff <(sort a) <(sort b)", []),
        ("echo x >| a.txt", [("a.txt", "created")]),
        ("echo '> a.txt'", []),
        ("grep 'x > y' a.c", [("a.c", "read")]),
        ("bash -lc \"cd /r && rm 'a;b' && touch c\"", [("/r/a;b", "deleted"), ("/r/c", "created")]),
        ("sh run.sh a.txt", []),
        ("timeout 60 sudo -u joe rm a.txt", [("a.txt", "deleted")]),
        ("nice -n 10 rm a.txt", [("a.txt", "deleted")]),
        ("if ! rm a.txt; then touch b.txt; fi", [("a.txt", "deleted"), ("b.txt", "created")]),
        ("rm \\\n  a.txt \\\n  b.txt", [("a.txt", "deleted"), ("b.txt", "deleted")]),
        ("cd src/lib && rm ../a.txt ~/b /c", [
            ("src/a.txt", "deleted"), ("~/b", "deleted"), ("/c", "deleted"),
        ]),
        ("cd src && mv a.txt old/", [("src/a.txt>src/old/", "moved")]),
        ("(cd src && touch a.txt) && touch b.txt", [
            ("src/a.txt", "created"), ("b.txt", "created"),
        ]),
        ("cd src; cd lib; touch a.txt", [("src/lib/a.txt", "created")]),
        ("cd src; cd $HOME; touch a.txt", [("a.txt", "created")]),
        ("cd src; cd -; touch a.txt", [("a.txt", "created")]),
        ("cd src && cd && touch a.txt", [("a.txt", "created")]),
        ("((cd a && touch x) && touch y); touch z", [
            ("a/x", "created"), ("y", "created"), ("z", "created"),
        ]),
        ("(cd a; touch x); (cd b; touch y)", [("a/x", "created"), ("b/y", "created")]),
        ("cp", []),
        ("mv", []),
        ("cp -r a/b/ c/", [("c/b", "created")]),
        ("install -o me -g us a b", [("b", "created")]),
        ("sort < names", []),
        ("sort < a/names", [("a/names", "read")]),
        ("/usr/bin/git rm a.txt", [("a.txt", "deleted")]),
        ("sudo -g staff rm a.txt", [("a.txt", "deleted")]),
        ("git restore -s HEAD~1 a.txt", [("a.txt", "edited")]),
        ("truncate --size 3K a.log", [("a.log", "edited")]),
        ("truncate -r like.log a.log", [("a.log", "edited")]),
        ("truncate --reference like.log a.log", [("a.log", "edited")]),
        ("patch -d dir -i fix.diff a.txt", [("a.txt", "edited")]),
        ("patch -o new.txt a.txt", [("a.txt", "edited")]),
        ("patch -p 1 a.txt", [("a.txt", "edited")]),
        ("*** Begin Patch\n*** Update File: a\n rm b.txt\n*** End Patch", []),
        ("grep -n pattern.x src/a.py", [("src/a.py", "read")]),
        ("grep pattern src", []),
        ("grep pattern src/app", []),
        ("grep x ..", []),
        ("cat src/app", [("src/app", "read")]),
        ("sed s/a/b/ src/app", [("src/app", "read")]),
        ("grep \"a|b;c\" a.txt && rm 'x;y'", [("a.txt", "read"), ("x;y", "deleted")]),
        ("rg pattern ./lib..", []),
        ("awk '{print}' data.csv", [("data.csv", "read")]),
        ("sed 's/a;b/c/' a.txt", [("a.txt", "read")]),
        ("sed -i 's/a|b/c/' a.txt", [("a.txt", "edited")]),
        ("sed -i -f edits.sed a.txt", [("a.txt", "edited")]),
        ("sed --in-place s/a/b/ a.txt", [("a.txt", "edited")]),
        ("sed -i -e s/a/b/ a.txt b.txt", [("a.txt", "edited"), ("b.txt", "edited")]),
        ("sed -n 1,5p name", []),
        ("cat 'my;file.txt'", [("my;file.txt", "read")]),
        ("cat a.txt # and b.txt", [("a.txt", "read")]),
        ("cat 'unclosed a.txt", [("a.txt", "read")]),
        ("cat https://x.y/z.txt", []),
        ("cat > a.txt <<'EOF'\nrm b.txt\nEOF\ncat c.txt", [
            ("a.txt", "created"), ("c.txt", "read"),
        ]),
        ("head -n 5 a.txt", [("a.txt", "read")]),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_command_line_does_to_files(command: str, done: list[tuple[str, str]]) -> None:
    """In order; pipes, chains, redirections, quotes and here-documents are read as a shell does."""
    assert told(command) == done


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        *((f"{name} x.src", True) for name in ("black", "isort", "rustfmt")),
        *((f"{name} --check x.src", False) for name in ("black", "isort", "rustfmt")),
        *((f"{name} --diff x.src", False) for name in ("black", "isort", "ruff format")),
        *((f"{name} -c x.src", False) for name in ("isort", "prettier --write")),
        *((f"autopep8 {flag} x.src", True) for flag in ("-i", "--in-place")),
        *((f"prettier {flag} x.src", True) for flag in ("-w", "--write")),
        ("clang-format -i x.src", True),
        ("eslint --fix x.src", True),
        ("gofmt -w x.src", True),
        *((f"{n} x.src", False) for n in ("autopep8", "clang-format", "eslint", "gofmt")),
        ("prettier x.src", False),
    ],
)
def test_formatters_edit_where_they_are_told_to(command: str, writes: bool) -> None:
    """Some always, some by a flag, none that is only to look."""
    assert told(command) == [("x.src", "edited" if writes else "read")]


@pytest.mark.parametrize("name", ["bash", "sh", "zsh", "/bin/dash"])
def test_a_shell_in_a_shell_is_read_too(name: str) -> None:
    """Its script is a command line; as a list of words it is spoken as one."""
    assert told(f"{name} -ec 'rm a.txt'") == [("a.txt", "deleted")]
    assert spoken([name, "-lc", "rm a.txt"]) == "rm a.txt"
    assert spoken([name, "run.sh", "two words"]) == f"{name} run.sh 'two words'"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("apply_patch <<'EOF'\n*** Begin Patch\nEOF\nls", ["*** Begin Patch\n"]),
        ("cd /r && patch -p1 <<E\n--- a/x\n+++ b/x\nE", ["--- a/x\n+++ b/x\n"]),
        ("git apply - <<'P'\n+++ b/x\nP", ["+++ b/x\n"]),
        ("*** Begin Patch\n*** Delete File: a", ["*** Begin Patch\n*** Delete File: a"]),
        ("cat > fix.diff <<'EOF'\n+++ b/x\nEOF", []),
        ("apply_patch fix.diff", []),
    ],
)
def test_the_patches_that_a_command_line_applies(command: str, found: list[str]) -> None:
    """Those written behind it; one that is only saved, or stands in a file, is not seen."""
    assert patches(command) == found


def test_an_effect_names_the_word_that_did_it() -> None:
    """The program, git with its command, sed with its flag, a redirection alone by its mark."""
    lines = {"sed -i s/a/b/ x.py": "sed -i", "sed s/a/b/ x.py": "sed", "git rm x.py": "git rm",
             "> x.py": ">", "echo 1 > x.py": "echo", "/usr/bin/tail x.py": "tail",
             "rg q x.py": "rg", "mv x.py y": "mv", "cp a x.py": "cp"}  # fmt: skip
    assert {line: effects(line)[0].via for line in lines} == lines
