"""Receives webhooks with FastAPI: each is handled once, and confirmed after the commit."""

import os
import sqlite3

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from heliograph import Webhook, WebhookEvent, WebhookVerificationError

webhook = Webhook(os.environ["HELIOGRAPH_WEBHOOK_SECRET"])
app = FastAPI()


def connect() -> sqlite3.Connection:
    return sqlite3.connect(os.environ["DATABASE"], timeout=10)


with connect() as db:
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS seen (webhook_id TEXT PRIMARY KEY)")
    db.execute("CREATE TABLE IF NOT EXISTS handled (webhook_id TEXT, event_type TEXT, event_id TEXT)")


@app.post("/webhooks", status_code=204)
async def receive(request: Request) -> None:
    try:
        event = webhook.verify(await request.body(), request.headers)
    except WebhookVerificationError as error:
        raise HTTPException(401, str(error)) from error
    await run_in_threadpool(store, request.headers["webhook-id"], event)


def store(webhook_id: str, event: WebhookEvent) -> None:
    db = connect()
    try:
        with db:  # One transaction: the id and the work, or neither.
            new = db.execute("INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING", [webhook_id])
            if new.rowcount == 1:
                handle(db, webhook_id, event)
    finally:
        db.close()


def handle(db: sqlite3.Connection, webhook_id: str, event: WebhookEvent) -> None:
    """Your own work. What takes longer is a row here, for a worker of yours."""
    db.execute("INSERT INTO handled VALUES (?, ?, ?)", [webhook_id, event.event_type, event.event_id])
