"""The synchronous client."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType

import httpx

from ._request import PLATFORM_KEY, Call, Connection, address_of, key_of
from .files import CHUNK_BYTES, File, upload_call, whole_file
from .generated.models import TemplateMedia, UploadedMedia
from .generated.requests import ExportRequest
from .generated.sync_api import SyncApi
from .generated.platform.sync_api import SyncApi as PlatformApi
from .retries import RetryPolicy
from .streams import EventReader, StreamedEvent

__all__ = ["Heliograph", "HeliographPlatform"]


class HeliographPlatform(PlatformApi):
    """The platform API, for the operator's own program."""


class Heliograph(SyncApi):
    """A client with a method for each operation of the External API, named as its `operationId` in snake_case.

    Raises HeliographError for a response that is an error, and an exception of httpx when there is no response.
    It can be shared by threads. Close it, or use it with `with`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        platform_key: str | None = None,
        timeout_seconds: float = 30.0,
        retry: RetryPolicy = RetryPolicy(),
        http_client: httpx.Client | None = None,
    ) -> None:
        """`base_url` is such as https://gateway.example, `api_key` is `ck_` and 64 hexadecimal digits; `platform_key` is
        `hp_` and 64 hexadecimal digits, for `platform`, and a program that uses that alone needs no other. Proxies, certificates
        and limits are those of `http_client`, which you then close yourself. Raises ValueError for what cannot be one."""
        self._owns_http = http_client is None
        if api_key is None and platform_key is None:
            raise ValueError("api_key is missing")
        key = None if api_key is None else key_of(api_key)
        connection = Connection(address_of(base_url), key, timeout_seconds, retry)
        super().__init__(connection, http_client or httpx.Client())
        self._platform: HeliographPlatform | None = None
        if platform_key is not None:
            of_platform = replace(connection, api_key=key_of(platform_key, PLATFORM_KEY))
            self._platform = HeliographPlatform(of_platform, self._http)

    @property
    def platform(self) -> HeliographPlatform:
        """The platform API. Raises ValueError for a client without a platform_key."""
        if self._platform is None:
            raise ValueError(f"platform_key is missing: {PLATFORM_KEY}")
        return self._platform

    def upload_media(
        self, file: File, *, mime_type: str | None = None, file_name: str | None = None
    ) -> UploadedMedia:
        """Uploads a file to send; its `id` stands for it in messages. Without `mime_type` its name says what it is."""
        with upload_call("/api/external/media", file, mime_type, file_name) as call:
            return UploadedMedia.model_validate_json(self._content(call))

    def upload_template_media(
        self, file: File, *, mime_type: str | None = None, file_name: str | None = None
    ) -> TemplateMedia:
        """Gives upstream an example for the header of a template, which names its `handle`."""
        with upload_call("/api/external/template-media", file, mime_type, file_name) as call:
            return TemplateMedia.model_validate_json(self._content(call))

    def download_media(self, url: str, to: str | os.PathLike[str]) -> int:
        """Stores the file of a `mediaUrl` or `mediaPath` under a path, which has it once it is whole; returns its size."""
        return self._store(Call("GET", url), to)

    def iter_media(self, url: str) -> Iterator[bytes]:
        """The bytes of the file of a `mediaUrl` or `mediaPath`, in pieces."""
        with self._open(Call("GET", url)) as response:
            yield from response.iter_bytes(CHUNK_BYTES)

    def export_customer(self, body: ExportRequest, to: str | os.PathLike[str]) -> int:
        """Stores what there is of a customer as a zip archive; returns its size."""
        return self._store(Call("POST", "/api/external/exports", body=body, is_safe=True), to)

    def stream_events(
        self, *, types: Sequence[str] | None = None, cursor: str | None = None
    ) -> Iterator[StreamedEvent]:
        """Live events, without gaps. Connects again by itself, and goes on behind the last event; `cursor` does that for a new
        stream. Ends by an exception only: when the key is no longer valid, or too many attempts in a row have failed."""
        reader = EventReader(types, cursor)
        attempts = self._connection.attempts(reader.call())
        while True:
            try:
                with self._open(reader.call()) as response:
                    for chunk in response.iter_bytes():
                        attempts.start_again()
                        yield from reader.feed(chunk)
            except httpx.TransportError as error:
                wait_seconds = attempts.wait_after(error)
                if wait_seconds is None:
                    raise
            else:
                wait_seconds = self._connection.retry.first_wait_seconds
            time.sleep(wait_seconds)

    def close(self) -> None:
        """Closes its connections."""
        if self._owns_http:
            self._http.close()

    def __enter__(self) -> "Heliograph":
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def _store(self, call: Call, to: str | os.PathLike[str]) -> int:
        attempts = self._connection.attempts(call)
        while True:
            try:
                with whole_file(to) as file, self._open(call) as response:
                    return sum(file.write(chunk) for chunk in response.iter_bytes(CHUNK_BYTES))
            except httpx.TransportError as error:
                wait_seconds = attempts.wait_after(error)
                if wait_seconds is None:
                    raise
                time.sleep(wait_seconds)
