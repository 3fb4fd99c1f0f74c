"""Outputs of tools in the forms that tools print them, each with the words that decide.

(name, output, words): every one of the words, of a tuple all, has to be quoted.
"""

import json

PROGRESS = "\n".join(
    f"tests/unit/test_{n:02d}.py::test_case_{n} PASSED [{n:3d}%]" for n in range(40)
)
NOTES = "\n".join(f"  - step {n}: copied asset_{n}.png to dist/" for n in range(30))
CODE = "\n".join(f"    {n}\tdef handler_{n}(self): return self.error_{n}" for n in range(40))
RULE = "=" * 60


def over(*lines: str, filler: str = NOTES) -> str:
    """Return an output with these lines after a long beginning that says nothing."""
    return "\n".join((filler, *lines))


def among(*lines: str) -> str:
    """Return an output with these lines between two long passages that say nothing."""
    return "\n".join((NOTES, *lines, NOTES))


OUTPUTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # test runners
    ("pytest errors", over("7 passed, 3 errors in 2.11s", filler=PROGRESS), ("7 passed, 3 errors",)),
    ("pytest short summary", over(RULE, "FAILED tests/test_cart.py::test_total - assert 41 == 42",
        f"{RULE[:10]} 1 failed, 39 passed in 0.9s {RULE[:10]}", filler=PROGRESS),
        ("test_total", "1 failed, 39 passed")),
    ("pytest all well", over("40 passed in 3.2s", filler=PROGRESS), ("40 passed",)),
    ("unittest", over("FAIL: test_refund (shop.tests.RefundTest)", "AssertionError: 10 != 12", "-" * 70,
        "Ran 18 tests in 0.421s", "", "FAILED (failures=1, errors=2)"), ("failures=1, errors=2",)),
    ("cargo test", over("test parse::empty ... FAILED", "thread 'parse::empty' panicked at src/parse.rs:12:9:",
        "test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s", "",
        "error: test failed, to rerun pass `--lib`"), ("11 passed; 1 failed",)),
    ("go test", over("--- FAIL: TestSplit (0.00s)", "    split_test.go:14: got 3, want 4", "FAIL", "FAIL\texample.com/split\t0.004s", "FAIL"),
        ("TestSplit",)),
    ("maven", over("[ERROR] Tests run: 9, Failures: 1, Errors: 0, Skipped: 0", "[INFO] BUILD FAILURE", "[INFO] Total time:  3.2 s"),
        ("Tests run: 9, Failures: 1",)),
    # compilers and linters
    ("mypy", over("app/db.py:31: error: Incompatible return value type", "Found 3 errors in 2 files (checked 40 source files)"),
        ("Found 3 errors in 2 files",)),
    ("gcc", over("main.c:4:5: error: unknown type name 'strng'", "make: *** [Makefile:7: main.o] Error 1"), ("unknown type name",)),
    ("rustc", over("error[E0382]: borrow of moved value: `v`", " --> src/main.rs:5:20", "error: could not compile `app` (bin \"app\") due to 1 previous error"),
        ("E0382",)),
    # git and its hosts
    ("git push", "To github.com:acme/shop.git\n ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs to 'github.com:acme/shop.git'\n"
        "hint: Updates were rejected because the tip of your current branch is behind\nhint: its remote counterpart. If you want to integrate the remote changes,\nhint: use 'git pull' before pushing again.",
        ("[rejected]",)),
    ("git merge", "Auto-merging src/a.py\nCONFLICT (content): Merge conflict in src/a.py\nAuto-merging src/b.py\nAuto-merging src/c.py\nAutomatic merge failed; fix conflicts and then commit the result.\n" + "Auto-merging x\n" * 9,
        ("CONFLICT (content)",)),
    # packages
    ("npm install", over("npm ERR! code ERESOLVE", "npm ERR! ERESOLVE unable to resolve dependency tree", "npm ERR! A complete log of this run can be found in: /root/.npm/_logs/x.log"), ("ERESOLVE",)),
    # machines and services
    ("terraform plan", over("Plan: 3 to add, 1 to change, 2 to destroy."), ("3 to add, 1 to change, 2 to destroy",)),
    ("psql rows", over("(0 rows)"), ("(0 rows)",)),
    ("redis", over("(error) NOAUTH Authentication required."), ("NOAUTH",)),
    ("curl head", "HTTP/1.1 503 Service Unavailable\nserver: nginx\n" + "x-pad: 1\n" * 40, ("503 Service Unavailable",)),
    ("python", over("Traceback (most recent call last):", '  File "/w/a.py", line 3, in <module>', "    main()", "KeyError: 'total'"), ("KeyError: 'total'",)),
    ("java", over('Exception in thread "main" java.lang.NullPointerException: id', "\tat shop.Main.main(Main.java:3)"), ("NullPointerException",)),
    ("go panic", over("panic: runtime error: index out of range [3] with length 3", "goroutine 1 [running]:", "main.main()", "\t/w/main.go:7 +0x1d", "exit status 2"), ("index out of range",)),
    ("train", over("epoch 3/3 loss=0.412 acc=0.871", "Validation accuracy: 0.864"), ("0.864",)),
    ("timeout", over("Command timed out after 2m 0.0s"), ("timed out",)),
    ("exit only", over("exit code 3", filler=NOTES), ("exit code 3",)),
    ("exit tag", "<returncode>127</returncode>\n<output>\n" + NOTES + "\n</output>", ("127",)),
    ("exit bracket", over("[exit 4]"), ("exit code 4",)),
    # the deciding line is not the last
    ("error in the middle", among("error: linker `cc` not found"), ("linker `cc` not found",)),
    ("error far in the middle", "\n".join([NOTES] * 12 + ["FATAL: disk full on /dev/sda1"] + [NOTES] * 12), ("disk full",)),
    ("deprecation after", over("Found 3 errors.", *["DeprecationWarning: x is deprecated"] * 12), ("Found 3 errors",)),
    # refused and failed edits
    ("no match", "String to replace not found in file.\nString: " + "x = 1\n" * 60, ("String to replace not found in file",)),
    ("rejected", "patch rejected by user", ("patch rejected by user",)),
    ("hunk", "patching file src/a.c\nHunk #2 FAILED at 31.\n1 out of 3 hunks FAILED -- saving rejects to file src/a.c.rej\n" + "context\n" * 40, ("hunks FAILED",)),
    # JSON
    ("json error", json.dumps({"error": "quota exceeded", "request_id": "r" * 300}), ("quota exceeded",)),
    ("json deep", json.dumps({"data": None, "errors": [{"message": "Field 'totl' doesn't exist on type 'Order'"}], "extensions": {"trace": "t" * 400}}), ("Field 'totl'",)),
    ("json status", json.dumps({"id": "pi_" + "1" * 200, "status": "requires_payment_method", "last_payment_error": {"code": "card_declined"}}), ("requires_payment_method", "card_declined")),
    ("json list", json.dumps([{"file": f"a{n}.py", "ok": True} for n in range(40)]), ()),
    ("json ok false", json.dumps({"ok": False, "error": "channel_not_found", "needed": "n" * 300}), ("channel_not_found", '"ok": false')),
    ("json wrapper", json.dumps({"output": NOTES + "\n2 failing\n", "metadata": {"exit_code": 1, "duration_seconds": 2.0}}), ("2 failing",)),
    ("mcp", json.dumps({"content": [{"type": "text", "text": "Error: invalid token"}], "isError": True, "pad": "p" * 300}), ("invalid token",)),
    ("json applied", json.dumps({"applied": 0, "rejected": 2, "files": [f"f{n}.py" for n in range(60)]}), ('"rejected": 2',)),
    # in the middle of what says nothing, also without a word that is known
    ("bazel", among("Executed 1 out of 4 tests: 3 tests pass and 1 fails locally."), ("1 fails locally",)),
    ("none ran", among("no tests ran in 0.01s"), ("no tests ran",)),
    ("partly", among("Applied 2 of 3 edits to a.py."), ("2 of 3 edits",)),
    ("German run", among("FEHLER: Verbindung abgelehnt (Port 5432)"), ("FEHLER",)),
    ("containers", "CONTAINER ID   IMAGE   STATUS\n" + "".join(f"abc{n}  web:{n}  Exited (137) 3 minutes ago\n" for n in range(9)), ("Exited (137)",)),
    ("xml", '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>' + "<pad/>" * 50, ("NoSuchKey",)),
)  # fmt: skip
