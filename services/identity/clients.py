"""Calls to others: the mail server."""

import ipaddress
import smtplib
import ssl
from email.message import EmailMessage
from typing import Final
from urllib.parse import unquote, urlsplit

SECONDS: Final = 10
_PORTS: Final = {"smtp": 25, "smtps": 465}


class MailFailed(Exception):
    """The mail server did not take the e-mail."""


class MailServer:
    """Sends e-mail over SMTP: with TLS from the start (smtps), else after STARTTLS. The link in a mail is a key:
    only a server on this machine may do without.
    """

    def __init__(self, url: str, *, sender: str) -> None:
        parts = urlsplit(url)
        self._scheme = parts.scheme
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS.get(parts.scheme, 0)
        self._user = unquote(parts.username or "")
        self._password = unquote(parts.password or "")
        self._sender = sender

    def send(self, *, to: str, subject: str, text: str) -> None:
        """Raises MailFailed."""
        try:
            message = EmailMessage()
            message["From"], message["To"], message["Subject"] = self._sender, to, subject
            message.set_content(text)
            with self._connected() as server:
                if self._user:
                    server.login(self._user, self._password)
                server.send_message(message)
        except MailFailed:
            raise
        except Exception as error:  # one e-mail that can't be made or sent must not stop those after it
            raise MailFailed(f"{type(error).__name__}: {error}"[:200]) from error

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context()
        if self._scheme == "smtps":
            return smtplib.SMTP_SSL(self._host, self._port, timeout=SECONDS, context=context)
        server = smtplib.SMTP(self._host, self._port, timeout=SECONDS)
        server.ehlo()
        if server.has_extn("starttls"):
            server.starttls(context=context)
        elif not _is_this_machine(self._host):
            server.close()
            raise MailFailed("the server offers no STARTTLS")
        return server


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
