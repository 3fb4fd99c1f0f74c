"""Keys in their issuers' real formats."""

from __future__ import annotations

import pytest

from praison_compressor.messages.secrets import Redactor

LETTERS, HEX = "AbCdEfGhIjKlMnOpQrStUvWxYz" * 4, "abcdef" * 12
# Put together here, so that no scanner takes this file for a leak.
KEYS = [
    "hf" + f"_{LETTERS[:34]}",
    "npm" + f"_{LETTERS[:36]}",
    "gsk" + f"_{LETTERS[:52]}",
    "xai" + f"-{LETTERS[:80]}",
    "pplx" + f"-{LETTERS[:48]}",
    "r8" + f"_{LETTERS[:37]}",
    "lin_api" + f"_{LETTERS[:40]}",
    "dapi" + HEX[:32],
    "sbp" + f"_{HEX[:40]}",
    "shpat" + f"_{HEX[:32]}",
    "nvapi" + f"-{LETTERS[:64]}",
    "lsv2_pt" + f"_{HEX[:32]}_{HEX[:10]}",
    "whsec" + f"_{LETTERS[:32]}",
    "AQ" + f".Ab8R{LETTERS[:48]}",
    "csk" + f"-{HEX[:48]}",
    "dckr_pat" + f"_{LETTERS[:27]}",
    "e2b" + f"_{HEX[:40]}",
    "fc" + f"-{HEX[:32]}",
    "jina" + f"_{LETTERS[:60]}",
    "pa" + f"-{LETTERS[:43]}",
]


@pytest.mark.parametrize("key", KEYS, ids=[key[:6] for key in KEYS])
def test_a_key_needs_no_digit(key: str) -> None:
    """A key of its issuer's length is masked, whatever characters it has."""
    masked, count = Redactor().text(f"export TOKEN_={key}\nnext")
    assert count == 1
    assert key not in masked


@pytest.mark.parametrize(
    "text",
    ["hf_hub_download(repo_id)", "use hf_transfer_enable_fast_download", "npm_config_registry"],
)
def test_a_name_is_no_key(text: str) -> None:
    """Names that begin as a key does stay."""
    assert Redactor().text(text) == (text, 0)


def test_a_documents_text_is_searched() -> None:
    """The words of a document are searched, bodies of files are not."""
    source = {"type": "text", "media_type": "text/plain", "data": f"the key is {KEYS[0]}"}
    messages = [{"role": "user", "content": [{"type": "document", "source": source}]}]
    assert Redactor().messages(messages).secrets == 1
