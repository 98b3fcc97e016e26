"""Requests, retries, pages, files and streams."""

import asyncio
import io
import json
import time
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import httpx
import pytest
from conftest import Service

from heliograph import AsyncHeliograph, Heliograph, HeliographError, RetryPolicy
from heliograph.requests import MessageToSend

TEXT: MessageToSend = {"phoneNumberId": "8", "to": "+1", "type": "text", "text": {"body": "grüße 👋"}}
SENT = {"serviceMessageId": "1", "conversationId": "2", "metaMessageId": None, "state": "queued", "new": [1]}
CLOSED = httpx.RemoteProtocolError("closed")


def error(status: int, code: str = "service_unavailable", headers: dict[str, str] | None = None) -> httpx.Response:
    details = {"code": code, "message": "No.", "requestId": "req_1", "type": "api_error", "param": None}
    return httpx.Response(status, json={"error": details}, headers=headers)


def page(ids: list[int], cursor: str | None, has_more: bool) -> httpx.Response:
    data = [
        {"id": str(n), "state": "running", "selection": {}, "total": 1, "queued": 1, "skipped": 0}
        | {"requestedBy": "x", "createdAt": "2026-11-21T09:30:00.123Z", "finishedAt": None}
        | {"selection": dict.fromkeys(["deliveryIds", "eventIds", "endpointId", "from", "to", "eventTypes", "states"])}
        for n in ids
    ]
    return httpx.Response(200, json={"data": data, "hasMore": has_more, "nextCursor": cursor})


def test_a_send_is_repeated_with_the_same_key_until_there_is_a_response(service: Service, client: Heliograph) -> None:
    in_flight = error(409, "idempotency_key_in_flight", {"retry-after": "0"})
    service.answers = [CLOSED, error(503), in_flight, httpx.Response(202, json=SENT)]
    sent = client.send_message(TEXT)
    assert sent.service_message_id == "1" and sent.meta_message_id is None
    assert sent.model_extra == {"new": [1]}
    keys = {request.headers["idempotency-key"] for request in service.requests}
    assert len(service.requests) == 4 and len(keys) == 1
    assert {request.content for request in service.requests} == {json.dumps(TEXT, ensure_ascii=False).encode()}
    assert service.requests[0].headers["authorization"] == "Bearer ck_1"


def test_two_sends_have_two_keys_and_a_given_key_is_used(service: Service, client: Heliograph) -> None:
    service.answers = [httpx.Response(200, json=SENT) for _ in range(3)]
    client.send_message(TEXT)
    client.send_message(TEXT)
    client.send_message(TEXT, idempotency_key="order-7")
    first, second, third = (request.headers["idempotency-key"] for request in service.requests)
    assert first != second and third == "order-7"


def test_retries_are_bounded(service: Service, client: Heliograph) -> None:
    service.answers = [error(503) for _ in range(9)]
    with pytest.raises(HeliographError) as raised:
        client.get_usage()
    assert raised.value.status == 503 and len(service.requests) == 4
    service.answers = [CLOSED for _ in range(9)]
    with pytest.raises(httpx.RemoteProtocolError):
        client.get_usage()
    assert len(service.requests) == 8


def test_a_post_without_a_key_is_made_once_unless_nothing_was_sent(service: Service, client: Heliograph) -> None:
    for failure in (CLOSED, httpx.ReadTimeout("slow"), error(503), error(429, "rate_limit_exceeded")):
        service.answers = [failure, httpx.Response(200, json={})]
        with pytest.raises((httpx.TransportError, HeliographError)):
            client.retry_delivery("dlv_1")
    assert len(service.requests) == 4
    done = {"id": "dlv_1", "endpointId": "3", "state": "pending", "retried": True}
    service.answers = [httpx.ConnectError("refused"), httpx.Response(200, json=done)]
    assert client.retry_delivery("dlv_1").retried is True


def test_final_errors_are_not_repeated(service: Service, client: Heliograph) -> None:
    replayed = error(503, headers={"idempotent-replayed": "true"})
    for failure in (error(422, "invalid_request"), error(424, "upstream_refused"), replayed):
        service.answers = [failure]
        with pytest.raises(HeliographError):
            client.send_message(TEXT)


def test_retry_after_is_honoured_in_seconds_and_as_a_date(service: Service, client: Heliograph) -> None:
    for value in ("1", ""):
        at = datetime.now(timezone.utc) + timedelta(seconds=2)
        value = value or format_datetime(at, usegmt=True)
        service.answers = [error(429, "rate_limit_exceeded", {"retry-after": value}), httpx.Response(200, json=SENT)]
        begin = time.monotonic()
        client.send_message(TEXT)
        assert time.monotonic() - begin > 0.5


def test_a_wait_longer_than_the_longest_is_the_callers(service: Service, client: Heliograph) -> None:
    service.answers = [error(429, "rate_limit_exceeded", {"retry-after": "60"})]
    with pytest.raises(HeliographError) as raised:
        client.get_usage()
    assert (raised.value.retry_after_seconds, raised.value.code) == (60, "rate_limit_exceeded")


def test_waits_double_and_are_shortened_at_random() -> None:
    policy = RetryPolicy(max_retries=20, first_wait_seconds=1, longest_wait_seconds=8)
    for retry, longest in enumerate((1, 2, 4, 8, 8, 8)):
        waits = {policy.wait_seconds(retry) for _ in range(50)}
        assert len(waits) > 10
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
    assert policy.wait_seconds(20) is None


def test_an_error_has_what_the_response_says(service: Service, client: Heliograph) -> None:
    service.answers = [error(404, "not_found")]
    with pytest.raises(HeliographError, match=r"No\. \(req_1\)") as raised:
        client.get_event("evt/../1")
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (404, "not_found", "req_1")
    assert raised.value.details is not None and raised.value.details["param"] is None
    assert str(service.requests[0].url).endswith("/events/evt%2F..%2F1")
    for body in (b"<html>", b"null", b"{}", b'{"error": "x"}', b"5"):
        service.answers = [httpx.Response(400, content=body, headers={"x-request-id": "req_2"})]
        with pytest.raises(HeliographError) as raised:
            client.get_usage()
        assert (raised.value.code, raised.value.details, raised.value.request_id) == ("unknown", None, "req_2")


def test_pages_are_read_to_the_end_also_through_empty_ones(service: Service, client: Heliograph) -> None:
    service.answers = [page([1, 2], "a", True), page([], "b", True), page([3], "c", False)]
    assert [replay.id for replay in client.iter_replays(limit=2)] == ["1", "2", "3"]
    cursors = [request.url.params.get("cursor") for request in service.requests]
    assert cursors == [None, "a", "b"]
    assert all(request.url.params["limit"] == "2" for request in service.requests)


def test_a_search_pages_by_its_body_and_is_repeated(service: Service, client: Heliograph) -> None:
    empty = {"data": [], "hasMore": True, "nextCursor": "a"}
    last = {"data": [], "hasMore": False, "nextCursor": None}
    service.answers = [CLOSED, httpx.Response(200, json=empty), httpx.Response(200, json=last)]
    assert list(client.iter_search_conversations({"customer": "+1"})) == []
    bodies = [json.loads(request.content) for request in service.requests[1:]]
    assert bodies == [{"customer": "+1"}, {"customer": "+1", "cursor": "a"}]


def test_times_are_sent_as_utc(service: Service, client: Heliograph) -> None:
    service.answers = [page([], None, False), page([], None, False)]
    client.list_events(since=datetime(2026, 11, 21, 10, tzinfo=timezone(timedelta(hours=2))), type="message")
    client.list_events(since="2026-11-21T08:00:00Z")
    assert [request.url.params["since"] for request in service.requests] == [
        "2026-11-21T08:00:00.000Z",
        "2026-11-21T08:00:00Z",
    ]


def test_a_download_is_whole_or_not_there_and_carries_no_key_elsewhere(
    service: Service, client: Heliograph, tmp_path: Path
) -> None:
    class Cut(httpx.SyncByteStream):
        def __iter__(self):  # type: ignore[no-untyped-def]
            yield b"half"
            raise httpx.ReadError("cut")

    service.answers = [httpx.Response(200, stream=Cut()), httpx.Response(200, content=b"whole")]
    to = tmp_path / "picture"
    assert client.download_media("https://files.example/a?signature=1", to) == 5
    assert to.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [to]
    assert all("authorization" not in request.headers for request in service.requests)
    service.answers = [error(404, "not_found")]
    with pytest.raises(HeliographError):
        client.download_media("/received_media/x", tmp_path / "other")
    assert list(tmp_path.iterdir()) == [to]
    assert str(service.requests[-1].url) == "https://gateway.example/received_media/x"


def test_an_upload_says_its_type_and_name(service: Service, client: Heliograph, tmp_path: Path) -> None:
    file = tmp_path / "mug.jpg"
    file.write_bytes(b"\xff\xd8")
    media = {"id": "med_1", "mediaType": "image", "mimeType": "image/jpeg", "sizeBytes": 2, "sha256": "0"}
    times = {"fileName": "mug.jpg", "createdAt": "2026-11-21T09:30:00.000Z", "expiresAt": "2026-12-21T09:30:00.000Z"}
    for given in (file, str(file), file.open("rb"), io.BytesIO(b"\xff\xd8"), b"\xff\xd8"):
        service.answers = [httpx.Response(201, json=media | times)]
        uploaded = client.upload_media(given, file_name="mug.jpg")
        assert uploaded.id == "med_1" and uploaded.created_at.tzinfo is not None
        content = service.requests[-1].content
        assert b'filename="mug.jpg"' in content and b"Content-Type: image/jpeg" in content and b"\xff\xd8" in content


def test_a_stream_goes_on_behind_the_last_event_however_its_bytes_are_cut(
    service: Service, client: Heliograph
) -> None:
    def block(n: int) -> bytes:
        body = {"eventType": "new.type", "eventId": str(n), "text": "a\u2028b"}
        event = {"id": f"evt_{n}", "eventType": "new.type", "eventId": str(n), "phoneNumberId": None, "sequence": n}
        times = {"createdAt": "2026-11-21T09:30:00.123Z", "occurredAt": None, "body": body}
        return f"id: c{n}\ndata: {json.dumps(event | times, ensure_ascii=False)}\n\n".encode()

    class Stream(httpx.SyncByteStream):
        def __init__(self, content: bytes, size: int, failure: Exception | None) -> None:
            self._parts = [content[n : n + size] for n in range(0, len(content), size)]
            self._failure = failure

        def __iter__(self):  # type: ignore[no-untyped-def]
            yield from self._parts
            if self._failure is not None:
                raise self._failure

    half = block(3)[:20]
    end = b'event: end\ndata: {"reason": "max_age"}\n\n'
    service.answers = [
        httpx.Response(200, stream=Stream(block(1) + block(2) + half, 7, httpx.ReadError("cut"))),
        httpx.Response(200, stream=Stream(block(3) + b":\nid: c4\n\n" + end, 1, None)),
        error(503),
        httpx.Response(200, stream=Stream(block(5), 1000, None)),
        error(401, "invalid_api_key"),
    ]
    read = []
    with pytest.raises(HeliographError, match="No"):
        for event in client.stream_events(types=["message", "upstream.*"]):
            read.append((event.cursor, event.body and event.body["text"]))
    assert read == [(f"c{n}", "a\u2028b") for n in (1, 2, 3, 5)]
    cursors = [request.url.params.get("cursor") for request in service.requests]
    assert cursors == [None, "c2", "c4", "c4", "c5"]


def test_the_asynchronous_client_does_the_same(
    service: Service, make_async_client: Callable[[], AsyncHeliograph], tmp_path: Path
) -> None:
    async def talk() -> None:
        async with make_async_client() as client:
            service.answers = [CLOSED, error(503), httpx.Response(202, json=SENT)]
            assert (await client.send_message(TEXT)).state == "queued"
            service.answers = [page([1], "a", True), page([2], None, False)]
            assert [replay.id async for replay in client.iter_replays()] == ["1", "2"]
            service.answers = [error(404, "not_found")]
            with pytest.raises(HeliographError):
                await client.get_event("x")
            service.answers = [CLOSED, httpx.Response(200, content=b"whole")]
            assert await client.download_media("/a", tmp_path / "a") == 5
            service.answers = [httpx.Response(200, content=b"whole")]
            assert b"".join([part async for part in client.iter_media("/a")]) == b"whole"

    asyncio.run(talk())


API_KEY = "ck_" + "a1" * 32


@pytest.mark.parametrize("text", [API_KEY + "\n", API_KEY + "\r\n", f" {API_KEY} ", "\ufeff" + API_KEY])
def test_a_key_from_a_file_works(service: Service, text: str) -> None:
    service.answers = [httpx.Response(200, json={"status": "ok"})]
    http = httpx.Client(transport=httpx.MockTransport(service.respond))
    Heliograph("https://gateway.example\n", text, http_client=http).test_connection()
    assert service.requests[0].headers["authorization"] == f"Bearer {API_KEY}"
    assert str(service.requests[0].url).startswith("https://gateway.example/")


@pytest.mark.parametrize("make", [Heliograph, AsyncHeliograph])
@pytest.mark.parametrize(
    "text", [f"{API_KEY}\n{API_KEY}", f"Bearer {API_KEY}", f'"{API_KEY}"', API_KEY[:30] + " " + API_KEY[30:], API_KEY + "é", ""]
)
def test_another_key_is_refused_when_the_client_is_made_and_not_shown(make: type[Heliograph], text: str) -> None:
    with pytest.raises(ValueError) as raised:
        make("https://gateway.example", text)
    shown = "".join(traceback.format_exception_only(raised.value)) + repr(raised.value)
    assert "a1a1" not in shown


@pytest.mark.parametrize(
    "text", ["gateway.example", "127.0.0.1:8080", "localhost:8080", '"https://gateway.example"', "ftp://x", "https://a b", ""]
)
def test_an_address_that_is_none_is_refused_when_the_client_is_made(text: str) -> None:
    with pytest.raises(ValueError, match="base_url must be like https://gateway.example"):
        Heliograph(text, API_KEY)


def test_a_request_that_cannot_be_written_is_not_repeated(service: Service, client: Heliograph) -> None:
    for failure in (httpx.LocalProtocolError("illegal header"), httpx.UnsupportedProtocol("no scheme")):
        service.answers = [failure]
        with pytest.raises(httpx.TransportError):
            client.list_events()
        assert service.answers == []


def test_the_text_of_an_error_has_its_code(service: Service, client: Heliograph) -> None:
    service.answers = [error(422, "unknown_customer")]
    with pytest.raises(HeliographError, match=r"^unknown_customer: No\. \(req_1\)$"):
        client.get_account_identity()


KEY = {
    "keyRef": "shop", "id": "3", "name": "shop", "prefix": "ck_1", "lastFour": "9d2e", "scopes": ["send"],
    "allowedNetworks": None, "state": "active", "createdAt": "2026-11-21T09:30:00.000Z", "expiresAt": None,
    "revokedAt": None, "lastUsedAt": None, "apiKey": "ck_2",
}  # fmt: skip


def test_the_platform_api_gets_its_own_key_and_no_other_api_does(service: Service) -> None:
    with httpx.Client(transport=httpx.MockTransport(service.respond)) as http:
        client = Heliograph("https://gateway.example", platform_key="hp_1\n", http_client=http)
        service.answers = [httpx.Response(201, json=KEY), httpx.Response(200, json={"status": "ok"})]
        key = client.platform.put_tenant_key("acme", "9", "shop", {"name": "shop", "scopes": ["send"]})
        assert key.api_key == "ck_2"
        client.test_connection()
        of_platform, of_tenants = service.requests
        assert of_platform.url.path == "/api/platform/tenants/acme/wabas/9/keys/shop"
        assert of_platform.headers["authorization"] == "Bearer hp_1" and "authorization" not in of_tenants.headers
        with pytest.raises(ValueError, match="platform_key"):
            Heliograph("https://gateway.example", "ck_1", http_client=http).platform
    with pytest.raises(ValueError, match="api_key"):
        Heliograph("https://gateway.example")


def test_a_file_of_counts_is_text(service: Service) -> None:
    with httpx.Client(transport=httpx.MockTransport(service.respond)) as http:
        client = Heliograph("https://gateway.example", platform_key="hp_1", http_client=http)
        service.answers = [httpx.Response(200, text="day,sent\n2026-11-27,3\n")]
        assert client.platform.get_tenant_usage_file(from_="2026-11-27") == "day,sent\n2026-11-27,3\n"


def test_the_platform_api_is_there_for_asyncio_too(service: Service) -> None:
    async def scenario() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(service.respond)) as http:
            client = AsyncHeliograph("https://gateway.example", platform_key="hp_1", http_client=http)
            service.answers = [
                httpx.Response(200, json={"data": [], "hasMore": True, "nextCursor": "c"}),
                httpx.Response(200, json={"data": [], "hasMore": False, "nextCursor": "d"}),
            ]
            assert [event async for event in client.platform.iter_operation_events(types="tenant.*")] == []
        assert [request.url.params.get("cursor") for request in service.requests] == [None, "c"]

    asyncio.run(scenario())
