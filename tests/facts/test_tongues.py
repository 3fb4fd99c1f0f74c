"""Rules, corrections, decisions and open work of people who do not write English."""

from __future__ import annotations

import pytest

from praison_compressor.facts import extract
from praison_compressor.facts.corrections import sentences
from praison_compressor.facts.extraction import notes
from praison_compressor.facts.identifiers import Classifier
from praison_compressor.facts.passages import Passage
from praison_compressor.summaries.static import static_summary


def held(*texts: str) -> dict[str, tuple[str, ...]]:
    """The user's sentences, each with its values that no longer hold."""
    facts = extract([{"role": "user", "content": text} for text in texts])
    return {said.text: said.old_values for said in facts.user if said.old_values}


@pytest.mark.parametrize(
    ("first", "later", "old"),
    [
        ("Nimm Port 8080.", "Nimm Port 9090 statt 8080.", "8080"),
        ("Nimm Port 8080.", "Nein, nimm Port 9090.", "8080"),
        ("Die Konfiguration liegt in conf/dev.yaml.",
         "Die Konfiguration soll doch in conf/prod.yaml liegen.", "conf/dev.yaml"),
        ("Nimm Port 8080.", "Nimm Port 9090.", "8080"),
        ("Utilise le port 8080.", "Utilise plutôt le port 9090.", "8080"),
        ("Utilise le port 8080.", "Non, le port 9090 au lieu de 8080.", "8080"),
        ("Usa la tabla ventas_2024.", "No, usa ventas_2025 en lugar de ventas_2024.",
         "ventas_2024"),
        ("El formato debe ser CSV.", "El formato mejor en XLSX, no en CSV.", "CSV"),
        ("Usa a porta 8080.", "Não, a porta 9090 em vez de 8080.", "8080"),
        ("服务端口用 8080。", "不要用 8080，改用 9090。", "8080"),
        ("服务端口用8080。", "端口改成9090吧。", "8080"),
        ("タイムアウトを30sに設定してください。", "やっぱりタイムアウトは45sにして。", "30s"),
        ("ポートは8080にしてください。", "8080ではなく9090にしてください。", "8080"),
    ],
)  # fmt: skip
def test_a_correction_is_one_in_any_of_the_languages(first: str, later: str, old: str) -> None:
    """The older sentence is marked, and printed only so."""
    assert held(first, later) == {first: (old,)}
    told = [{"role": "user", "content": text} for text in (first, later)]
    lines = static_summary(told, budget_tokens=400, count=len).splitlines()
    assert f"- {first} (superseded later: {old} no longer holds)" in lines


@pytest.mark.parametrize(
    "texts",
    [
        ("Use port 8080. Keep Python 3.10.", "Use 9090 instead of 8080."),
        ("Nimm Port 8080. Es muss mit Python 3.10 laufen.", "Nimm 9090 statt 8080."),
        ("端口用 8080。必须兼容 Python 3.10。", "不要用 8080，改用 9090。"),
        ("Use port 8080. Keep Python 3.10.", "No, use port 9090."),
    ],
)
def test_a_correction_takes_back_no_other_number(texts: tuple[str, str]) -> None:
    """Neither the newest one nor that of another matter."""
    assert list(held(*texts).values()) == [("8080",)]


def test_a_value_that_was_said_twice_is_taken_back_twice() -> None:
    """Else the older mention would be told as if it held."""
    first, again = "Always use port 8080.", "Start it on port 8080 please."
    assert held(first, again, "No, use port 9090.") == {first: ("8080",), again: ("8080",)}
    assert held(first, again, "Use 9090 instead of 8080.") == {first: ("8080",), again: ("8080",)}


@pytest.mark.parametrize(
    "rule",
    ["Verwende niemals HTTP.", "Ändere die Tests nicht.", "Ne touche jamais à la base.",
     "No incluyas datos personales.", "Nunca uses la raíz.", "不要修改测试。", "必须兼容旧版本。",
     "必ずテストを書いてください。", "設定は変更しないでください。"],
)  # fmt: skip
def test_rules_of_the_session(rule: str) -> None:
    """They come first in a summary."""
    assert extract([{"role": "user", "content": rule}]).user[0].standing


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Ich nehme nginx, weil Caddy hier fehlt.", "decision"),
        ("He decidido agrupar por mes porque falta la región.", "decision"),
        ("J'ai décidé d'utiliser SQLite.", "decision"),
        ("因为支持异步，我决定用 FastAPI。", "decision"),
        ("リトライがあるため、45sに決定しました。", "decision"),
        ("Als Nächstes prüfe ich die Rundung.", "open"),
        ("Noch offen: Zertifikate erneuern.", "open"),
        ("El siguiente paso es pedir el permiso.", "open"),
        ("La prochaine étape est la migration.", "open"),
        ("下一步修改测试。", "open"),
        ("次にテストを追加します。", "open"),
    ],
)
def test_decisions_and_open_work(sentence: str, kind: str) -> None:
    """In the words of the assistant."""
    assert [found for found, _ in notes(Passage(0, "assistant", sentence))] == [kind]


def test_sentences_without_spaces_between_them() -> None:
    """Each is one."""
    assert sentences("端口用 8080。不要改测试！好吗？好。") == [
        "端口用 8080。",
        "不要改测试！",
        "好吗？",
        "好。",
    ]


def test_a_name_that_touches_other_words() -> None:
    """Is still a name, and the words beside it are none."""
    assert Classifier().names("文件config/部署.yaml，端口改为9090，调用get_user。") == {
        "9090": "number",
        "get_user": "symbol",
    }
    assert Classifier().names("修改orders/tests/test_port.py吧") == Classifier().names(
        "orders/tests/test_port.py"
    )
