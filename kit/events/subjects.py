"""The names that NATS knows facts, hints and consumers by. A subject is declared once: at its message in protos/."""

from typing import Final

from google.protobuf.message import Message

from fiatgate.events.v1 import events_pb2

STREAM: Final = "FIATGATE"
"""The stream of JetStream that holds all facts."""


def subject_of(message: type[Message]) -> str:
    """Returns the subject that the proto declares for the message; ValueError when it declares none."""
    subject: str = message.DESCRIPTOR.GetOptions().Extensions[events_pb2.subject]
    if not subject:
        raise ValueError(f"{message.DESCRIPTOR.full_name} declares no subject")
    return subject


def durable_of(message: type[Message], consumer: str) -> str:
    """Returns the name at JetStream of the service `consumer` as a consumer of the fact."""
    return f"{consumer}-{subject_of(message).removeprefix('fiatgate.').replace('.', '-')}"
