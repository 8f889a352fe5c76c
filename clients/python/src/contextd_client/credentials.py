"""How a client verifies the daemon, and authenticates itself."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

import grpc

SYSTEM_CA = "system"
"""As `ca`: trust the authorities that gRPC trusts by default."""


@dataclass(frozen=True)
class Credentials:
    """Files for TLS and authentication. Without any there is neither, for a socket or loopback."""

    ca: str = ""
    """PEM file with the authority of the daemon's certificate, or SYSTEM_CA. Empty: no TLS."""
    cert: str = ""
    """PEM file with the client's certificate."""
    key: str = ""
    """PEM file with the key of cert."""
    token_file: str = ""
    """File with the bearer token. It is read at each call, so it may be renewed."""

    @classmethod
    def from_environment(cls) -> Credentials:
        """The credentials in CONTEXTD_CA, CONTEXTD_CERT, CONTEXTD_KEY and CONTEXTD_TOKEN_FILE."""
        names = ("CA", "CERT", "KEY", "TOKEN_FILE")
        return cls(*(os.environ.get("CONTEXTD_" + name, "") for name in names))

    def for_channel(self, address: str) -> grpc.ChannelCredentials | None:
        """The credentials of a channel to an address; None without TLS."""
        for name, value in vars(self).items():
            if not isinstance(value, str):
                raise TypeError(f"{name}: must be the name of a file, not {value!r:.60}")
        if bool(self.cert) != bool(self.key):
            raise ValueError("cert and key must both be set, or neither")
        if not self.ca:
            if self.cert:
                raise ValueError("cert and key must not be set without ca: there is no TLS")
            if self.token_file and not _local(address):
                raise ValueError(f"the token could be read on the way to {address}: set ca")
            return None
        if address.startswith("unix:"):
            raise ValueError("ca must not be set for a unix socket: it is not encrypted")
        return grpc.ssl_channel_credentials(
            root_certificates=None if self.ca == SYSTEM_CA else read_file("ca", self.ca),
            private_key=read_file("key", self.key) if self.key else None,
            certificate_chain=read_file("cert", self.cert) if self.cert else None,
        )


def read_file(name: str, path: str) -> bytes:
    """A file's bytes. Raises ValueError, which names the setting, if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from None


def _local(address: str) -> bool:
    """Whether an address is on this machine, so that nobody on the network can read the calls."""
    host = address.rpartition(":")[0].strip("[]")
    if address.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
