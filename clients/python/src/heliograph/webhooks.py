"""Verifies webhooks, and reads their events."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Union

from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from ._model import Model
from .generated.models import (
    MediaReadyEvent,
    MessageBatchEvent,
    MessageEvent,
    OrderEvent,
    PaymentEvent,
    PreferenceEvent,
    StatusEvent,
    TestEvent,
    UpstreamEvent,
    WindowClosingEvent,
)

__all__ = ["UnknownEvent", "Webhook", "WebhookEvent", "WebhookVerificationError", "parse_event"]

_KEY_BYTES = 32
_MAX_DIGITS = 15


class WebhookVerificationError(Exception):
    """The webhook is not genuine, or too old. Respond with 401."""


class UnknownEvent(Model):
    """An event of a type, or of a shape, that this version of the client does not know. Respond with 2xx."""

    event_type: str = ""
    """`eventType` of the body."""
    event_id: str = ""
    """`eventId` of the body."""
    body: Any
    """The whole body, as JSON."""


_KNOWN: dict[str, type[Model]] = {
    "message": MessageEvent,
    "status": StatusEvent,
    "payment": PaymentEvent,
    "order": OrderEvent,
    "media.ready": MediaReadyEvent,
    "test": TestEvent,
    "window.closing": WindowClosingEvent,
    "preference": PreferenceEvent,
    "message.batch": MessageBatchEvent,
}


def _tag(body: Any) -> str:
    event_type = body.get("eventType") if isinstance(body, dict) else getattr(body, "event_type", "")
    if event_type in _KNOWN:
        return str(event_type)
    return "upstream" if isinstance(event_type, str) and event_type.startswith("upstream.") else "unknown"


WebhookEvent = Annotated[
    Union[
        Annotated[MessageEvent, Tag("message")],
        Annotated[StatusEvent, Tag("status")],
        Annotated[PaymentEvent, Tag("payment")],
        Annotated[OrderEvent, Tag("order")],
        Annotated[MediaReadyEvent, Tag("media.ready")],
        Annotated[TestEvent, Tag("test")],
        Annotated[WindowClosingEvent, Tag("window.closing")],
        Annotated[PreferenceEvent, Tag("preference")],
        Annotated[MessageBatchEvent, Tag("message.batch")],
        Annotated[UpstreamEvent, Tag("upstream")],
        Annotated[UnknownEvent, Tag("unknown")],
    ],
    Discriminator(_tag),
]
"""What a webhook reports. Tell the events apart with `isinstance` or `match`."""

_ADAPTER: TypeAdapter[WebhookEvent] = TypeAdapter(WebhookEvent)


def parse_event(body: Any) -> WebhookEvent:
    """The event of a body that was read as JSON: of a webhook, or `body` of an event of the API."""
    if _tag(body) != "unknown":
        try:
            return _ADAPTER.validate_python(body)
        except ValidationError:
            pass  # It is genuine: a receiver that refused it would get it again for days.
    members = body if isinstance(body, dict) else {}
    return UnknownEvent(
        event_type=str(members.get("eventType", "")), event_id=str(members.get("eventId", "")), body=body
    )


class Webhook:
    """Verifies the webhooks of an endpoint.

    Takes its secret (`whsec_…`), its public key (`whpk_…`, which needs the package `cryptography`), or several of them: while
    a secret is rotated, give the new and the previous one. A webhook is genuine when one signature fits one of them.
    """

    def __init__(self, *secrets: str, tolerance_seconds: float = 300) -> None:
        if not secrets:
            raise ValueError("Webhook needs a secret (whsec_…) or a public key (whpk_…).")
        self._tolerance_seconds = tolerance_seconds
        self._checks = [_check_of(secret) for secret in secrets]

    def check(self, body: bytes | str, headers: Mapping[str, str]) -> None:
        """Raises WebhookVerificationError unless a signature fits and the time is near ours.

        `body` is the raw body: JSON that was parsed and written again has other bytes.
        """
        found = {name.lower(): value for name, value in headers.items()}
        identifier = found.get("webhook-id", "")
        timestamp = found.get("webhook-timestamp", "")
        signatures = found.get("webhook-signature", "")
        if not identifier or not timestamp or not signatures:
            raise WebhookVerificationError("A header is missing: webhook-id, webhook-timestamp or webhook-signature.")
        # Python refuses to read a number of thousands of digits, with another exception.
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _MAX_DIGITS):
            raise WebhookVerificationError("webhook-timestamp is not a number of seconds.")
        if abs(time.time() - int(timestamp)) > self._tolerance_seconds:
            raise WebhookVerificationError("The time of the webhook is too far from ours.")
        payload = _text_bytes(body) if isinstance(body, str) else bytes(body)
        signed = _text_bytes(f"{identifier}.{timestamp}.") + payload
        entries = signatures.split(" ")
        if not any(check(signed, entries) for check in self._checks):
            raise WebhookVerificationError("No signature of the webhook fits. Is it the raw body, and the right secret?")

    def verify(self, body: bytes | str, headers: Mapping[str, str]) -> WebhookEvent:
        """As `check`, and returns the event. Every genuine webhook has one: UnknownEvent when its type is new."""
        self.check(body, headers)
        try:
            return parse_event(json.loads(body))
        except (ValueError, RecursionError) as error:
            raise WebhookVerificationError("The body is not JSON.") from error


_Check = Callable[[bytes, Iterable[str]], bool]


def _text_bytes(text: str) -> bytes:
    # A header can hold what no UTF-8 can: it matches nothing, and must not raise.
    return text.encode("utf-8", "surrogatepass")


def _check_of(given: str) -> _Check:
    secret = given.strip()
    if secret.startswith("whpk_"):
        return _public_key_check(_bytes_of(secret.removeprefix("whpk_")))
    if secret.startswith("whsec_"):
        return _secret_check(_bytes_of(secret.removeprefix("whsec_")))
    raise ValueError("A secret begins with whsec_, a public key with whpk_.")


def _bytes_of(text: str) -> bytes:
    message = "The secret or public key is not complete: the part after _ is base64."
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(message) from error
    if not raw:
        raise ValueError(message)
    return raw


def _secret_check(key: bytes) -> _Check:
    def check(signed: bytes, entries: Iterable[str]) -> bool:
        expected = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
        # Every entry is compared, so that the time does not show which one fits.
        return any([hmac.compare_digest(expected, _text_bytes(entry)) for entry in entries])

    return check


def _public_key_check(raw: bytes) -> _Check:
    if len(raw) != _KEY_BYTES:
        raise ValueError("A public key has 32 bytes.")
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise ImportError("Public keys need the package cryptography: pip install cryptography") from error
    key = Ed25519PublicKey.from_public_bytes(raw)

    def fits(entry: str, signed: bytes) -> bool:
        try:
            key.verify(base64.b64decode(entry.removeprefix("v1a,")), signed)
        except (InvalidSignature, ValueError):
            return False
        return True

    def check(signed: bytes, entries: Iterable[str]) -> bool:
        return any(entry.startswith("v1a,") and fits(entry, signed) for entry in entries)

    return check
