"""The table fault × expected × observed: `python -m tests.benchmarks.faults`.

Every row is made over real HTTP against the strict local provider.
"""

from __future__ import annotations

import logging
import os
import sys

from ..hostile.faults import expected_row, faults, observe

HEADINGS = (
    "fault",
    "alone",
    "calls",
    "next turn",
    "with a second model",
    "problems",
    "told as",
    "",
)


def main() -> int:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logging.disable(logging.CRITICAL)
    print("| " + " | ".join(HEADINGS) + " |")
    print("|---" * len(HEADINGS) + "|")
    wrong = 0
    for fault in faults():
        observed = observe(fault)
        wanted, found = expected_row(fault), observed.row()
        wrong += wanted != found
        cells = [
            str(a) if a == b else f"{b} (expected {a})" for a, b in zip(wanted, found, strict=True)
        ]
        cells[-1] = cells[-1].replace("()", "none")
        verdict = "as expected" if wanted == found else "**differs**"
        told = observed.reason[:60].replace("|", "/").replace("\n", " ")
        print("| " + " | ".join([fault.name, *cells, told or "-", verdict]) + " |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
