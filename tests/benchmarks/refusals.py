"""Print how agents end that meet each wording of a refusal, on two clients.

    python -m tests.benchmarks.refusals [--server NAME]

Limits: no turn without an answer, at most 2 refusals a session, the window within 10 %.
"""

import time

from tests.benchmarks.common import options
from tests.helpers.hosting import PATHS, by_itself
from tests.helpers.refusing import TOO_LONG, WINDOW, session


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
    cells = len(wordings) * len(PATHS)
    seconds = time.monotonic() - began
    print(f"{cells - bad} of {cells} end well (window {WINDOW:,}); {seconds:.0f} s")


if __name__ == "__main__":
    main()
