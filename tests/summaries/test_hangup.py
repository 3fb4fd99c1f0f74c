"""A call that is given up drops its connection, on a plain and on an encrypted one."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from praison_compressor.summaries.threads import AbandonableCall
from tests.helpers.silent import PATIENCE_SECONDS, Silent

Dropped = (httpx.RemoteProtocolError, httpx.ReadError)
"""What a client says of a connection that ended without an answer; not that it was slow."""


def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens in another thread."""
    given_up = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < given_up
        time.sleep(0.005)


def certificate(folder: Path) -> Path:
    """A new key and a certificate for this machine signed with it, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(here, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = folder / "here.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@contextmanager
def silent(folder: Path | None) -> Iterator[tuple[Silent, httpx.Client]]:
    """A silent server and a client that trusts it; encrypted where there is a folder."""
    theirs, ours = None, None
    if folder is not None:
        path = certificate(folder)
        theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        theirs.load_cert_chain(path)
        ours = ssl.create_default_context(cafile=str(path))
    with (
        Silent(theirs) as server,
        httpx.Client(verify=ours or False, timeout=PATIENCE_SECONDS, trust_env=False) as client,
    ):
        yield server, client


@pytest.mark.parametrize("encrypted", [False, True])
def test_the_connection_is_dropped(tmp_path: Path, encrypted: bool) -> None:
    """The server sees its client go, and the thread's work ends with a failure."""
    with silent(tmp_path if encrypted else None) as (server, client):
        call = AbandonableCall(lambda: client.get(server.url))
        assert server.asked.wait(PATIENCE_SECONDS)
        assert not server.left.is_set()
        call.give_up()
        assert server.left.wait(PATIENCE_SECONDS / 2)
        assert isinstance(call.future.exception(PATIENCE_SECONDS), Dropped)


def test_a_call_that_has_not_connected_yet_is_dropped_when_it_does() -> None:
    """Looking up a name cannot be broken off; the request that follows is."""
    going = threading.Event()
    with silent(None) as (server, client):

        def late() -> httpx.Response:
            going.wait(PATIENCE_SECONDS)
            return client.get(server.url)

        call = AbandonableCall(late)
        call.give_up()
        going.set()
        assert isinstance(call.future.exception(PATIENCE_SECONDS), Dropped)


def test_another_threads_connection_is_left_alone() -> None:
    """Two calls through one client: the one that is given up is the one that ends."""
    with silent(None) as (one, client), silent(None) as (other, _):
        given_up, kept = (
            AbandonableCall(lambda: client.get(one.url)),
            AbandonableCall(lambda: client.get(other.url)),
        )
        assert one.asked.wait(PATIENCE_SECONDS)
        assert other.asked.wait(PATIENCE_SECONDS)
        given_up.give_up()
        assert one.left.wait(PATIENCE_SECONDS)
        given_up.future.exception(PATIENCE_SECONDS)
        assert not other.left.is_set()
        assert not kept.future.done()
        kept.give_up()
        kept.future.exception(PATIENCE_SECONDS)


def test_what_has_ended_is_not_touched() -> None:
    """Giving up what is done starts nothing, and its result stays."""
    call = AbandonableCall(lambda: "done")
    assert call.future.result(PATIENCE_SECONDS) == "done"
    before = threading.active_count()
    call.give_up()
    assert threading.active_count() <= before
    assert call.future.result(0) == "done"


def test_no_thread_is_left() -> None:
    """Neither the thread that was waiting nor the one that hung up outlives the call."""
    before = set(threading.enumerate())
    for _ in range(10):
        with silent(None) as (server, client):
            call = AbandonableCall(lambda client=client, server=server: client.get(server.url))
            assert server.asked.wait(PATIENCE_SECONDS)
            call.give_up()
            assert isinstance(call.future.exception(PATIENCE_SECONDS), Dropped)
    until(lambda: not set(threading.enumerate()) - before)
