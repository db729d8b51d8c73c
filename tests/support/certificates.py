"""A CA of the test's own and the certificates it signs, as files like cert-manager's: ca.crt, tls.crt, tls.key."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from deploy.local.plan import HTTP
from kit.base.clock import SystemClock
from kit.base.services import SERVICES
from kit.base.tls import Files

PROCESSES = (*SERVICES, *(each.name for each in HTTP), "cli")
BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


class Authority:
    """Signs what it is asked to."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the tests")])
        unsigned = self._builder(self._name, self._key.public_key(), timedelta(days=2))
        unsigned = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._key_id = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        unsigned = unsigned.add_extension(self._key_id, critical=False)
        self.certificate = unsigned.sign(self._key, hashes.SHA256())

    def issue(
        self,
        folder: Path,
        *names: str,
        lasting: timedelta = timedelta(days=1),
        usages: tuple[x509.ObjectIdentifier, ...] = BOTH,
        password: bytes = b"",
    ) -> Files:
        """Files of a new key and certificate for these DNS names; those that are there are replaced."""
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = self._builder(x509.Name([]), key.public_key(), lasting)
        unsigned = unsigned.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        # Authorities of one name are told apart by their keys, as a renewed CA from the one before.
        signed_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._key_id)
        unsigned = unsigned.add_extension(signed_by, critical=False)
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            unsigned = unsigned.add_extension(alternatives, critical=True)
        hidden: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
        files = Files(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
        folder.mkdir(exist_ok=True)
        replace(files.key, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden))
        replace(files.certificate, unsigned.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        replace(files.ca, self.certificate.public_bytes(Encoding.PEM))
        return files

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, lasting: timedelta
    ) -> x509.CertificateBuilder:
        now = SystemClock().now()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + lasting)
        )


def stack_settings(certificates: Mapping[str, Files]) -> dict[str, str]:
    """What a local stack is told, so that each process has the certificate of its name."""
    names = {each.name: each.variables for each in HTTP}
    settings: dict[str, str] = {}
    for process, files in certificates.items():
        own = f"FIATGATE_{names.get(process, process.upper())}_TLS_"
        settings |= {f"{own}CERT": str(files.certificate), f"{own}KEY": str(files.key)}
        settings["FIATGATE_TLS_CA"] = str(files.ca)  # the same one in all folders
    return settings


def replace(path: Path, content: bytes) -> None:
    """So that whoever reads gets the old or the new."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


def serial_number(files: Files) -> int:
    """Tells one certificate from the next."""
    return x509.load_pem_x509_certificate(files.certificate.read_bytes()).serial_number
