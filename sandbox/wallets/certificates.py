"""Private certificate authority and server certificate, stored in a folder and reused.

The certificate is for localhost, or for the host names of a rehearsal. The authority's private key
is never stored, so the authority can sign no other certificate. A developer who trusts the
authority trusts only this certificate.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE: Final = timedelta(days=365)
_MARGIN: Final = timedelta(days=7)
LOCALHOST: Final = ("localhost",)


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files: the authority to trust, and the server's certificate and key."""

    authority: Path
    certificate: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS context of a server with this certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


def ensure(folder: Path, now: datetime, hosts: Sequence[str] = LOCALHOST) -> Certificates:
    """Return the certificates in `folder`; renew them if missing, damaged or about to expire.

    Always pass the same `hosts` for a folder, because existing certificates are not compared.
    """
    paths = Certificates(
        folder / "sandbox-ca.pem", folder / "localhost.pem", folder / "localhost-key.pem"
    )
    if not _usable(paths, now):
        folder.mkdir(parents=True, exist_ok=True)
        _make(paths, now, hosts)
    return paths


def _usable(paths: Certificates, now: datetime) -> bool:
    try:
        authority = x509.load_pem_x509_certificate(paths.authority.read_bytes())
        certificate = x509.load_pem_x509_certificate(paths.certificate.read_bytes())
        certificate.verify_directly_issued_by(authority)
        paths.server_context()
    except (OSError, ValueError, TypeError, InvalidSignature):
        return False
    return certificate.not_valid_after_utc > now + _MARGIN


def _make(paths: Certificates, now: datetime, hosts: Sequence[str]) -> None:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    key = ec.generate_private_key(ec.SECP256R1())
    authority_name, host_name = _name("Checkout sandbox authority"), _name(hosts[0])
    names = [x509.DNSName(host) for host in hosts]
    authority = (
        _unsigned(authority_name, authority_name, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.NameConstraints(names, None), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    alternatives = x509.SubjectAlternativeName(names)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _unsigned(host_name, authority_name, key, now)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    _write_private(paths.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    paths.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    paths.authority.write_bytes(authority.public_bytes(Encoding.PEM))


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
