"""A model's answer is judged by its end, form, words and word order."""

import enum
import random

import pytest

from praison_compressor import SummaryRejected, SummaryReply
from praison_compressor.summaries.prompts import SummaryRequest, render_messages, request_summary
from praison_compressor.summaries.validation import accept
from tests.helpers.transcripts import coding_turns, step

TRUE = (
    "The invoice export failed for Norway because the VAT table had no row with rate 25. The row "
    "was added in vat_rates.csv, and order 88213 was exported first. The user wants the run for "
    "March to be repeated on Monday, and no mail to customers before that. Open: the totals of "
    "order 88214 differ by 3.40 from the ledger, for a reason that nobody has found yet."
)
SAID = (
    "Please look why the invoice export fails for customers in Norway, order 88213 first.",
    "The VAT table has no row for Norway: rate 25 is missing in vat_rates.csv, so it fails.",
    "Add the row with rate 25. Repeat the run for March on Monday, no mail to customers before.",
    "Order 88213 was exported first. The totals of order 88214 differ by 3.40 from the ledger.",
    "Find the reason why the totals differ; the user of the ledger has not found it yet.",
)
FILLER = " ".join(f"Row {n} of page {n % 7} has an amount and a customer." for n in range(120))
MESSAGES = [
    message
    for n, text in enumerate(SAID)
    for message in (
        {"role": "user" if n % 2 == 0 else "assistant", "content": text},
        *step(f"c{n}", FILLER, path=f"pages/page_{n}.csv"),
    )
]
ASKED = request_summary(render_messages(MESSAGES), 200)


def refused(text: str, finish_reason: object = "stop", asked: SummaryRequest = ASKED) -> str:
    """Return the reason of the answer's refusal, or ""."""
    try:
        accept(SummaryReply(text, finish_reason=finish_reason), asked)
    except SummaryRejected as error:
        return error.reason
    return ""


def test_a_true_summary_is_accepted():
    """Long or short, whatever word it begins with, in another language too."""
    short = (
        "88213 is exported; 88214 differs by 3.40.",
        "Error gone: vat_rates.csv has rate 25 for Norway.",
        "Sorry for Norway: order 88214 differs by 3.40 from the ledger.",
        "I cannot say why 88214 differs by 3.40.",
        "Die Zeile mit 25 steht in vat_rates.csv, 88213 ist exportiert, 88214 offen.",
    )
    assert [refused(text) for text in (TRUE, *short)] == [""] * 6


class Reason(enum.Enum):
    """As a client of a provider's own has it."""

    MAX_TOKENS = "MAX_TOKENS"


class Numbered(enum.IntEnum):
    """As Google's protocol buffers have it: the number says nothing."""

    STOP = 1
    MAX_TOKENS = 2
    SAFETY = 3


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        (
            ("length", "LENGTH", "MAX_TOKENS", "max_output_tokens", "FinishReason.MAX_TOKENS",
             "model_length", "incomplete", "model_context_window_exceeded", Reason.MAX_TOKENS,
             Numbered.MAX_TOKENS, "ERROR_LIMIT", "TOKEN_LIMIT", "NOT_FINISHED", "network_error",
             "insufficient_system_resource", "user_cancelled", "abort", "pause_turn",
             {"type": "max_tokens"}, ["length"], "malformed_model_output"),
            "cut off",
        ),
        (
            ("content_filter", "SAFETY", "refusal", "RECITATION", "PROHIBITED_CONTENT",
             "guardrail_intervened", "BLOCKLIST", "content-filter", "contentFiltered",
             "ERROR_TOXIC", "IMAGE_SAFETY", "SPII", "sensitive", "unsafe", Numbered.SAFETY),
            "refusal",
        ),
        (("tool_calls", "tool_use", "function_call", "MALFORMED_FUNCTION_CALL"), "tool call"),
        (("stop", "STOP", "end_turn", "stop_sequence", "eos_token", "COMPLETE", None, "",
          "completed", "eos", "finished", "STOP_SEQUENCE", "done", Numbered.STOP,
          "FINISH_REASON_STOP"), ""),
    ],
    ids=["cut off", "filter", "call", "finished"],
)  # fmt: skip
def test_an_answer_that_did_not_end_by_itself_is_refused(reasons, why):
    """An answer with any provider's spelling of an early end is refused."""
    assert {refused(TRUE, reason) for reason in reasons} == {why}


SHUFFLED = " ".join(random.Random(5).sample(TRUE.split(), len(TRUE.split())))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Please provide the transcript you would like me to summarize.", "unrelated"),
        ("I'm sorry, but I cannot summarize this.", "unrelated"),
        ("Error: upstream timed out", "unrelated"),
        ("502 Bad Gateway", "unrelated"),
        ("<!DOCTYPE html><html></html>", "error text"),
        ("<think>all of it thought", "empty"),
        ("Write the summary now: at most 140 words, headings and text only.", "unrelated"),
        (ASKED.messages[0]["content"], "echo"),
        (ASKED.messages[1]["content"], "echo"),
        ("\n\n".join(render_messages(MESSAGES)[:4])[:2_000], "echo"),
        (SHUFFLED, "no order"),
        (f"{TRUE} {'The totals differ, look again. ' * 40}", "repetition"),
        (f"{TRUE}\n{'- Norway' * 200}", "repetition"),
        ("go on " * 300, "repetition"),
        (f"{TRUE} {'Norway25' * 400}", "repetition"),
        (f'{{"summary": "{TRUE}", "open": ["order 88214', "unfinished JSON"),
        (f'```json\n{{"summary": "{TRUE}", "open": [', "unfinished JSON"),
        (f'Here it is:\n{{"summary": "{TRUE}"', "unfinished JSON"),
        ('<tool_call>{"name": "read_file"}</tool_call>', "tool call"),
        ('{"error": {"message": "quota"}}', "error text"),
        ("", "empty"),
    ],
)
def test_a_text_that_is_no_summary_is_refused(text, why):
    """A text is refused by measurable faults, in any language."""
    assert refused(text) == why


@pytest.mark.parametrize(
    "text",
    [
        f'{{"summary": "{TRUE}", "open": []}}',
        f'{{"port": 25}} is what vat_rates.csv has now. {TRUE}',
        f"{TRUE}\n\n| order | total |\n|---|---|\n" + "| 88213 | 3.40 |\n| 88214 | 25 |\n" * 3,
        "\n".join(f"- order {n} of the export is in the ledger" for n in range(88200, 88230)),
    ],
    ids=["whole JSON", "JSON in front", "a table", "a list"],
)
def test_a_summary_in_another_form_is_accepted(text):
    """Complete JSON, quoted JSON, tables and lists are no faults."""
    assert refused(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "No summary is available for this conversation.",
        "No data available for this request.",
        "There is no summary available.",
    ],
)
def test_ordinary_words_of_a_segment_are_no_evidence(text):
    """A segment whose results repeat "available" is not what such an answer is about."""
    seats = '{"seat": "12A", "available": true, "for": "this fare"}\n' * 30
    words = " ".join(f"{a}{b}r{a}in" for a in "bcdfgklmnprstvz" for b in "aeiou")
    talk = [
        *coding_turns(12, words=20),
        *step("seats", seats, "list_seats"),
        *step("w", words, "look"),
    ]
    assert refused(text, asked=request_summary(render_messages(talk), 200)) == "unrelated"


@pytest.mark.parametrize("name", ["log/2026-11-26", "2026-11-26/log", "log-2026-11-26.txt"])
def test_a_part_of_a_longer_name_is_no_whole_name(name):
    """A date of an error is no evidence if the segment has it only inside names of files."""
    words = " ".join(f"{a}{b}r{c}in" for a in "bcdfgk" for b in "aeiou" for c in "lmnpqrst")
    asked = request_summary(render_messages(step("look", f"{words} {name} {words}", "look")), 200)
    assert refused("Error on 2026-11-26", asked=asked) == "unrelated"


# ---------------------------------------------------------------- in any language

LOREM = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco "
    "laboris nisi ut aliquip ex ea commodo consequat. "
)

GARBAGE = {
    "ok": "OK",
    "null": "null",
    "an empty object": "{}",
    "a thumb": "👍👍👍",
    "replacement characters": "\ufffd\ufffd\ufffd \ufffd\ufffd\ufffd",
    "headings alone": "## Goal and constraints\n## Done\n## In progress\n## Next step",
    "placeholders": "## Done\n- [insert completed work here]\n## Next step\n- [insert next step]",
    "an announcement": "Sure! Here is a summary of the conversation:",
    "a greeting": "Hello! How can I help you today?",
    "a summary of nothing": "The conversation between the user and the assistant was summarized.",
    "apology": "I apologize, but I don't feel comfortable summarizing this conversation, because "
    "it may contain sensitive information. Is there something else I can help you with?",
    "policy": "This request violates our usage policy and was therefore not processed.",
    "German": "Es tut mir leid, aber ich kann dieses Gespräch leider nicht zusammenfassen.",
    "Russian": "Извините, но я не могу обобщить этот разговор.",
    "Hindi": "मुझे खेद है, मैं इस बातचीत का सारांश नहीं दे सकता।",
    "Chinese": "很抱歉，我无法总结这段对话。",
    "filler text": LOREM * 4,
    "a bare tool call": '{"name": "read_file", "arguments": {"path": "src/app.py"}}',
    "a call in brackets": '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "a.py"}}]',
    "numbers": " ".join(map(str, range(1, 400))),
    "random letters": "qwzx vbrtk plmnj xkcdf zzyqw " * 3 + "ghjtr mnbvc lkjhg poiuy trewq",
    "another conversation's": "The user wants a recipe for leek soup for six people. Onions, two "
    "kilos of leeks and cream were bought; the oven stays cold. Next: peel the potatoes.",
    "an error in JSON": '{"error": {"message": "You exceeded your current quota", "code": 429, '
    '"details": "' + "billing " * 60 + '"}}',
}  # fmt: skip

# Three turns of talk each; what a model may write of it; the same in another language.
TALKS = {
    "English": (
        "Please look why the invoice export fails for customers in Norway.",
        "The export fails because the VAT table has no row for Norway: rate 25 is missing there.",
        "Add the row with rate 25 and run the export for March again, order 88213 first.",
        "The export of invoices failed for Norway: VAT rate 25 was missing. Order 88213 next.",
        "Der Export scheiterte für Norway, weil der Satz 25 fehlte. Auftrag 88213 kommt zuerst.",
    ),
    "German": (
        "Bitte prüfe, warum die Heizung im Lager nachts ausgeht; die Pflanzen frieren.",
        "Die Zeitschaltuhr steht auf 22 Uhr; sie ist auf 6 Uhr gestellt, aber der Fühler fehlt.",
        "Bitte merken: Herr Brandt liefert den Fühler KTY84 am Donnerstag.",
        "Heizung im Lager: Zeitschaltuhr von 22 auf 6 Uhr gestellt. Brandt liefert Fühler KTY84.",
        "The heating timer was moved from 22 to 6 o'clock; Herr Brandt brings the KTY84 sensor.",
    ),
    "Russian": (
        "Сервер печати в Казани не отвечает с утра, посмотрите журнал.",
        "В журнале ошибка 0x6d9: служба остановлена после обновления, диск полон на 98 процентов.",
        "Очистите диск и запустите службу, потом напишите Ольге про итог.",
        "Сервер печати в Казани: ошибка 0x6d9, диск полон на 98 процентов; очистить, запустить.",
        "Print server: error 0x6d9, the disk is 98 percent full; clean it and start the service.",
    ),
    "Chinese": (
        "很抱歉，我无法登录成都仓库的系统，请帮我检查账号。",
        "账号 wh_0317 因为密码过期被锁定，管理员李伟可以解锁，有效期改为 90 天。",
        "请联系李伟解锁账号，然后盘点三号货架的电池库存。",
        "成都仓库账号 wh_0317 密码过期被锁定，联系管理员李伟解锁，之后盘点电池库存。",
        "The account wh_0317 was locked, its password had ended; it lasts 90 days now.",
    ),
    "Thai": (
        "ขออภัย ตู้เย็นที่สาขาเชียงใหม่เสีย ช่วยตรวจสอบด้วย",
        "คอมเพรสเซอร์รุ่น RK-88 หยุดทำงาน อุณหภูมิขึ้นถึง 14 องศา ช่างสมชายมีอะไหล่",
        "โทรหาช่างสมชายให้เปลี่ยนคอมเพรสเซอร์ก่อนวันศุกร์",
        "ตู้เย็นสาขาเชียงใหม่เสีย คอมเพรสเซอร์ RK-88 หยุดทำงาน ช่างสมชายจะเปลี่ยนก่อนวันศุกร์",
        "The compressor RK-88 stopped and it is 14 degrees; a technician changes it.",
    ),
}  # fmt: skip


def is_taken(language: str, answer: str) -> bool:
    """Return whether the answer is accepted as a summary of three rounds of that talk."""
    *said, _, _ = TALKS[language]
    turns = [{"role": "user", "content": text} for text in said]
    reply = {"role": "assistant", "content": said[1]}
    asked = request_summary(render_messages([m for turn in 3 * turns for m in (turn, reply)]), 200)
    return not refused(answer, asked=asked)


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_text_about_nothing_is_no_summary(kind):
    """An empty phrase is refused for a conversation in any language."""
    assert [language for language in TALKS if is_taken(language, GARBAGE[kind])] == []


@pytest.mark.parametrize("language", TALKS)
def test_one_true_sentence_is_a_summary(language):
    """One sentence with the conversation's names and numbers is taken, in any language."""
    assert [is_taken(language, answer) for answer in TALKS[language][-2:]] == [True, True]
