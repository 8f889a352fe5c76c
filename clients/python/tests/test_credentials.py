"""Clients with credentials, and a daemon with TLS."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from conftest import Daemon

import contextd_client
import contextd_client.aio
from contextd_client import Budget, Credentials, events


def issue(folder: Path, name: str, *signed: str) -> None:
    """Write NAME.pem and NAME.key: an authority, or what one signed."""
    files = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    command = ["openssl", "req", "-x509", *kind, *files, *signed]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


@dataclass
class Secured:
    """A daemon with certificates and tokens, and their files."""

    daemon: Daemon
    folder: Path

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def credentials(self, **others: str) -> Credentials:
        files = {name: self.file(value) for name, value in others.items()}
        return Credentials(**{"ca": self.file("ca.pem"), **files})


@pytest.fixture(scope="module")
def secured(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A daemon that requires a token or a certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("secured")
    issue(folder, "ca")
    issue(folder, "stranger")
    by_ca = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext")
    issue(folder, "daemon", *by_ca, "subjectAltName=IP:127.0.0.1")
    issue(folder, "client", *by_ca, "subjectAltName=DNS:client")
    token = [str(binary), "token", "--name", "ci", "--tenant", "a", "--out", "ci.token"]
    tokens = subprocess.run(token, cwd=folder, check=True, capture_output=True).stdout
    (folder / "tokens.yaml").write_bytes(tokens)
    daemon = Daemon(
        binary, "--auth-tokens", str(folder / "tokens.yaml"), "--tls-client-ca", f"{folder}/ca.pem",
        "--tls-cert", f"{folder}/daemon.pem", "--tls-key", f"{folder}/daemon.key",
        "--tls-client-tenants", "{client: a}",
    )  # fmt: skip
    try:
        yield Secured(daemon, folder)
    finally:
        daemon.stop()


TRANSCRIPT = b'[{"role": "user", "content": "hello"}]'
PROOFS = [{"token_file": "ci.token"}, {"cert": "client.pem", "key": "client.key"}]


@pytest.mark.parametrize("proof", PROOFS, ids=["token", "certificate"])
def test_calls_are_let_in(secured: Secured, proof: dict[str, str], session_id: str) -> None:
    with contextd_client.Client(
        secured.daemon.address, credentials=secured.credentials(**proof)
    ) as client:
        client.append(session_id, events.user("hello"))
        context = client.assemble(session_id, "anthropic", budget=Budget(max_tokens=1000))
        assert "hello" in str(context.messages())
        assert [e.seq for e in client.read_events(session_id)] == [1]
        assert client.import_transcript(f"{session_id}/i", TRANSCRIPT).events == 1


@pytest.mark.parametrize("proof", PROOFS, ids=["token", "certificate"])
async def test_calls_of_asyncio_are_let_in(
    secured: Secured, proof: dict[str, str], session_id: str
) -> None:
    credentials = secured.credentials(**proof)
    async with contextd_client.aio.Client(
        secured.daemon.address, credentials=credentials
    ) as client:
        await client.append(session_id, events.user("hello"))
        context = await client.assemble(session_id, "anthropic", budget=Budget(max_tokens=1000))
        assert "hello" in str(context.messages())
        assert [e.seq async for e in client.read_events(session_id)] == [1]
        assert (await client.import_transcript(f"{session_id}/i", TRANSCRIPT)).events == 1


def test_the_environment_says_who_calls(
    secured: Secured, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTD_ADDR", secured.daemon.address)
    monkeypatch.setenv("CONTEXTD_CA", secured.file("ca.pem"))
    monkeypatch.setenv("CONTEXTD_TOKEN_FILE", secured.file("ci.token"))
    with contextd_client.Client() as client:
        client.append(session_id, events.user("hello"))
    monkeypatch.delenv("CONTEXTD_TOKEN_FILE")
    monkeypatch.setenv("CONTEXTD_CERT", secured.file("client.pem"))
    monkeypatch.setenv("CONTEXTD_KEY", secured.file("client.key"))
    with contextd_client.Client() as client:
        assert client.get_session(session_id).head_seq == 1


def test_a_token_may_be_renewed(secured: Secured, session_id: str) -> None:
    renewed = secured.folder / "renewed.token"
    renewed.write_text("wrong")
    with contextd_client.Client(
        secured.daemon.address, credentials=secured.credentials(token_file="renewed.token")
    ) as client:
        with pytest.raises(contextd_client.ApiError) as refused:
            client.append(session_id, events.user("hello"))
        assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED
        renewed.write_text((secured.folder / "ci.token").read_text())
        client.append(session_id, events.user("hello"))


def test_others_are_not_let_in(secured: Secured) -> None:
    with contextd_client.Client(
        secured.daemon.address, credentials=secured.credentials()
    ) as client:
        with pytest.raises(contextd_client.ApiError) as refused:
            client.get_session("s")
        assert refused.value.code is grpc.StatusCode.UNAUTHENTICATED


def test_another_daemon_is_not_trusted(secured: Secured) -> None:
    other = dataclasses.replace(secured.credentials(), ca=secured.file("stranger.pem"))
    with (
        contextd_client.Client(secured.daemon.address, credentials=other, patience=0) as client,
        pytest.raises(contextd_client.errors.UnavailableError),
    ):
        client.get_session("s")


@pytest.mark.parametrize(
    ("address", "credentials", "message"),
    [
        ("example.com:7171", Credentials(token_file="t"), "could be read on the way"),
        ("10.0.0.1:7171", Credentials(token_file="t"), "could be read on the way"),
        ("127.0.0.1:7171", Credentials(cert="c", key="k"), "there is no TLS"),
        ("127.0.0.1:7171", Credentials(ca="ca", cert="c"), "both be set"),
        ("unix:///run/contextd.sock", Credentials(ca="ca"), "unix socket"),
    ],
)
def test_what_makes_no_sense_is_refused(
    address: str, credentials: Credentials, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        contextd_client.Client(address, credentials=credentials)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:1", "[::1]:1", "unix:///s"])
def test_a_token_may_be_sent_on_this_machine(address: str) -> None:
    contextd_client.Client(address, credentials=Credentials(token_file="t")).close()


def test_a_file_that_holds_no_token_is_named(tmp_path: Path) -> None:
    other = tmp_path / "tls.key"
    other.write_text("secret\nlines\n")
    client = contextd_client.Client(
        "127.0.0.1:1", credentials=Credentials(token_file=str(other)), patience=0
    )
    with client, pytest.raises(ValueError, match="must hold one line of ASCII") as wrong:
        client.get_session("s")
    assert str(wrong.value) == f"token_file: {other} must hold one line of ASCII, the token"


@pytest.mark.parametrize("address", ["localhost", "http://127.0.0.1:7171"])
@pytest.mark.parametrize("client", [contextd_client.Client, contextd_client.aio.Client])
def test_wrong_address(client: type, address: str) -> None:
    with pytest.raises(
        ValueError, match=f"^address: '{address}' must be host:port or unix:///path$"
    ):
        client(address)
