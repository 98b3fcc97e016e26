"""Signatures, and what becomes of events."""

import base64
import hashlib
import hmac
import json
import sys
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph import MessageEvent, UnknownEvent, UpstreamEvent, Webhook, WebhookVerificationError

KEY, OTHER = b"k" * 24, b"o" * 24
PRIVATE = Ed25519PrivateKey.generate()
PUBLIC = "whpk_" + base64.b64encode(PRIVATE.public_key().public_bytes_raw()).decode()


def secret(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


def headers(body: bytes, *keys: bytes, seconds_ago: int = 0, with_public_key: bool = False) -> dict[str, str]:
    timestamp = str(int(time.time()) - seconds_ago)
    signed = f"evt_1.{timestamp}.".encode() + body
    entries = ["v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys]
    if with_public_key:
        entries.append("v1a," + base64.b64encode(PRIVATE.sign(signed)).decode())
    return {"Webhook-Id": "evt_1", "Webhook-Timestamp": timestamp, "Webhook-Signature": " ".join(entries)}


def message(**members: Any) -> bytes:
    upstream = {"from": "1", "id": "wamid.1", "type": "new", "new": {"n": 12345678901234567890123}}
    data = {"metadata": {"new": 1}, "contacts": [], "message": upstream}
    event = {"eventType": "message", "userId": 1, "wabaId": "9", "phoneNumberId": "8", "eventId": "wamid.1"}
    return json.dumps(event | {"occurredAt": "2026-11-21T09:30:00.123Z", "data": data} | members).encode()


def test_a_signature_of_either_secret_of_a_rotation_fits() -> None:
    body = message()
    assert isinstance(Webhook(secret(KEY)).verify(body, headers(body, OTHER, KEY)), MessageEvent)
    assert isinstance(Webhook(secret(OTHER), secret(KEY)).verify(body, headers(body, KEY)), MessageEvent)
    assert isinstance(Webhook(secret(KEY)).verify(body.decode(), headers(body, KEY)), MessageEvent)


def test_a_public_key_verifies_without_the_secret() -> None:
    body = message()
    both = headers(body, OTHER, with_public_key=True)
    assert isinstance(Webhook(PUBLIC).verify(body, both), MessageEvent)
    for wrong, given in ((body + b" ", both), (body, headers(body, KEY))):
        with pytest.raises(WebhookVerificationError):
            Webhook(PUBLIC).check(wrong, given)


def test_what_is_changed_old_or_signed_by_others_is_refused() -> None:
    body = message()
    webhook = Webhook(secret(KEY))
    good = headers(body, KEY)
    refused = [
        (body + b" ", good),
        (b"\xef\xbb\xbf" + body, good),
        (body, headers(body, OTHER)),
        (body, headers(body, KEY, seconds_ago=301)),
        (body, headers(body, KEY, seconds_ago=-310)),
        (body, {}),
        *[(body, {name: value for name, value in good.items() if name != left_out}) for left_out in good],
        (body, good | {"Webhook-Id": "evt_2"}),
        (body, good | {"Webhook-Timestamp": "x"}),
        (body, good | {"Webhook-Timestamp": "-1"}),
        (body, good | {"Webhook-Signature": good["Webhook-Signature"].replace("v1,", "v2,")}),
        (body, good | {"Webhook-Signature": "ü v1a,@"}),
    ]
    for given, these in refused:
        with pytest.raises(WebhookVerificationError):
            webhook.verify(given, these)
    assert Webhook(secret(KEY), tolerance_seconds=400).verify(body, headers(body, KEY, seconds_ago=301))


def test_secrets_that_are_none_are_errors_at_once() -> None:
    for wrong in ("", "ck_1", "whsec_@", "whpk_AAAA"):
        with pytest.raises(ValueError):
            Webhook(wrong)
    with pytest.raises(ValueError):
        Webhook()


def verified(body: bytes) -> Any:
    return Webhook(secret(KEY)).verify(body, headers(body, KEY))


def test_objects_of_upstream_stay_as_they_are() -> None:
    event = verified(message(newMember=True))
    assert event.data.message == json.loads(message())["data"]["message"]
    assert list(event.data.message) == ["from", "id", "type", "new"]
    assert event.data.message["new"]["n"] == 12345678901234567890123
    assert event.model_extra == {"newMember": True} and event.occurred_at.microsecond == 123_000
    assert event.model_dump(by_alias=True)["data"]["message"] == event.data.message


def test_events_that_the_client_does_not_know_are_events_as_well() -> None:
    new = verified(message(eventType="new.type"))
    assert isinstance(new, UnknownEvent) and new.event_type == "new.type" and new.event_id == "wamid.1"
    assert new.body["data"]["metadata"] == {"new": 1}
    odd = verified(message(data="another shape"))
    assert isinstance(odd, UnknownEvent) and odd.event_type == "message"
    assert isinstance(verified(b'{"alertId": "alr_1"}'), UnknownEvent)
    assert isinstance(verified(b"[]"), UnknownEvent)
    upstream = verified(message(eventType="upstream.calls", data={"field": "calls", "value": [1]}))
    assert isinstance(upstream, UpstreamEvent) and upstream.data.value == [1]
    with pytest.raises(WebhookVerificationError):
        verified(b"not JSON")


NOISE = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=st.characters(max_codepoint=255), max_size=60),
    st.binary(max_size=80).map(lambda raw: base64.b64encode(raw).decode()),
    st.sampled_from(["***", "é", "=", "", "A", "\ud800", "v1,", "\x00"]),
)
ENTRY = st.tuples(st.sampled_from(["v1,", "v1a,", "v2,", "v1", "v1a", ""]), NOISE).map("".join)
TIMES = st.one_of(
    st.builds(lambda: str(int(time.time()))),
    st.sampled_from(["9" * 4301, "1" * 400, "-1", "1e3", "٣", "²", "0x10", " 1", "inf"]),
    NOISE,
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "webhook-id": NOISE,
        "webhook-timestamp": TIMES,
        "webhook-signature": st.lists(ENTRY, max_size=4).map(" ".join),
    },
)


@settings(max_examples=1_000, deadline=None, database=None)
@given(body=st.one_of(st.binary(max_size=80), st.text(max_size=80), st.just("\ud800")), given_headers=HEADERS)
def test_whoever_sends_it_the_verifier_raises_what_it_documents(body: bytes | str, given_headers: dict[str, str]) -> None:
    for key in (secret(KEY), PUBLIC):
        with pytest.raises(WebhookVerificationError):
            Webhook(key).verify(body, given_headers)


@pytest.mark.parametrize("body", [b"", b"no JSON", b'{"a":', b"\xff", b"[" * 100_000])
def test_a_body_that_is_signed_and_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(secret(KEY)).verify(body, headers(body, KEY))


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_?", "whpk_AAAA", "whpk_", "whsec_é", "ck_1"])
def test_a_secret_that_is_none_is_refused_when_the_verifier_is_made(text: str) -> None:
    with pytest.raises(ValueError):
        Webhook(text)


def test_a_secret_from_a_file_may_end_with_a_line_break() -> None:
    body = message()
    Webhook(secret(KEY) + "\r\n").check(body, headers(body, KEY))


def test_the_advice_for_public_keys_names_a_package_that_is_in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(ImportError, match="^Public keys need the package cryptography: pip install cryptography$"):
        Webhook(PUBLIC)
