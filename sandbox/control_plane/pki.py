# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Certificates and keys of one sandbox: its own authority, one certificate per identity, ECDSA P-256 throughout.

Files are ``<name>.crt`` and ``<name>.key`` in one folder (keys mode 0600). Names and groups of the identities are those that Kubernetes'
"PKI certificates and requirements" page asks for.
"""
from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = datetime.timedelta(days=3650)
_CLOCK_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True)
class KeyPair:
    """Paths of a certificate and its private key, both PEM."""

    certificate: Path
    key: Path


class Authority:
    """The certificate authority of one sandbox, made at first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = KeyPair(folder / "ca.crt", folder / "ca.key")

    @property
    def certificate(self) -> Path:
        """The authority's own certificate: what every client trusts."""
        return self.files.certificate

    def ensure(self, common_name: str) -> None:
        """Make the authority unless it exists."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.files.certificate.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, ())
        builder = _builder(name, name, key).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_key_usage(authority=True), critical=True)
        builder = _identified(builder, key, key)
        _store(self.files, key, builder.sign(key, hashes.SHA256()))

    def server(self, file_name: str, common_name: str, addresses: Sequence[str]) -> KeyPair:
        """Return the serving certificate ``file_name`` for IP addresses and DNS names; it is a client certificate too (etcd needs that)."""
        return self._issue(file_name, common_name, (), addresses)

    def client(self, file_name: str, common_name: str, organizations: Sequence[str] = ()) -> KeyPair:
        """Return the client certificate ``file_name``: user ``common_name`` in the groups ``organizations``."""
        return self._issue(file_name, common_name, organizations, ())

    def _issue(self, file_name: str, common_name: str, organizations: Sequence[str], addresses: Sequence[str]) -> KeyPair:
        files = KeyPair(self.folder / f"{file_name}.crt", self.folder / f"{file_name}.key")
        if files.certificate.exists():
            return files
        authority_key = serialization.load_pem_private_key(self.files.key.read_bytes(), None)
        assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
        authority = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_name(common_name, organizations), authority.subject, key)
        if addresses:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(item) for item in addresses]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = _identified(builder, key, authority_key)
        _store(files, key, builder.sign(authority_key, hashes.SHA256()))
        return files


def service_account_keys(folder: Path) -> tuple[Path, Path]:
    """Return (private, public) key files that sign and check service account tokens, made at first use."""
    private, public = folder / "service-account.key", folder / "service-account.pub"
    if not public.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        _write_private(private, _private_pem(key))
        spki = serialization.PublicFormat.SubjectPublicKeyInfo
        public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, spki))
    return private, public


def sign_token(private_key: Path, claims: Mapping[str, Any]) -> str:
    """Return a JSON web token over ``claims``, signed as the API server signs service account tokens (ES256)."""
    key = serialization.load_pem_private_key(private_key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(public)
    header = {"alg": "ES256", "typ": "JWT", "kid": _base64url(digest.finalize())}
    signing_input = ".".join(_base64url(json.dumps(part).encode()) for part in (header, dict(claims)))
    r, s = utils.decode_dss_signature(key.sign(signing_input.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signing_input}.{_base64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(item: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(item))
    except ValueError:
        return x509.DNSName(item)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALIDITY)
    )


def _identified(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    """Add the key identifiers that strict verifiers (RFC 5280) ask for."""
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False)


def _key_usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=authority, crl_sign=authority, key_encipherment=False, content_commitment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _store(files: KeyPair, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    """Write the key first, the certificate last and by rename: an existing certificate means a complete pair."""
    _write_private(files.key, _private_pem(key))
    scratch = files.certificate.with_suffix(".new")
    scratch.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    scratch.rename(files.certificate)


def _write_private(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
