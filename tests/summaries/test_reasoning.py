"""A model's reasoning is no part of its summary, whichever family wrote it."""

import pytest

from praison_compressor.summaries.reasoning import strip_reasoning

THOUGHT = "Let me see what matters.\n\nIt's a ```x``` here."

TAGS = """think thinking thought Thought thoughts reasoning reason reflection analysis scratchpad
REASONING_SCRATCHPAD antThinking inner_monologue chain_of_thought rationale planning mm:think
seed:think thought_process self-reflection antml:thinking think:opensource longcat_think
think_never_used_51bce0c785ca2f68081bfa7d91973934"""
TOKENS = {
    **{f"<{name}>": f"</{name}>" for name in TAGS.split()},
    '<think time="3s">': "</think>",
    "< think >": "</ think >",
    "&lt;think&gt;": "&lt;/think&gt;",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|begin_of_reasoning|>": "<|end_of_reasoning|>",
    "<｜begin▁of▁thinking｜>": "<｜end▁of▁thinking｜>",
    "<|think_start|>": "<|think_end|>",
    "<|thinking|>": "<|/thinking|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>thought\n": "<channel|>",
    "<unused94>thought\n": "<unused95>",
    "[unused16]": "[unused17]",
    "<|im_start|>think\n": "<|im_start|>answer\n",
}
"""Openings and closings that also occur half open, unclosed and nested."""

PHRASES = {
    "[reasoning]": "[/reasoning]",
    "<!-- thinking\n": "\n-->",
    "assistantanalysis": "assistantfinal",
    "<|think|>": "<|end|><|begin|>assistant<|content|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
    "analysis": "assistantfinal",
    '<details type="reasoning" done="true">\n<summary>T</summary>': "</details>",
    "<details>\n<summary>Thought for 3 seconds</summary>": "</details>",
    "Here is my thought process: ": "Here is my response:",
    "Here's my thinking process:": "Here's my response:",
    "Here’s my thought process:\n": "\nHere’s my response:\n",
    "Thinking...\n": "\n...done thinking.\n",
    ":::thinking\n": "\n:::\n",
    "Thought: ": "\nFinal Answer: ",
    "## Thinking\n": "\n## Answer\n",
    "**Reasoning:**\n": "\n**Final answer:**\n",
}


@pytest.mark.parametrize(("opening", "closing"), [*TOKENS.items(), *PHRASES.items()])
def test_closed_reasoning_is_stripped(opening, closing):
    """Only the text after closed reasoning stays."""
    assert strip_reasoning(f"{opening}{THOUGHT}{closing}\nkept") == "kept"


@pytest.mark.parametrize(("opening", "closing"), TOKENS.items())
def test_reasoning_is_stripped_however_its_tags_are_paired(opening, closing):
    """Half-open, unclosed and nested reasoning is stripped."""
    answers = {
        f"{THOUGHT}{closing}kept": "kept",
        f"{opening}{THOUGHT}": "",
        f"kept {opening}{THOUGHT}": "kept",
        f"{opening}{THOUGHT}{opening}{THOUGHT}{closing}{THOUGHT}{closing}kept": "kept",
        f"{opening}{THOUGHT}{opening}{THOUGHT}{closing}kept": "kept",
    }
    assert {answer: strip_reasoning(answer) for answer in answers} == answers


@pytest.mark.parametrize(("opening", "closing"), TOKENS.items())
def test_a_tag_in_backticks_is_text(opening, closing):
    """A reasoning tag in backticks or in a fence stays."""
    opening, closing = opening.strip(), closing.strip()
    for answer in (
        f"The parser drops `{opening}` and `{closing}` now.",
        f"The parser drops ``{opening}``, ``{closing}`` too.",
        f"Stripped:\n```\n{opening}\n```\nand\n```\n{closing}\n```",
    ):
        assert strip_reasoning(answer) == answer


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("<think></think>kept", "kept"),
        ("<think/>kept", "kept"),
        ("<think>a</thinking>kept", "kept"),
        ("<reasoning>x</reasoning><analysis>y</analysis>kept", "kept"),
        ("```thinking\nx\n```\nkept", "kept"),
        ("```markdown\n## Done\nkept\n```", "## Done\nkept"),
        ("<think>x</think>\n<answer>kept</answer>", "kept"),
        ("<think>`</think>` closes it</think>kept", "kept"),
        ("<|START_RESPONSE|>kept<|END_RESPONSE|>", "kept"),
        ("kept<|im_end|></s>", "kept"),
        *(
            (answer, answer)
            for answer in (
                "The parser drops \"<think>\" and '</think>' now.",
                "<details>\n<summary>Log</summary>two lines</details>\nDone.",
                'It says "here is my response:" in the log.',
                "Thought: the cache is stale, so the run was repeated.",
                "a < think, b > c",
                "The state is [analysis], see [reason] below.",
                "<!-- kept --> The parser drops comments.",
                "## Errors and fixes\nError: rate limit exceeded",
            )
        ),
    ],
)
def test_only_reasoning_is_stripped(answer, left):
    """Nothing but reasoning and an answer's wrapper is stripped."""
    assert strip_reasoning(answer) == left
