"""Data: the words by which a summary tells what came of work, in English."""

from __future__ import annotations

import re

NOT_YET = re.compile(
    r"\b(?:need(?:s|ed)? to|let me|let's|i'll|will|next|should|to do|todo|pending|remaining|"
    r"going to|want(?:s|ed)? to|not yet|later|would|could|can|may|might|if|must|plan(?:ned)? to|"
    r"in progress|was (?:in the process|about to))\b",
    re.I,
)
ORDERS = re.compile(
    r"[\W_]*(?:run|verify|fix|create|write|test|check|confirm|ensure|make|need|complete|continue|"
    r"investigate|add|update|implement|await|wait|present|ask|tell|offer|report|then|once|if|when)\b",
    re.I,
)
EARLIER = re.compile(r"\b(?:initially|first|then|before|previously|earlier|were|was)\b", re.I)
WENT_WELL = re.compile(
    r"\b(?:pass(?:es|ed|ing)?|succe\w+|works|worked|no (?:errors?|failures?|issues?))\b|✅|✓", re.I
)
WENT_WRONG = re.compile(
    r"\b(?:fail\w*|broken?|breaks|crash\w*|(?:not|n't) work\w*|unsuccessful\w*)\b|❌|✗", re.I
)
UNDONE = re.compile(
    r"\b(?:could not|couldn't|did not|didn't|failed to|unable to) "
    r"(?:be )?(fix\w*|resolve\w*|solve\w*|implement\w*|create\w*|update\w*|add\w*|work|build|"
    r"compile|complete\w*)\b",
    re.I,
)
COMPLETED = re.compile(r"\b(?:done|pass(?:es|ing)?|works?|\w{3,}ed|built|ran|wrote)\b|✅|✓", re.I)
CHANGED = frozenset(
    "added removed updated changed rewrote refactored simplified implemented deleted created moved "
    "renamed modified wrote fixed edited".split()
)
CHECKS = {
    "test": r"\b(?:tests?|specs?|test suite)\b",
    "lint": r"\blint\w*\b",
    "build": r"\b(?:builds?|compil\w+)\b",
}
"""How a claim speaks of a check."""
AGREES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|ok|okay|sure|go (?:ahead|for it)|makes sense|good (?:idea|point)|"
    r"true|please do|do (?:it|that)|lgtm|"
    r"looks good|approved?|agreed?|confirm(?:ed)?|proceed|great|let['’]?s|sounds good|perfect|"
    r"ship it|i (?:approve|agree|confirm)|ja|oui|sí|si|好|可以|はい)(?!\w)"
    r"(?!.{0,12}\b(?:not|don['’]t|wait|never)\b)",
    re.I,
)
TELLS_APPROVAL = re.compile(
    r"\b(?:user|customer|client|owner)\b.{0,30}\b(?:approv\w+|confirm\w+|agree[ds]?|"
    r"accept(?:s|ed)?|authori[sz]\w+|okayed|consent\w*|permit\w*|allow(?:s|ed)?|signed off|"
    r"gave .{0,12}(?:go-ahead|ok|permission|approval|consent)|said .{0,60}\b(?:may|can)\b)"
    r"|\b(?:approved|confirmed|authori[sz]ed|accepted|agreed|requested|permitted) by (?:the )?"
    r"(?:user|customer)|\b(?:user|customer)['’]s (?:approval|permission|consent|go-ahead|confirm)",
    re.I,
)
TELLS_REQUEST = re.compile(
    r"\b(?:user|customer|client)\b.{0,20}\b(?:ask(?:s|ed)|request(?:s|ed)|want(?:s|ed)|told|"
    r"instruct\w+|demand\w+|said|insist\w+|prefer\w*|decided|chose|selected)\b",
    re.I,
)
OF_ASKING = frozenset(
    "approve approved approval confirmed confirm agreed agree accepted accept "
    "authorized asked ask requested request wants wanted told said correct being customer "
    "permission".split()
)
IRREVERSIBLE = frozenset(
    "delete merge merged push pushed publish published deploy deployed release released drop "
    "overwrite send refund cancel production".split()
)
"""What cannot be taken back."""
DENIES = frozenset(
    "not no never without cannot nor don doesn didn isn aren wasn weren won hasn haven hadn "
    "couldn shouldn wouldn nothing none".split()
)
_CHANGING = "|".join(sorted(CHANGED))
TELLS_DONE = re.compile(
    rf"[\W_]*({_CHANGING}|done|completed|finished|verified|ran|tested|checked|confirmed|deployed|pushed|"
    r"merged)\b",
    re.I,
)
_PATH = r"(?:[\w.-]+/)*[\w.-]+\.[a-z]\w{0,6}"
FILE_CHANGED = re.compile(rf"^[\W_]*({_PATH})[`*]*\W+\(?(?:{_CHANGING}|new file)\b", re.I)
"""`a.py` (created), a.py - updated."""
CHANGED_FILE = re.compile(rf"[\W_]*(?:{_CHANGING})\b[^.;]*?[` ]({_PATH})\b(?!:\d)", re.I)
"""Updated the parser in `a.py`."""
COUNTED = re.compile(
    r"(?<![\w.])\d{1,2} (?:[\w-]+ ){0,3}(?:items|findings|tasks|files|steps|places|locations|"
    r"issues|points|phases|changes|comments|questions|spaces|parts|areas|"
    r"tests(?! (?:pass|fail|succ)))\b|\d-step",
    re.I,
)
"""What a writer counts himself: no line needs to have the number."""
