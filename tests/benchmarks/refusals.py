"""Print how agents end that meet each wording of a refusal, or reports too low, on two clients.

    python -m tests.benchmarks.refusals [--server NAME]

Limits: no turn without an answer, at most 2 refusals a session, the window within 10 %;
at most 3 requests over what a silently truncating server reads, none with other low reports.
"""

import time

from tests.benchmarks.common import options
from tests.helpers.hosting import PATHS, by_itself
from tests.helpers.refusing import REPORTS, TOO_LONG, WINDOW, reported, session


def main() -> None:
    """Run every wording, or those of one server, on every client."""
    server = options(__doc__, server=str).server
    began, bad = time.monotonic(), 0
    wordings = [each for each in TOO_LONG if server in (None, each.server)]
    with by_itself() as host:
        for said in wordings:
            for path in PATHS:
                outcome = session(host, path, said)
                bad += not outcome.is_well
                if server or not outcome.is_well:
                    print(f"{said.server:22} {path:14} {outcome}", flush=True)
        for report, (_, window) in REPORTS.items():
            for path in PATHS:
                got = reported(host, path, report)
                print(
                    f"reports {report:22} {path:14} {got.over} of {got.requests} requests over "
                    f"{window:,}; window {got.window:,}"
                )
    cells = len(wordings) * len(PATHS)
    seconds = time.monotonic() - began
    print(f"{cells - bad} of {cells} end well (window {WINDOW:,}); {seconds:.0f} s")


if __name__ == "__main__":
    main()
