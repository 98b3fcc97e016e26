"""What the synchronous and the asynchronous client share: how a request and its response are written."""

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import quote

import httpx

from .errors import HeliographError
from .retries import Attempts, RetryPolicy, is_repeated_response

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

QueryValue = str | int | bool | datetime | None
Parse = Callable[[bytes], T]


def _version() -> str:
    try:
        return version("heliograph-client")
    except PackageNotFoundError:
        return "unknown"


USER_AGENT = f"heliograph-client-python/{_version()}"


class Page(Protocol[T_co]):
    """A page of a list."""

    @property
    def data(self) -> Sequence[T_co]: ...

    @property
    def has_more(self) -> bool: ...

    @property
    def next_cursor(self) -> str | None: ...


@dataclass(frozen=True)
class Call:
    """One request, as often as it is made."""

    method: str
    url: str
    query: Mapping[str, QueryValue] = field(default_factory=dict)
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None
    read_timeout_seconds: float | None = None
    is_safe: bool = False


@dataclass(frozen=True)
class Connection:
    """Where the service is, and for whom to speak."""

    base_url: str
    # None: the client is for the platform API alone.
    api_key: str | None = field(repr=False)
    timeout_seconds: float
    retry: RetryPolicy

    def url_of(self, path: str) -> str:
        """The URL of a path; a URL stays as it is."""
        return self.base_url + path if path.startswith("/") else path

    def build(self, client: httpx.Client | httpx.AsyncClient, call: Call) -> httpx.Request:
        headers = {"user-agent": USER_AGENT, **call.headers}
        # A link to a file needs no key, and may lead to another host, which must not learn it.
        if call.url.startswith("/") and self.api_key is not None:
            headers["authorization"] = f"Bearer {self.api_key}"
        content = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(call.body, ensure_ascii=False, default=_json_of).encode()
        timeout = httpx.Timeout(self.timeout_seconds, read=call.read_timeout_seconds or self.timeout_seconds)
        return client.build_request(
            call.method,
            self.url_of(call.url),
            params={name: _text_of(value) for name, value in call.query.items() if value is not None} or None,
            content=content,
            headers=headers,
            files=call.files,
            data=call.form,
            timeout=timeout,
        )

    def attempts(self, call: Call) -> Attempts:
        is_safe = call.is_safe or call.method == "GET" or "idempotency-key" in call.headers
        return Attempts(self.retry, is_safe=is_safe)


def address_of(text: str) -> str:
    """A base URL, without what files and copying add to it."""
    address = text.strip()
    if re.fullmatch(r"https?://[^\s\"'<>]+", address) is None:
        raise ValueError(f"base_url must be like https://gateway.example, not {text!r}")
    return address.rstrip("/")


API_KEY = "api_key is no API key, which is ck_ and 64 hexadecimal digits"
PLATFORM_KEY = "platform_key is no platform key, which is hp_ and 64 hexadecimal digits"


def key_of(text: str, problem: str = API_KEY) -> str:
    """A key without the line break that files and secrets end with. The error of httpx for another one would show it."""
    key = text.strip().strip("\ufeff")
    if re.fullmatch(r"[!#-&(-~]+", key) is None:
        raise ValueError(problem)
    return key


def wait_or_raise(attempts: Attempts, response: httpx.Response) -> float:
    """How long to wait after an error response that was read; raises it when there is no other attempt."""
    error = HeliographError(response)
    wait_seconds = attempts.wait_after(error, is_final=is_repeated_response(response))
    if wait_seconds is None:
        raise error
    return wait_seconds


def new_idempotency_key() -> str:
    return str(uuid.uuid4())


def path_part(value: str) -> str:
    """A value in a path: what would end the part of the path is encoded."""
    return quote(value, safe="")


def with_cursor(body: T, cursor: str | None) -> T:
    """A body that asks for the page of a cursor."""
    if cursor is None:
        return body
    return cast(T, {**cast(Mapping[str, object], body), "cursor": cursor})


def parse_any(content: bytes) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(content))


def _text_of(value: str | int | bool | datetime) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _time_text(value) if isinstance(value, datetime) else str(value)


def _time_text(at: datetime) -> str:
    # A time without a zone is the local one, as everywhere in Python.
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_of(value: object) -> str:
    if isinstance(value, datetime):
        return _time_text(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
