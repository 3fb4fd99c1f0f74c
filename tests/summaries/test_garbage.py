"""What a model answers instead of a summary, kind by kind: none is taken for one."""

from __future__ import annotations

import pytest

from praison_compressor import SummaryRejected, SummaryReply
from praison_compressor.summaries.prompts import rendering, request
from praison_compressor.summaries.validation import accept

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
    asked = request(rendering([m for turn in 3 * turns for m in (turn, reply)]), 200)
    try:
        return bool(accept(SummaryReply(answer), asked))
    except SummaryRejected:
        return False


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_text_about_nothing_is_no_summary(kind: str) -> None:
    """Whatever the talk's language is."""
    assert [language for language in TALKS if is_taken(language, GARBAGE[kind])] == []


@pytest.mark.parametrize("language", TALKS)
def test_one_true_sentence_is_a_summary(language: str) -> None:
    """In one sentence, in the talk's language or in another, by names and numbers."""
    assert [is_taken(language, answer) for answer in TALKS[language][-2:]] == [True, True]
