"""Data: the words by which a summary tells what came of work, in English, and how its claims are
read: patterns and thresholds."""

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
    "authorized asked ask requested request wants wanted told said being customer "
    "permission".split()
)
IRREVERSIBLE = frozenset(
    "delete merge merged push pushed publish published deploy deployed release released drop "
    "overwrite send refund cancel production".split()
)
"""What cannot be taken back."""
VERDICTS = frozenset("correct right accurate".split())
"""What a user says of work himself."""
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


# -------------------------------------------------------------- how claims are read

_NO_COUNT = "asks teps tep ptions ption about around Phase".split()
"""Ends of words with which a number is a name, or no more than about right."""
UNITS = "px|r?em|pt|ms|s|sec|min|[bdghklmx]|[kmgt]b|ml|kg|[ckm]m|hz|fps"
VALUE = re.compile(
    rf"(?<![\w.#/~≈:-]){''.join(f'(?<!{word} )' for word in _NO_COUNT)}(?<!\d[,.])(?<!` )(?<!` \()"
    rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,9}}(?:\.\d{{1,3}})?)(?:{UNITS})?(?![\w]|[.,:–-]\d|\. [a-z])"
)
LISTED = re.compile(
    r"(?<![\w.#:/~-])(\d{1,2}) (?:[\w`'-]+ ){0,3}[\w`'-]+(?: \(|: )([^;:()]+)(?:\)|$)"
)
BY_NOW = re.compile(r"\b(?:now|finally|in the end|again)\b", re.I)
NOT_ALL = re.compile(r"\btimes\b|\betc\b|\be\.g\.|\bincluding\b|\bsuch as\b|…|\.\.\.", re.I)
OPTION_CHARS = 12
"""What the user says in fewer may be the name of an option that he was given."""
ELIDED = re.compile(r"\.\.\.|…|\[\.*\]")
QUOTED_WORDS = re.compile(r"[\"“]([^\"“”]{12,})[\"”]")
QUOTED_SHORT = re.compile(r"(?<!\w)[\"“]([^\"“”]{5,120}?)[.,]?[\"”]")
CLAUSE = re.compile(r"[,;]\s|\s[-–—]\s|\bbut\b")
ASIDE = re.compile(r" ?\([^()]*\)")
AWAITS_USER = re.compile(
    r"\b(?:on|upon|after|once|until|pending) (?:the )?(?:user|customer)\b|\b(?:get|obtain|needs?|"
    r"requires?|await|seek|(?:ask|wait) for) (?:the )?(?:user|customer)['’]s",
    re.I,
)
INDEX = re.compile(r"\[[\d:]+\]")
FILE_LINE = re.compile(r"\.\w+:\d")
"""A line of a file: another place in it is no contradiction."""
ASKS_THE_USER = re.compile(
    r"(?:^|[._])ask_?(?:the_?)?(?:user|human|follow_?up|question)|^exit_?plan_?mode$|"
    r"^request_user_input$",
    re.I,
)
"""Tools whose results are the user's own answers: by the whole word, a `Task` is none."""
HAS_AGREED = re.compile(r"\W*(?:the )?user (?:has )?(?:approved|agreed|confirmed|accepted)", re.I)
WRITES = re.compile(r"edit|write|patch|replace|create|insert|update", re.I)
SMALL, MOST_COUNTED = 9, 99
"""Numbers that a writer uses as words, and those that he may have counted himself: only larger ones
must have a witness."""
FITS, ALIKE = 0.4, 0.95
"""How well a line must fit round another number, and with its other words too."""
BESIDE = 0.12
"""As much of the words next to a number stands next to it in its witness."""
SAME_LINE = 0.5
"""The same of its words anywhere in the line."""
HEADLINE = 60  # characters of a line in which a tool tells a count: "15 issues:"
MOST_NUMBERS = 4
"""What has more is a table: which of them stands beside what is not told by its words."""
MOST_CLAIMS, LONGEST_CLAIM = 600, 600
"""Claims of a text, and characters of one, that are looked at: a long summary makes 150."""
LEAST_WORDS = 4  # of a claim that is compared with lines like it; a heading has fewer
ASKING_CHARS = 600  # at the end of a text: an answer to a question there may be to all of it
SPOKEN = ("assistant", "user", "summary")
PROSE = (*SPOKEN, "visible")
