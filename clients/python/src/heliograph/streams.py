"""Reads server-sent events."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from ._model import Model
from ._request import Call
from .webhooks import WebhookEvent, parse_event

__all__ = ["StreamedEvent"]

# The service says something at least every 15 seconds.
_QUIET_SECONDS = 45.0


class StreamedEvent(Model):
    """An event of the stream."""

    cursor: str
    """The stream can be resumed behind this event with it."""
    id: str
    event_type: str = Field(alias="eventType")
    event_id: str = Field(alias="eventId")
    phone_number_id: str | None = Field(alias="phoneNumberId")
    sequence: int
    created_at: datetime = Field(alias="createdAt")
    occurred_at: datetime | None = Field(alias="occurredAt")
    body: dict[str, Any] | None
    """The body of the webhook; None while the event waits for its release: read it later by its `id`."""

    @property
    def event(self) -> WebhookEvent | None:
        """The event of the body, as a webhook has it."""
        return None if self.body is None else parse_event(self.body)


class EventReader:
    """Takes the bytes of a stream, however they are cut; remembers from where to go on."""

    def __init__(self, types: Sequence[str] | None, cursor: str | None) -> None:
        self._types = None if types is None else ",".join(types)
        self._cursor = cursor
        self._rest = b""
        self._fields: dict[bytes, bytes] = {}

    def call(self) -> Call:
        """The request that opens the stream, or opens it again behind what was read."""
        self._rest = b""
        self._fields = {}
        query = {"types": self._types, "cursor": self._cursor}
        path = "/api/external/events/stream"
        return Call("GET", path, query=query, read_timeout_seconds=_QUIET_SECONDS)

    def feed(self, chunk: bytes) -> Iterator[StreamedEvent]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line:
                name, _, value = line.partition(b":")
                self._fields[name] = value.removeprefix(b" ")
            else:
                yield from self._block()

    def _block(self) -> Iterator[StreamedEvent]:
        fields, self._fields = self._fields, {}
        if b"id" in fields:
            self._cursor = fields[b"id"].decode()
        # A block with another `event` ends the stream: the connection ends as well, and the next one says why.
        if b"data" in fields and fields.get(b"event", b"message") == b"message":
            yield StreamedEvent.model_validate({**json.loads(fields[b"data"]), "cursor": self._cursor or ""})
