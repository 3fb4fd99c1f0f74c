"""Does a model that reads the view keep to the rules? A forced choice by a small local model.

    python -m tests.benchmarks.rules.choices --api-base http://127.0.0.1:8081/v1

Any chat completions server that tells log probabilities will do; which one was used is said in
docs/measured.md. Each of 64 rules is planted in one of eight conversations. The model is shown the
conversation (whole, or one of the views) and two next steps, one of which breaks the rule; it says
a letter. Each pair is asked in both orders and the letter's probabilities are added up, since small
models prefer one letter. "no conversation" is what it would say without having read anything.
"""

from __future__ import annotations

import json
import logging
import math
import random
import urllib.request
from collections.abc import Iterator
from typing import Any

from praison_compressor import CompressorConfig, ContextCompressor
from praison_compressor.messages import result_text
from tests.benchmarks.common import options, show
from tests.benchmarks.rules.__main__ import COUNTER, masking, plain
from tests.benchmarks.rules.scenarios import RULES, SEED, SYSTEM, TASKS
from tests.helpers.transcripts import step

Message = dict[str, Any]
TURNS, STEPS = 5, 4
SUMMARIZE = (
    "Summarize the conversation so far, so that the agent can go on from your summary alone: goal, "
    "what was done, what comes next. At most 150 words."
)
# The step that keeps the rule, and the one that breaks it, in the order of RULES.
STEPS_TO_CHOOSE: dict[str, tuple[tuple[str, str], ...]] = {
    "coding": (
        ("push the commit to a branch of its own", "push the commit to main"),
        ("leave src/legacy/tax.py as it is", "edit src/legacy/tax.py"),
        ("run make lint-strict, then commit", "commit at once"),
        ("ask whether requests may be added", "add requests to the dependencies"),
        ("store the timestamp in UTC", "store the timestamp in local time"),
        ("delete the branch feature/old-login", "delete the branch feature/search"),
        ("commit each small change by itself", "commit all changes of the day at once"),
        ("write a docstring for parse()", "leave parse() without a docstring"),
        ("write code that runs on Python 3.10", "use syntax of Python 3.12"),
        ("only read from the staging database", "insert a row into the staging database"),
        ("ask about a new variable BILLING_URL", "introduce a new variable BILLING_URL"),
        ("split the function of 70 lines", "write a function of 70 lines"),
        ("leave deploy/prod.yaml alone", "change deploy/prod.yaml"),
        ("leave config/prod.yaml alone", "change config/prod.yaml"),
        ("change the schema and regenerate the client", "change the schema and go on"),
        ("leave the payments module alone", "refactor the payments module"),
    ),
    "retail": (
        ("offer 8 % discount", "offer 15 % discount"),
        ("keep Mrs. Lee's address to myself", "tell Mr. Ray the address of Mrs. Lee"),
        ("confirm the order number, then cancel", "cancel the order right away"),
        ("ask the user about a refund of 180 EUR", "refund 180 EUR"),
        ("quote the price without tax as net", "quote the price as including tax"),
        ("refund order 4417", "refund order 4420"),
        ("propose an exchange", "propose a refund"),
        ("use either the gift card or the voucher", "apply the gift card and the voucher together"),
        ("tell that the shop closes at 18:00", "tell that the shop closes at 20:00"),
        ("ship to an address in Spain", "ship to an address in Canada"),
        ("reply in 50 words", "reply in 200 words"),
        ("ask for an OK to email the customer", "email the customer"),
        ("ask before changing the order", "change the order"),
        ("refuse to refund an order of 120 days ago", "refund an order of 120 days ago"),
        ("cancel with a reason code", "cancel without a reason code"),
        ("address the user as Dana", "address the user as Madam"),
    ),
    "research": (
        ("cite two sources for the claim", "cite one source for the claim"),
        ("cite a journal article", "cite Wikipedia"),
        ("leave the embargoed paper unquoted", "quote from the embargoed paper"),
        ("show the outline first", "write the whole report now"),
        ("let the fiscal year begin in April", "let the fiscal year begin in January"),
        ("pay 4 dollars for the paywalled article", "pay 30 dollars for a data set"),
        ("put the results into a table", "put the results into prose"),
        ("use a study from 2022", "use a study from 2015"),
        ("read 120 as 120,000 euros", "read 120 as 120 euros"),
        ("write that the change is large", "write that the change is significant"),
        ("write colour and organise", "write color and organize"),
        ("search the authors' published data", "write an email to the authors"),
        ("name the source of the figure", "give the figure without a source"),
        ("quote the passage unchanged", "quote the passage in my own words"),
        ("leave the appendix as it is", "rewrite the appendix"),
        ("give the distance in kilometres", "give the distance in miles"),
    ),
    "voice": (
        ("call at ten in the morning", "call at eight in the morning"),
        ("repeat the number that was said", "go on without repeating the number"),
        ("ask whether to book the room", "book the room"),
        ("choose the meal without nuts", "choose the peanut curry"),
        ("charge the card for the taxi", "charge the card for the dinner"),
        ("answer in one sentence", "answer in ten sentences"),
        ("keep the address to myself", "read the address aloud"),
        ("speak slowly in English", "speak quickly in French"),
        ("propose a hotel for 250 euros", "propose a hotel for 450 euros"),
        ("ask for a non-smoking room", "ask for a smoking room"),
        ("choose the hotel with parking", "choose the hotel without parking"),
        ("keep the Berlin trip", "cancel the Berlin trip"),
        ("say Sie", "say du"),
        ("book the refundable fare", "book the cheaper fare without refund"),
        ("look for a hotel from March 3", "look for a hotel from March 9"),
        ("go on myself", "transfer the call to a machine"),
    ),
}


class Judge:
    """A model behind chat completions that is asked for one letter."""

    def __init__(self, base: str, model: str) -> None:
        self.url, self.model = f"{base.rstrip('/')}/chat/completions", model

    def _ask(self, shown: str, question: str, **options: Any) -> dict[str, Any]:
        text = f"{shown}\n\n{question}".lstrip()
        asked = {"model": self.model, "temperature": 0, **options}
        asked["messages"] = [{"role": "user", "content": text}]
        head = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, json.dumps(asked).encode(), head)
        with urllib.request.urlopen(request, timeout=900) as answer:
            choice: dict[str, Any] = json.load(answer)["choices"][0]
        return choice

    def text(self, shown: str, question: str) -> str:
        """An answer in words."""
        return str(self._ask(shown, question, max_tokens=220)["message"]["content"])

    def keeps(self, shown: str, keep: str, breaks: str) -> bool:
        """Whether it prefers the step that keeps the rule, over both orders."""
        first = self._prefers_a(shown, keep, breaks)
        return first - self._prefers_a(shown, breaks, keep) > 0

    def _prefers_a(self, shown: str, one: str, two: str) -> float:
        """The log odds of A against B."""
        question = f"Which next step keeps to what was agreed?\nA: {one}\nB: {two}\nSay A or B."
        found = self._ask(shown, question, max_tokens=1, logprobs=True, top_logprobs=20)
        letters = {"A": -20.0, "B": -20.0}
        for each in reversed(found["logprobs"]["content"][0]["top_logprobs"]):
            letters[each["token"].strip()] = each["logprob"]
        return math.fsum((letters["A"], -letters["B"]))


def conversations() -> Iterator[tuple[list[Message], list[tuple[str, str]]]]:
    """Eight conversations, each with eight planted rules, and the pairs that go with them."""
    chance = random.Random(SEED)
    for of, rules in RULES.items():
        order = chance.sample(range(len(rules)), len(rules))
        for half in (order[:8], order[8:]):
            said = {n: chance.randint(1, TURNS - 1) for n in half}
            messages: list[Message] = [
                {"role": "system", "content": SYSTEM[of].split(".")[0] + "."},
                {"role": "user", "content": TASKS[of]},
                {"role": "assistant", "content": "I begin."},
            ]
            for turn in range(1, TURNS + 1):
                words = [rules[n] for n in half if said[n] == turn]
                ask = " ".join([*words, f"Now look at part {turn}."])
                messages.append({"role": "user", "content": ask})
                for part in range(STEPS):
                    body = f"Record {turn}-{part} of the {of} system. " + "It was read. " * 20
                    messages += step(f"call_{turn}_{part}", body, path=f"{of}/{turn}_{part}.txt")
                messages.append({"role": "assistant", "content": f"Part {turn} is looked at."})
            yield messages, [STEPS_TO_CHOOSE[of][n] for n in half]


def shown(messages: list[Message]) -> str:
    """A conversation as text: small models' templates differ in how they take calls."""
    lines = ["This is a conversation between a user and an agent."]
    for message in messages:
        calls = "".join(
            f" calls {call['function']['name']}({call['function']['arguments']})"
            for call in message.get("tool_calls") or ()
        )
        lines.append(f"[{message['role']}]{calls} {result_text(message)}")
    return "\n".join(lines)


def views(messages: list[Message], judge: Judge) -> Iterator[tuple[str, str]]:
    """Each way to show the conversation, by name."""
    yield "no conversation", ""
    whole = shown(messages)
    yield "full transcript", whole

    async def summary(ignored: list[Message]) -> str:
        return judge.text(whole, SUMMARIZE)

    config = CompressorConfig(
        model="gpt-4o", context_window=2_000, protect_last_n_tokens=300, token_floor=0
    )
    ours = ContextCompressor(config).compress_sync(messages).messages
    yield "ours, static", shown(ours)
    room = COUNTER.messages(ours)
    yield "masking", shown(masking(messages, room, None))
    yield "one plain summary", shown(plain(messages, room, summary))


def main() -> None:
    given = options(__doc__, api_base="http://127.0.0.1:8081/v1", model="local")
    logging.disable(logging.WARNING)
    judge = Judge(given.api_base, given.model)
    right: dict[str, list[bool]] = {}
    tokens: dict[str, int] = {}
    for number, (messages, pairs) in enumerate(conversations(), 1):
        for name, text in views(messages, judge):
            right.setdefault(name, []).extend(judge.keeps(text, *pair) for pair in pairs)
            tokens[name] = tokens.get(name, 0) + COUNTER.text(text)
        print(f"{number}: { {name: sum(each) for name, each in right.items()} }", flush=True)
    full = sum(right["full transcript"])
    head = ("shown", "keeps the rule", "of the full transcript's", "tokens, mean")
    show(
        "next steps chosen",
        head,
        (
            (name, f"{sum(each)}/{len(each)}", f"{sum(each) / full:.0%}", tokens[name] // number)
            for name, each in right.items()
        ),
    )


if __name__ == "__main__":
    main()
