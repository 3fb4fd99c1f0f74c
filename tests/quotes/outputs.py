"""Outputs of tools in the forms that tools print them, each with the words that decide.

(name, output, words): every one of the words, of a tuple all, has to be quoted.
"""

from __future__ import annotations

import json

PROGRESS = "\n".join(
    f"tests/unit/test_{n:02d}.py::test_case_{n} PASSED [{n:3d}%]" for n in range(40)
)
FETCHED = "\n".join(
    f"Get:{n} http://deb.example.org stable/main amd64 lib{n} [12 kB]" for n in range(30)
)
NOTES = "\n".join(f"  - step {n}: copied asset_{n}.png to dist/" for n in range(30))
CODE = "\n".join(f"    {n}\tdef handler_{n}(self): return self.error_{n}" for n in range(40))
RULE = "=" * 60


def over(*lines: str, filler: str = NOTES) -> str:
    """Return an output with these lines behind a long beginning that says nothing."""
    return "\n".join((filler, *lines))


def among(*lines: str, filler: str = NOTES) -> str:
    """Return an output with these lines between two long stretches that say nothing."""
    return "\n".join((filler, *lines, filler))


OUTPUTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    # test runners
    ("pytest errors", over("7 passed, 3 errors in 2.11s", filler=PROGRESS), ("7 passed, 3 errors",)),
    ("pytest short summary", over(RULE, "FAILED tests/test_cart.py::test_total - assert 41 == 42",
        f"{RULE[:10]} 1 failed, 39 passed in 0.9s {RULE[:10]}", filler=PROGRESS),
        ("test_total", "1 failed, 39 passed")),
    ("pytest collection", over("ERROR tests/test_io.py - ModuleNotFoundError: No module named 'yaml'",
        "!!!!!!! Interrupted: 1 error during collection !!!!!!!", "1 error in 0.21s", filler=PROGRESS),
        ("No module named 'yaml'", "1 error in 0.21s")),
    ("pytest all well", over("40 passed in 3.2s", filler=PROGRESS), ("40 passed",)),
    ("unittest", over("FAIL: test_refund (shop.tests.RefundTest)", "AssertionError: 10 != 12", "-" * 70,
        "Ran 18 tests in 0.421s", "", "FAILED (failures=1, errors=2)"), ("failures=1, errors=2",)),
    ("mocha", over("  12 passing (88ms)", "  2 failing", "", "  1) cart adds tax:", "     AssertionError: expected 5 to equal 6"),
        ("2 failing",)),
    ("jest", over("FAIL src/cart.test.ts", "  ● adds tax", "    expect(received).toBe(expected)", "",
        "Test Suites: 1 failed, 4 passed, 5 total", "Tests:       1 failed, 31 passed, 32 total",
        "Snapshots:   0 total", "Time:        2.9 s", "Ran all test suites."), ("1 failed, 31 passed",)),
    ("vitest", over(" FAIL  src/a.spec.ts > sums", "AssertionError: expected 2 to be 3", " Test Files  1 failed | 6 passed (7)",
        "      Tests  1 failed | 40 passed (41)", "   Duration  1.21s"), ("1 failed | 40 passed",)),
    ("cargo test", over("test parse::empty ... FAILED", "thread 'parse::empty' panicked at src/parse.rs:12:9:",
        "test result: FAILED. 11 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s", "",
        "error: test failed, to rerun pass `--lib`"), ("11 passed; 1 failed",)),
    ("go test", over("--- FAIL: TestSplit (0.00s)", "    split_test.go:14: got 3, want 4", "FAIL", "FAIL\texample.com/split\t0.004s", "FAIL"),
        ("TestSplit",)),
    ("go vet", over("# example.com/x", "./main.go:9:2: undefined: fooo"), ("undefined: fooo",)),
    ("rspec", over("12 examples, 2 failures, 1 pending", "", "Failed examples:", "", "rspec ./spec/cart_spec.rb:9 # Cart adds"),
        ("12 examples, 2 failures",)),
    ("phpunit", over("FAILURES!", "Tests: 14, Assertions: 30, Failures: 2."), ("Failures: 2",)),
    ("gradle", over("FAILURE: Build failed with an exception.", "* What went wrong:",
        "Execution failed for task ':app:compileJava'.", "BUILD FAILED in 4s", "3 actionable tasks: 2 executed, 1 up-to-date"),
        ("Build failed",)),
    ("maven", over("[ERROR] Tests run: 9, Failures: 1, Errors: 0, Skipped: 0", "[INFO] BUILD FAILURE", "[INFO] Total time:  3.2 s"),
        ("Tests run: 9, Failures: 1",)),
    ("tap", over("not ok 7 - closes the socket", "1..9", "# tests 9", "# pass 8", "# fail 1"), ("not ok 7",)),
    ("ctest", over("67% tests passed, 1 tests failed out of 3", "The following tests FAILED:", "\t  2 - net (Failed)", "Errors while running CTest"),
        ("1 tests failed out of 3",)),
    ("dotnet", over("Failed!  - Failed:     2, Passed:    18, Skipped:     0, Total:    20, Duration: 1 s"), ("Failed:     2, Passed:    18".replace("     ", " ").replace("    ", " "),)),
    ("playwright", over("  1 failed", "    [chromium] › login.spec.ts:4:5 › signs in", "  3 passed (12.1s)"), ("1 failed",)),
    # compilers and linters
    ("mypy", over("app/db.py:31: error: Incompatible return value type", "Found 3 errors in 2 files (checked 40 source files)"),
        ("Found 3 errors in 2 files",)),
    ("ruff", over("app/x.py:1:8: F401 [*] `os` imported but unused", "Found 4 errors.", "[*] 4 fixable with the `--fix` option."), ("Found 4 errors",)),
    ("tsc", over("src/app.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'."), ("TS2322",)),
    ("tsc pretty", over("Found 2 errors in the same file, starting at: src/app.ts:14"), ("Found 2 errors",)),
    ("eslint", over("/w/src/a.js", "  3:1  error  'x' is not defined  no-undef", "", "✖ 5 problems (2 errors, 3 warnings)"), ("5 problems (2 errors, 3 warnings)",)),
    ("gcc", over("main.c:4:5: error: unknown type name 'strng'", "make: *** [Makefile:7: main.o] Error 1"), ("unknown type name",)),
    ("rustc", over("error[E0382]: borrow of moved value: `v`", " --> src/main.rs:5:20", "error: could not compile `app` (bin \"app\") due to 1 previous error"),
        ("E0382",)),
    ("webpack", over("ERROR in ./src/index.js 3:0-24", "Module not found: Error: Can't resolve './ap'", "webpack 5.9 compiled with 1 error in 812 ms"),
        ("compiled with 1 error",)),
    ("next build", over("Failed to compile.", "", "./app/page.tsx", "Type error: Property 'x' does not exist on type 'Y'."), ("Failed to compile",)),
    # git and its hosts
    ("git push", "To github.com:acme/shop.git\n ! [rejected]        main -> main (non-fast-forward)\nerror: failed to push some refs to 'github.com:acme/shop.git'\n"
        "hint: Updates were rejected because the tip of your current branch is behind\nhint: its remote counterpart. If you want to integrate the remote changes,\nhint: use 'git pull' before pushing again.",
        ("[rejected]",)),
    ("git merge", "Auto-merging src/a.py\nCONFLICT (content): Merge conflict in src/a.py\nAuto-merging src/b.py\nAuto-merging src/c.py\nAutomatic merge failed; fix conflicts and then commit the result.\n" + "Auto-merging x\n" * 9,
        ("CONFLICT (content)",)),
    ("git rebase", over("Rebasing (3/7)", "error: could not apply 1f2e3d4... add tax", "hint: Resolve all conflicts manually"), ("could not apply 1f2e3d4",)),
    ("git commit", "On branch main\nnothing to commit, working tree clean", ("nothing to commit",)),
    ("pre-commit", over("ruff.....................................................................Failed", "- hook id: ruff", "- exit code: 1", "- files were modified by this hook"), ("Failed",)),
    ("gh checks", over("build  fail  1m2s  https://github.com/acme/shop/actions/runs/1", "lint  pass  20s  https://github.com/acme/shop/actions/runs/2"), ("build fail",)),
    # packages
    ("npm install", over("npm ERR! code ERESOLVE", "npm ERR! ERESOLVE unable to resolve dependency tree", "npm ERR! A complete log of this run can be found in: /root/.npm/_logs/x.log"), ("ERESOLVE",)),
    ("pip", over("ERROR: Could not find a version that satisfies the requirement flaskk", "ERROR: No matching distribution found for flaskk"), ("flaskk",)),
    ("apt", over("E: Unable to locate package nginxx", filler=FETCHED), ("Unable to locate package nginxx",)),
    ("poetry", over("Because shop depends on foo (^9) which doesn't match any versions, version solving failed."), ("version solving failed",)),
    ("audit", over("found 3 high severity vulnerabilities"), ("3 high severity",)),
    # machines and services
    ("docker build", over(" => ERROR [4/7] RUN make install  2.1s", "ERROR: failed to solve: process \"/bin/sh -c make install\" did not complete successfully: exit code: 2"), ("make install",)),
    ("docker run", "docker: Error response from daemon: Conflict. The container name \"/db\" is already in use.", ("already in use",)),
    ("kubectl get", "NAME   READY   STATUS             RESTARTS   AGE\nweb-0  0/1     CrashLoopBackOff   7          12m\nweb-1  1/1     Running            0          12m", ("CrashLoopBackOff",)),
    ("kubectl apply", over("Error from server (Forbidden): deployments.apps is forbidden: User \"ci\" cannot create resource"), ("Forbidden",)),
    ("terraform", over("Error: Error acquiring the state lock", "  on main.tf line 3:", "ConditionalCheckFailedException: The conditional request failed"), ("acquiring the state lock",)),
    ("terraform plan", over("Plan: 3 to add, 1 to change, 2 to destroy."), ("3 to add, 1 to change, 2 to destroy",)),
    ("ansible", over("PLAY RECAP ****", "web1 : ok=4 changed=1 unreachable=0 failed=1 skipped=0"), ("failed=1",)),
    ("helm", over("Error: UPGRADE FAILED: timed out waiting for the condition"), ("UPGRADE FAILED",)),
    ("systemctl", over("Active: failed (Result: exit-code) since Mon", "Main PID: 31 (code=exited, status=203/EXEC)"), ("failed (Result: exit-code)",)),
    ("psql", 'ERROR:  duplicate key value violates unique constraint "orders_pkey"\nDETAIL:  Key (id)=(7) already exists.', ("duplicate key value",)),
    ("psql rows", over("(0 rows)"), ("(0 rows)",)),
    ("sqlite", over("Error: no such table: invoices"), ("no such table: invoices",)),
    ("mysql", over("ERROR 1045 (28000): Access denied for user 'app'@'localhost' (using password: YES)"), ("Access denied",)),
    ("redis", over("(error) NOAUTH Authentication required."), ("NOAUTH",)),
    ("curl head", "HTTP/1.1 503 Service Unavailable\nserver: nginx\n" + "x-pad: 1\n" * 40, ("503 Service Unavailable",)),
    ("curl code", over("curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server"), ("Failed to connect",)),
    ("httpx", over("httpx.HTTPStatusError: Client error '429 Too Many Requests' for url 'https://api.example.org'"), ("429 Too Many Requests",)),
    ("ssh", over("deploy@10.0.0.4: Permission denied (publickey)."), ("Permission denied",)),
    ("rsync", over("rsync error: some files/attrs were not transferred (code 23) at main.c(1338)"), ("not transferred",)),
    ("rclone", over("Transferred: 0 B / 0 B, -, 0 B/s", "Errors: 4 (retrying may help)", "Elapsed time: 2.0s"), ("Errors: 4",)),
    ("segfault", over("Segmentation fault (core dumped)"), ("Segmentation fault",)),
    ("oom", over("Killed"), ("Killed",)),
    ("shell", over("bash: line 3: tera: command not found", filler=FETCHED), ("tera: command not found",)),
    ("python", over("Traceback (most recent call last):", '  File "/w/a.py", line 3, in <module>', "    main()", "KeyError: 'total'"), ("KeyError: 'total'",)),
    ("node", over("/w/a.js:3", "TypeError: Cannot read properties of undefined (reading 'id')", "    at main (/w/a.js:3:9)", "    at node:internal/main:1:2", "Node.js v20.1.0"), ("Cannot read properties of undefined",)),
    ("java", over('Exception in thread "main" java.lang.NullPointerException: id', "\tat shop.Main.main(Main.java:3)"), ("NullPointerException",)),
    ("go panic", over("panic: runtime error: index out of range [3] with length 3", "goroutine 1 [running]:", "main.main()", "\t/w/main.go:7 +0x1d", "exit status 2"), ("index out of range",)),
    ("train", over("epoch 3/3 loss=0.412 acc=0.871", "Validation accuracy: 0.864"), ("0.864",)),
    ("coverage", over("TOTAL    1204    310    74%", "FAIL Required test coverage of 80% not reached. Total coverage: 74.25%"), ("74",)),
    ("bench", over("BenchmarkSplit-8   1000000   1043 ns/op   480 B/op"), ("1043 ns/op",)),
    ("timeout", over("Command timed out after 2m 0.0s"), ("timed out",)),
    ("timeout note", "[Command timed out after 120 seconds. Partial output above.]", ("timed out after 120 seconds",)),
    ("exit only", over("exit code 3", filler=NOTES), ("exit code 3",)),
    ("exit tag", "<returncode>127</returncode>\n<output>\n" + NOTES + "\n</output>", ("127",)),
    ("exit bracket", over("[exit 4]"), ("exit code 4",)),
    ("exit status", over("Process exited with status 9"), ("9",)),
    # the deciding line is not the last
    ("bracket last", over('  "failed": 3,', "  ]", "}"), ("failed",)),
    ("cwd last", over("2 passed, 2 errors in 0.4s", "Shell cwd was reset to /w"), ("2 passed, 2 errors",)),
    ("bar last", over("Found 3 errors.", "100%|██████████| 40/40 [00:01<00:00, 31.2it/s]"), ("Found 3 errors",)),
    ("passed last", over("1 failed, 2 passed", PROGRESS, filler=NOTES), ("1 failed, 2 passed",)),
    ("host note last", over("3 specs, 1 failure", "", "[loop-guard] This call was made three times."), ("3 specs, 1 failure",)),
    ("error in the middle", among("error: linker `cc` not found"), ("linker `cc` not found",)),
    ("error far in the middle", "\n".join([NOTES] * 12 + ["FATAL: disk full on /dev/sda1"] + [NOTES] * 12), ("disk full",)),
    ("deprecation after", over("Found 3 errors.", *["DeprecationWarning: x is deprecated"] * 12), ("Found 3 errors",)),
    # refused and failed edits
    ("no match", "String to replace not found in file.\nString: " + "x = 1\n" * 60, ("String to replace not found in file",)),
    ("no match 2", "Error: Could not find old_string in src/a.py. Make sure it matches exactly.", ("Could not find old_string",)),
    ("rejected", "patch rejected by user", ("patch rejected by user",)),
    ("none replaced", "0 replacements made", ("0 replacements made",)),
    ("many matches", "Found 3 matches of the string to replace, but replace_all is false.", ("Found 3 matches",)),
    ("hunk", "patching file src/a.c\nHunk #2 FAILED at 31.\n1 out of 3 hunks FAILED -- saving rejects to file src/a.c.rej\n" + "context\n" * 40, ("hunks FAILED",)),
    ("git apply", over("error: patch failed: src/a.c:31", "error: src/a.c: patch does not apply"), ("patch failed: src/a.c:31",)),
    ("read first", "File has not been read yet. Read it first before writing to it.", ("has not been read yet",)),
    ("changed since", "File has been modified since read, either by the user or by a linter.", ("modified since read",)),
    ("read-only", "EROFS: read-only file system, open '/etc/hosts'", ("read-only file system",)),
    ("outside", "Access denied - path outside allowed directories: /etc/hosts not in /w", ("Access denied",)),
    ("German", "Die Datei konnte nicht geändert werden: Zugriff verweigert.", ("Zugriff verweigert",)),
    ("French", "L'utilisateur a refusé cette modification.", ("a refusé",)),
    ("Spanish", "El usuario rechazó el cambio.", ("rechazó",)),
    ("Japanese", "ユーザーが編集を拒否しました。", ("拒否",)),
    ("Russian", "Пользователь отклонил изменение.", ("отклонил",)),
    ("Chinese", "未找到要替换的字符串,文件未修改。", ("文件未修改",)),
    # JSON
    ("json success", '{"success": false, "path": "a.py", "hunks": 0}', ('"success": false',)),
    ("json error", json.dumps({"error": "quota exceeded", "request_id": "r" * 300}), ("quota exceeded",)),
    ("json deep", json.dumps({"data": None, "errors": [{"message": "Field 'totl' doesn't exist on type 'Order'"}], "extensions": {"trace": "t" * 400}}), ("Field 'totl'",)),
    ("json status", json.dumps({"id": "pi_" + "1" * 200, "status": "requires_payment_method", "last_payment_error": {"code": "card_declined"}}), ("requires_payment_method", "card_declined")),
    ("json list", json.dumps([{"file": f"a{n}.py", "ok": True} for n in range(40)]), ()),
    ("json ok false", json.dumps({"ok": False, "error": "channel_not_found", "needed": "n" * 300}), ("channel_not_found", '"ok": false')),
    ("json wrapper", json.dumps({"output": NOTES + "\n2 failing\n", "metadata": {"exit_code": 1, "duration_seconds": 2.0}}), ("2 failing",)),
    ("mcp", json.dumps({"content": [{"type": "text", "text": "Error: invalid token"}], "isError": True, "pad": "p" * 300}), ("invalid token",)),
    ("json http", json.dumps({"statusCode": 503, "body": "b" * 300, "headers": {"x": "y" * 90}}), ("503",)),
    ("json applied", json.dumps({"applied": 0, "rejected": 2, "files": [f"f{n}.py" for n in range(60)]}), ('"rejected": 2',)),
    # in the middle of what says nothing, also without a word that is known
    ("bazel", among("Executed 1 out of 4 tests: 3 tests pass and 1 fails locally."), ("1 fails locally",)),
    ("swift", among("Executed 12 tests, with 2 failures (0 unexpected) in 0.3 seconds"), ("with 2 failures",)),
    ("pylint", among("Your code has been rated at 6.40/10 (previous run: 7.1/10)"), ("6.40/10",)),
    ("aws", among("An error occurred (AccessDenied) when calling PutObject"), ("AccessDenied",)),
    ("mongosh", among("MongoServerError: E11000 duplicate key error collection: shop.users"), ("E11000",)),
    ("cmake", among("CMake Error at CMakeLists.txt:3 (find_package):"), ("CMake Error",)),
    ("inserted", among("INSERT 0 412"), ("INSERT 0 412",)),
    ("ended", among("Terminated"), ("Terminated",)),
    ("none ran", among("no tests ran in 0.01s"), ("no tests ran",)),
    ("partly", among("Applied 2 of 3 edits to a.py."), ("2 of 3 edits",)),
    ("German run", among("FEHLER: Verbindung abgelehnt (Port 5432)"), ("FEHLER",)),
    ("Chinese run", among("错误：连接被拒绝"), ("错误",)),
    ("containers", "CONTAINER ID   IMAGE   STATUS\n" + "".join(f"abc{n}  web:{n}  Exited (137) 3 minutes ago\n" for n in range(9)), ("Exited (137)",)),
    ("xml", '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>' + "<pad/>" * 50, ("NoSuchKey",)),
)  # fmt: skip
