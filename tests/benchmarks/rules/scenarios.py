"""Scenarios: agents of four fields; rules are told in turns 1 to 8, some lifted or replaced, with
long tool work between. Made by a program with a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.transcripts import step

Message = dict[str, Any]

SEED = 21
SCENARIOS = 64
STEPS = 6
"""Calls in each turn."""

RULES: dict[str, tuple[str, ...]] = {
    "coding": (
        "Never push to main.", "Please don't touch anything under src/legacy.",
        "Always run make lint-strict before you commit.", "Ask me before you add a dependency.",
        "All timestamps are stored in UTC.",
        "You may delete the branch feature/old-login, only that one.",
        "I prefer small commits with a one-line message.",
        "Every public function must have a docstring.",
        "The API has to stay compatible with Python 3.10.", "Our staging database is read-only.",
        "No new environment variables without my approval.", "Keep functions under 40 lines.",
        "Bitte ändere niemals die Datei deploy/prod.yaml.", "不要修改 config/prod.yaml。",
        "Whenever you change the schema, regenerate the client.",
        "The payments module is off limits.",
    ),
    "retail": (
        "Never offer more than 10 % discount.",
        "Do not share one customer's address with another.",
        "Always confirm the order number before you cancel anything.",
        "Check with me before refunding more than 100 EUR.", "Prices are net.",
        "You can refund order 4417, just this once.", "I'd rather have exchanges than refunds.",
        "Gift cards must not be combined with vouchers.", "Our shop closes at 18:00.",
        "Only ship to addresses in the EU.", "Please keep your replies under 80 words.",
        "Get my OK before you email a customer.", "Demande-moi avant de modifier une commande.",
        "No reembolses nunca pedidos de más de 90 días.",
        "Every cancellation needs a reason code.", "Call me Dana.",
    ),
    "research": (
        "Cite at least two sources for every claim.", "Don't use Wikipedia as a source.",
        "You must not quote from embargoed papers.",
        "Show me the outline before you write the report.", "Our fiscal year starts in April.",
        "You may spend up to 5 dollars on the paywalled article, that one only.",
        "I prefer tables over prose.", "Only use studies from 2020 or later.",
        "Remember that all figures are in thousands of euros.",
        "Avoid the word significant unless a test was run.",
        "From now on, answer in British English.", "Never contact the authors directly.",
        "Las cifras deben llevar siempre su fuente.", "引用は必ず原文のままにしてください。",
        "Leave the appendix alone.", "Use metric units.",
    ),
    "voice": (
        "Please never call me before nine.", "Always repeat the number back to me.",
        "Ask me before you book anything.", "I'm allergic to peanuts.",
        "You may charge my card for this taxi, once.", "I like short answers.",
        "Don't read out my address.", "Speak slowly, and only in English.",
        "My budget is 300 euros.", "No smoking rooms.", "Make sure the hotel has parking.",
        "Do not cancel the Berlin trip.", "Sprich mich bitte immer mit Sie an.",
        "Book only refundable fares.", "My flight is on March 3.",
        "Never transfer me to a machine.",
    ),
}  # fmt: skip
LIFTED = {
    "coding": (
        ("Never squash commits.", "You may squash commits after all.", ""),
        ("Use tabs for indentation.", "", "Use spaces for indentation instead of tabs."),
        ("Don't edit the changelog.", "Forget the rule about the changelog.", ""),
        ("The server must listen on port 7443.", "", "Change the port to 9443."),
    ),
    "retail": (
        ("Always offer free shipping.", "You no longer need to offer free shipping.", ""),
        ("Answer customers in German.", "", "From now on answer customers in French."),
        ("Never accept returns of opened boxes.", "Returns of opened boxes are fine now.", ""),
        ("The discount code is WINTER22.", "", "The discount code is now SPRING23."),
    ),
    "research": (
        ("Only search English papers.", "Never mind the English papers rule.", ""),
        ("The deadline is 12 May.", "", "The deadline is now 19 May."),
        ("Do not use preprints.", "It is okay to use preprints now.", ""),
        ("Write summaries of 100 words.", "", "Write summaries of 200 words instead."),
    ),
    "voice": (
        ("Never mention the weather.", "You can mention the weather again.", ""),
        ("Call me Sam.", "", "Call me Samantha from now on."),
        ("Always speak German.", "You don't have to speak German any more.", ""),
        ("I prefer aisle seats.", "", "Actually I prefer window seats."),
    ),
}  # fmt: skip
"""A rule, the words that lift it, or the rule that replaces it."""
POLICIES = {
    "coding": (
        "AGENTS.md",
        ("Use pnpm, not npm.", "Run `make test` before every commit.", "Never commit dist files."),
    ),
    "retail": (
        "policy.md",
        ("Refunds go to the original payment method.", "Deny what is against this policy.",
         "An order can only be cancelled while it is pending."),
    ),
    "research": (
        "guidelines.md",
        ("State the sample size of each study.", "Do not report p-values without effect sizes.",
         "Sources older than ten years need a note."),
    ),
    "voice": ("", ()),
}  # fmt: skip
SYSTEM = {
    "coding": "You are a coding agent.",
    "retail": "You are a retail agent. Read policy.md and follow it.",
    "research": "You are a research agent. Follow guidelines.md.",
    "voice": "You are a voice assistant.",
}
TASKS = {
    "coding": "Port the billing service to the new framework.",
    "retail": "Work through today's open customer requests.",
    "research": "Prepare a report on battery recycling in Europe.",
    "voice": "Help me to plan my journey.",
}


@dataclass
class Scenario:
    """Turns of one conversation, what binds at its end and what no longer does."""

    field: str
    rounds: int
    turns: list[list[Message]] = field(default_factory=list)
    binding: list[str] = field(default_factory=list)
    lifted: dict[str, str] = field(default_factory=dict)
    """Text of a rule -> the words that lifted or replaced it."""

    def messages(self, turns: int) -> list[Message]:
        """The transcript after so many turns."""
        opening: list[Message] = [
            {"role": "system", "content": SYSTEM[self.field]},
            {"role": "user", "content": TASKS[self.field]},
            {"role": "assistant", "content": "I begin."},
        ]
        return opening + [message for turn in self.turns[:turns] for message in turn]


def scenarios(rules: Mapping[str, Sequence[str]] = RULES) -> list[Scenario]:
    """All of them, the same in every run."""
    chance = random.Random(SEED)
    fields = list(RULES)
    return [
        _scenario(fields[n % 4], (5, 9)[n // 4 % 2], rules[fields[n % 4]], chance)
        for n in range(SCENARIOS)
    ]


def _scenario(of: str, rounds: int, rules: Sequence[str], chance: random.Random) -> Scenario:
    found = Scenario(of, rounds)
    last = min(8, rounds - 1)
    said: dict[int, list[str]] = {turn: [] for turn in range(1, rounds + 1)}
    for text in chance.sample(rules, 6):
        said[chance.randint(1, last)].append(text)
        found.binding.append(text)
    for rule, lifting, instead in chance.sample(LIFTED[of], 2):
        first = chance.randint(1, last - 1)
        said[first].append(rule)
        said[chance.randint(first + 1, last)].append(lifting or instead)
        found.lifted[rule] = lifting or instead
        found.binding += [instead] if instead else []
    name, lines = POLICIES[of]
    loads = chance.randint(1, 3) if lines else 0
    found.binding += lines
    for turn in range(1, rounds + 1):
        ask = f"Now look at part {turn}."
        found.turns.append([{"role": "user", "content": " ".join([*said[turn], ask])}])
        if turn == loads:
            body = f"# {name}\n\n" + "\n".join(f"- {line}" for line in lines)
            found.turns[-1] += step(f"policy_{turn}", body, path=name)
        for part in range(STEPS):
            found.turns[-1] += _work(of, turn, part)
        done = {"role": "assistant", "content": f"Part {turn} is looked at."}
        found.turns[-1].append(done)
    return found


def _work(of: str, turn: int, part: int) -> list[Message]:
    """A call and its long result; in a voice conversation a few spoken words."""
    if of == "voice":
        return [
            {"role": "assistant", "content": f"I found offer {turn}-{part} for you."},
            {
                "role": "user",
                "content": f"And what does offer {turn}-{part} cost with a meal? " * 2,
            },
        ]
    body = f"Record {turn}-{part} of the {of} system. " + "It was read as it stands there. " * 45
    return step(f"call_{turn}_{part}", body, path=f"data/{of}/{turn}_{part}.txt")
