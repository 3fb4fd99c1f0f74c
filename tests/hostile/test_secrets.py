"""Keys and tokens are redacted for other models and on a disk, equal ones equally."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from praison_compressor import Event
from praison_compressor.ledger.sql.archive import Packer
from praison_compressor.ledger.words import distinct_words
from praison_compressor.messages import Message, text_of
from praison_compressor.messages.secrets import Redactor
from praison_compressor.testing import Reply
from tests.helpers.compressing import Model, compressor
from tests.helpers.stores import bytes_of
from tests.helpers.talks import verify
from tests.helpers.transcripts import coding_turns, outputs, step

# Put together here, so that no scanner takes this file for a leak.
SECRETS = {
    "github-token": "gh" + "p_" + "a1B2" * 9,
    "aws-key": "AKIA" + "ABCD2345EFGH6789",
    "anthropic-key": "sk-" + "ant-api03-" + "x9Y8" * 8,
    "openai-key": "sk-" + "proj-" + "k3L4" * 8,
    "google-key": "AIza" + "a1B2c" * 7,
    "slack-token": "xox" + "b-1234567890-abcdefghij",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVm",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEow1B" * 8
    + "\n-----END RSA PRIVATE KEY-----",
    "stripe-access-key": "sk_" + "live_" + "a1B2c3D4" * 3,
    "sendgrid-api-key": "SG" + "." + "a1B2c3D4e5F" * 2 + "." + "a" * 43,
    "pypi-token": "pypi" + "-AgEIcHlwaS5vcmc" + "a1B2" * 18,
    "square-oauth-secret": "sq0" + "csp-" + "a1B2c" * 8 + "xyz",
    "twilio-api-key": "SK" + "0a1b2c3d" * 4,
    "telegram-bot-token": "123456789" + ":" + "AAa1B2c" * 5,
    "mailchimp-access-key": "0a1b2c3d" * 4 + "-us" + "21",
    "discord-bot-token": "M" + "a1B2" * 6 + ".a1B2c3." + "a1B2c3D4e" * 3,
    "url-password": "hunter2-s3cr3t",
    "assigned-secret": "tr0ub4dor-and-3",
}
TEXTS = {
    **SECRETS,
    "url-password": f"postgres://app:{SECRETS['url-password']}@db.internal/app",
    "assigned-secret": f"PASSWORD={SECRETS['assigned-secret']}",
}
HEX, MIXED, CAPITALS = "0a1b2c3d" * 8, "a1B2c3D4e5" * 20, "A1B2C3D4E5" * 8
LETTERS, HEX_LETTERS = "AbCdEfGhIjKlMnOpQrStUvWxYz" * 4, "abcdef" * 12
PEM = "\n".join(["MIIEow1B" * 8] * 3)
LEAKS = [
    *(f"the key is {key} here" for key in (
        "gsk" + f"_{MIXED[:52]}", "xai" + f"-{MIXED[:80]}", "pplx" + f"-{MIXED[:48]}",
        "r8" + f"_{MIXED[:37]}", "tvly" + f"-{MIXED[:32]}", "glpat" + f"-{MIXED[:20]}",
        "ya29" + f".{MIXED[:90]}", "GOCSPX" + f"-{MIXED[:28]}", "sk_test" + f"_{MIXED[:24]}",
        "whsec" + f"_{MIXED[:32]}", "dop_v1" + f"_{HEX}", "dapi" + HEX[:32],
        "hvs" + f".{MIXED[:90]}",
        "shpat" + f"_{HEX[:32]}", "lin_api" + f"_{MIXED[:40]}", "ntn" + f"_{MIXED[:46]}",
        "figd" + f"_{MIXED[:40]}", "ATATT3" + MIXED[:180], "dp.pt" + f".{MIXED[:43]}",
        "AGE-SECRET-KEY-1" + CAPITALS[:58], "NRAK" + f"-{CAPITALS[:27]}",
        "sntrys" + f"_{MIXED[:60]}",
        "sbp" + f"_{HEX[:40]}", "pscale_tkn" + f"_{MIXED[:43]}",
        "xapp" + f"-1-A{CAPITALS[:9]}-{HEX}",
        # No digit is required.
        "hf" + f"_{LETTERS[:34]}", "npm" + f"_{LETTERS[:36]}", "gsk" + f"_{LETTERS[:52]}",
        "pplx" + f"-{LETTERS[:48]}", "r8" + f"_{LETTERS[:37]}", "dapi" + HEX_LETTERS[:32],
        "sbp" + f"_{HEX_LETTERS[:40]}", "nvapi" + f"-{LETTERS[:64]}",
        "lsv2_pt" + f"_{HEX_LETTERS[:32]}_{HEX_LETTERS[:10]}",
        "AQ" + f".Ab8R{LETTERS[:48]}", "csk" + f"-{HEX_LETTERS[:48]}",
        "dckr_pat" + f"_{LETTERS[:27]}", "e2b" + f"_{HEX_LETTERS[:40]}",
        "fc" + f"-{HEX_LETTERS[:32]}", "jina" + f"_{LETTERS[:60]}", "pa" + f"-{LETTERS[:43]}",
    )),
    f"AWS_SECRET_ACCESS_KEY={MIXED[:40]}",
    f'{{"SecretAccessKey": "{MIXED[:40]}"}}',
    "DB_PASSWORD=s3cr3t!9",
    "pwd: hunter2",
    f"passphrase: {MIXED[:20]}",
    f"SECRET_KEY = 'django-insecure-{MIXED[:50]}'",
    f"JWT_SIGNING_KEY={MIXED[:48]}",
    f"&quot;token&quot;: &quot;{MIXED[:40]}&quot;",
    f"token%3D{MIXED[:40]}",
    f"api key: {MIXED[:32]}",
    "redis://:Pa55wordxyz@cache:6379/0",
    f"Server=x;User Id=sa;Pwd={MIXED[:16]};",
    "Authorization: Basic dXNlcjpwYXNzd29yZDEyMzQ1Ng==",
    f"Authorization: token {HEX[:40]}",
    f"Cookie: theme=dark; sessionid={MIXED[:32]}",
    f"curl -s -u admin:{MIXED[:16]} https://example.com/",
    f"https://b.example.com/k?X-Amz-Date=1&X-Amz-Signature={HEX}&x=1",
    f"https://hooks.slack.com/services/T0123456/B0123456/{MIXED[:24]}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n[the rest was cut off]",
    f"-----BEGIN RSA PRIVATE KEY-----\nDEK-Info: AES-128-CBC,AB\n\n{PEM}\n"
    "-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{PEM}\n-----END PGP PRIVATE KEY BLOCK-----",
    json.dumps({"k": f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----\n"}),
    "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo" + MIXED[:80],
]  # fmt: skip
PIECES = ("a1B2c3D4", "A1B2C3D4", "0a1b2c3d", "MIIEow1B", "dXNlcjpw", "Pa55word", "s3cr3t!9")
PIECES += (LETTERS[:8], HEX_LETTERS[:8])
HARMLESS = """commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432 in src/app/main.py at 10:32:05
token = get_token(); password: str; https://example.com/a?b=1
sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f9
api_key_from_environment and secret_manager_client, user@example.com,
password: correcthorsebattery; PWD=/home/user1/project; next_page_token_2 = page_token_3;
docker run -u 1000:1000 image; grep -p1234 mysql.log; a cookie: no; keys = 123456789012345;
the login and password fields; Authorization: required; -----BEGIN PUBLIC KEY-----
hf_hub_download(repo_id), hf_transfer_enable_fast_download, npm_config_registry
550e8400-e29b-41d4-a716-446655440000"""


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_redacted_by_its_kind_and_always_alike(kind):
    """A secret becomes one lasting redaction of its kind and tenant."""
    (redacted,), count = Redactor().redact([f"see {TEXTS[kind]} here"])
    assert SECRETS[kind] not in redacted
    assert redacted.endswith(" here")
    assert f"[secret:{kind}:" in redacted
    assert (count, Redactor().redact([redacted])) == (1, ((redacted,), 0))
    assert Redactor("another tenant").redact([f"see {TEXTS[kind]} here"])[0] != (redacted,)


@pytest.mark.parametrize("text", LEAKS, ids=lambda text: text[:30].split("=")[0])
def test_every_usual_shape_of_a_secret_is_redacted_whole(text):
    """Only the text around a secret is left."""
    (redacted,), count = Redactor().redact([text])
    assert count == 1
    assert [piece for piece in PIECES if piece in redacted] == []
    assert redacted.startswith("[secret:" if text.startswith("-----") else text[:3])
    assert Redactor().redact([redacted]) == ((redacted,), 0)


def test_hashes_urls_and_names_are_not_redacted():
    """Hashes, URLs, names of variables and ids are not redacted."""
    assert Redactor().redact([HARMLESS]) == ((HARMLESS,), 0)


def test_messages_keep_their_structure():
    """Redaction changes nothing of a message but the words of its secrets."""
    secret = SECRETS["github-token"]
    given = [
        *step("call_1", f"token {secret}", "bash", command=f"curl -H {secret}"),
        *coding_turns(1),
    ]
    redacted, count = Redactor().redact(given)
    arguments = redacted[0]["tool_calls"][0]["function"]["arguments"]
    assert count == 2
    assert secret not in json.dumps(redacted)
    assert json.loads(arguments)["command"].startswith("curl -H [secret:github-token:")
    assert redacted[1]["tool_call_id"] == "call_1"
    assert all(a is b for a, b in zip(redacted[2:], given[2:], strict=True))


def test_a_documents_text_is_searched():
    """The text of a document is searched for secrets."""
    source = {"type": "text", "media_type": "text/plain", "data": LEAKS[0]}
    messages = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    assert Redactor().redact(messages)[1] == 1


def with_secrets() -> list[Message]:
    """Return a session with every secret in its middle."""
    messages = coding_turns(20)
    evil = step("call_env", "\n".join([*TEXTS.values(), *LEAKS]), "bash", command="env")
    return [*messages[:30], *evil, *messages[30:]]


@pytest.mark.parametrize(
    "options",
    [
        {"auxiliary_model": "gpt-4o-mini"},
        {"fallback_models": ("other",)},
        {"redact_secrets": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_nothing_secret_goes_to_another_model(options):
    """No secret reaches another model, a view or an event."""
    model, events = Model(), list[Event]()
    result = compressor(model, events.append, **options).compress_sync(with_secrets())
    asked = "\n".join(model.requests)
    counts = [dict(event.data) for event in events if event.name == "redacted"]
    assert result.summary_method == "model"
    assert [s for s in (*SECRETS.values(), *PIECES) if s in asked + str(result.messages)] == []
    assert "[secret:github-token:" in asked
    assert [list(numbers) for numbers in counts] == [["secrets"]]
    assert counts[0]["secrets"] >= len(SECRETS)
    assert [s for s in SECRETS.values() if s in str(events)] == []


def test_an_auxiliary_model_of_one_call_serves_that_call(provider):
    """An auxiliary model named in a call is another model for that call alone."""
    provider.answer_with(lambda asked: Reply("## Done\nThe modules so far are in order."))
    ours = compressor(auxiliary_api_key="sk-of-the-user", auxiliary_api_base=provider.base_url)
    messages = with_secrets()
    first = ours.compress_sync(messages, auxiliary_model="openai/other", session_id="one")
    assert first.summary_method == "model"
    asked = "".join(record.text for record in provider.requests)
    assert [s for s in (*SECRETS.values(), *PIECES) if s in asked] == []
    made = len(provider.requests)
    second = ours.compress_sync(messages, session_id="two")
    assert second.summary_method == "static"
    assert len(provider.requests) == made > 0


def test_an_earlier_summary_is_redacted_for_another_model():
    """An earlier summary is redacted for another model."""
    secret = SECRETS["github-token"]
    asked: dict[Any, list[str]] = {}

    async def either(messages: list[Message], model: Any) -> str:
        asked.setdefault(model, []).append(text_of(messages[-1]))
        return f"## Done\nThe modules so far are in order, with the token {secret}."

    ours = compressor(either)
    messages = [
        *coding_turns(6)[:4],
        {"role": "user", "content": f"Use {secret}"},
        *coding_turns(40)[4:],
    ]
    ours.compress_sync(messages[:120], session_id="s", force=True)
    result = ours.compress_sync(messages, session_id="s", auxiliary_model="other", force=True)
    assert result.summary_method == "model"
    assert secret in asked[None][0]
    assert "[secret:github-token:" in asked["other"][0]
    assert [text for text in asked["other"] if secret in text] == []


@pytest.mark.parametrize(
    ("options", "is_redacted"),
    [
        *(({}, False), ({"auxiliary_model": "gpt-4o"}, False)),
        *(({"store_url": "x.db"}, True), ({"auxiliary_api_base": "http://localhost:1/v1"}, True)),
        ({"auxiliary_model": "x", "redact_secrets": False}, False),
    ],
)
def test_only_another_model_or_a_disk_redacts_secrets(options, is_redacted, tmp_path, monkeypatch):
    """Only another model, another endpoint or a disk has secrets redacted."""
    monkeypatch.chdir(tmp_path)
    model = Model()
    compressor(model, **options).compress_sync(with_secrets())
    assert (SECRETS["github-token"] in "".join(model.requests)) is not is_redacted


# ---------------------------------------------------------------- a store on a disk

MASKING = {"context_window": 8_000, "tool_policies": "keep_none"}


def ours(path: Path, summarizer: Any = None, **options: Any) -> Any:
    """Return a compressor with its ledger in that folder."""
    return compressor(summarizer, store_url=str(path / "ledger.db"), **options)


def leaked(path: Path) -> set[str]:
    """Return the kinds of secrets in the store's files, payloads and index."""
    with sqlite3.connect(path / "ledger.db") as connection:
        packed = [row[0] for row in connection.execute("SELECT body FROM compressor_messages")]
        packed += [row[0] for row in connection.execute("SELECT sealed FROM compressor_entries")]
        recorded = connection.execute("SELECT transcript FROM compressor_sessions")
        packed += [row[0] for row in recorded if row[0] is not None]
        connection.execute(
            "CREATE VIRTUAL TABLE temp.found USING fts5vocab('main', 'compressor_search', 'row')"
        )
        index = {row[0] for row in connection.execute("SELECT term FROM temp.found")}
    unpacked = b"".join(map(Packer().unpack, packed))
    text = bytes_of(path).decode("latin-1") + unpacked.decode("utf-8")
    return {
        kind
        for kind, secret in SECRETS.items()
        if secret in text
        or json.dumps(secret)[1:-1] in text
        or set(distinct_words(secret)) <= index
    }


def large_outputs() -> list[Message]:
    """Return a session of large outputs, one call and its output secret."""
    messages = outputs(20, name="bash")
    command = f"curl -H 'Authorization: {SECRETS['github-token']}' api.example.com"
    body = "\n".join(TEXTS.values()) + "lorem ipsum dolor " * 100
    messages[14:16] = step("call_3", body, "bash", command=command)
    return messages


AT_THE_END = [
    *coding_turns(20),
    *step("call_env", "\n".join(TEXTS.values()), "bash", command="env"),
]
SUMMARIZED = pytest.param({}, with_secrets(), id="summary")
BOTH_WAYS = [SUMMARIZED, pytest.param(MASKING, large_outputs(), id="masks")]


@pytest.mark.parametrize(
    ("options", "messages"), [*BOTH_WAYS, pytest.param({}, AT_THE_END, id="newest messages")]
)
def test_no_secret_is_on_the_disk(tmp_path, options, messages):
    """No payload, index, free page or log holds a secret."""
    mine = ours(tmp_path, Model("## Done\nThe token is " + "\n".join(TEXTS.values())), **options)
    result = mine.compress_sync(messages, session_id="s")
    quiet = mine.compress_sync(messages, session_id="s")
    assert result.context_status != "full"
    assert leaked(tmp_path) == set()
    assert mine.store.verify() == []
    verify(mine.store.open("default", "s").entries)
    assert result.redacted_secrets == quiet.redacted_secrets
    mine.close()
    assert leaked(tmp_path) == set()


def test_the_option_archives_originals_as_they_are(tmp_path):
    """With `redact_secrets=False` the archive is exact."""
    mine = ours(tmp_path, redact_secrets=False)
    result = mine.compress_sync(with_secrets(), session_id="s")
    assert leaked(tmp_path) == set(SECRETS)
    assert mine.verbatim(result.messages, session_id="s") == with_secrets()


@pytest.mark.parametrize(("options", "messages"), BOTH_WAYS)
def test_redacted_messages_give_one_view_paid_once(tmp_path, options, messages):
    """Transcript, view and restored transcript give the view that was paid for."""
    model = Model()

    def fresh() -> Any:
        return ours(tmp_path, model, **options)

    first = fresh().compress_sync(messages, session_id="s")
    paid = len(model.requests)
    read_back = fresh().verbatim(first.messages, session_id="s")
    for transcript in (messages, first.messages, read_back):
        assert fresh().compress_sync(transcript, session_id="s").messages == first.messages
    assert len(model.requests) == paid
    (changed,) = [m for m, original in zip(read_back, messages, strict=True) if m != original]
    assert str(changed).count("[secret:") >= len(SECRETS)


def test_a_session_resumed_with_redactions_goes_on(tmp_path):
    """A restored session with redactions is compressed again without loss."""
    ours(tmp_path).compress_sync(with_secrets(), session_id="s")
    again = ours(tmp_path)
    grown = [*again.resume("s", 100_000).messages, *coding_turns(20)[1:]]
    before = again.store.open("default", "s").entries
    result = again.compress_sync(grown, session_id="s")
    assert len(again.store.open("default", "s").entries) == len(before) + 1
    assert again.store.verify() == []
    assert again.verbatim(result.messages, session_id="s") == grown


def test_a_view_of_the_size_asked_for_has_room_for_its_redactions(tmp_path):
    """The plan counts the redactions, which may be longer than the secrets."""
    mine = ours(tmp_path, **MASKING)
    whole = mine.tokens.messages(large_outputs())
    for target in range(whole // 2, whole, whole // 10):
        result = mine.compress_sync(large_outputs(), session_id=f"s{target}", target_tokens=target)
        assert result.tokens_after <= target
