"""Turns webhooks of Heliograph into signals: python receiver.py, configured by environment variables."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from temporalio.client import Client
from temporalio.worker import Worker

from await_event import Customer, ReceivedEvent

SECRET = base64.b64decode(os.environ["HELIOGRAPH_WEBHOOK_SECRET"].removeprefix("whsec_"))
TASK_QUEUE = os.environ.get("TASK_QUEUE", "customers")


def is_genuine(headers, body: bytes) -> bool:
    """Checks the signature over id, time and the raw bytes, and that the time is near ours."""
    identifier, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not seconds.isdigit() or abs(time.time() - int(seconds)) > 300:
        return False
    signed = b".".join([identifier.encode(), seconds.encode(), body])
    expected = "v1," + base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256)).decode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


async def signal(client: Client, headers, event: dict) -> None:
    message = event["data"].get("message")
    if event["eventType"] != "message" or message is None:
        return
    received = ReceivedEvent(
        webhook_id=headers["webhook-id"],
        delivery_id=headers["x-service-delivery-id"],
        event_type=event["eventType"],
        event_id=event["eventId"],
        text=message.get("text", {}).get("body", ""),
    )
    await client.start_workflow(
        "customer",
        id=f"customer/{event['wabaId']}/{message['from']}",
        task_queue=TASK_QUEUE,
        start_signal="eventReceived",
        start_signal_args=[received],
    )


async def main() -> None:
    client = await Client.connect(
        os.environ["TEMPORAL_ADDRESS"], namespace=os.environ.get("TEMPORAL_NAMESPACE", "default")
    )
    loop = asyncio.get_running_loop()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if not is_genuine(self.headers, body):
                return self.respond(401)
            try:
                # 204 only once Temporal has the signal: otherwise the webhook comes again.
                task = signal(client, self.headers, json.loads(body))
                asyncio.run_coroutine_threadsafe(task, loop).result(timeout=10)
            except Exception:
                return self.respond(500)
            return self.respond(204)

        def respond(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Handler)
    loop.run_in_executor(None, server.serve_forever)
    print(server.server_port, flush=True)
    async with Worker(client, task_queue=TASK_QUEUE, workflows=[Customer]):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
