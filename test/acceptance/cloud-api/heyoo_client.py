"""Runs heyoo against the facade: its base addresses are all that differs. Prints a line of JSON each."""
import hashlib
import hmac
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

from heyoo import WhatsApp

base, token, phone, waba, customer, secret = sys.argv[1:7]
got = []
states = []
arrived = threading.Event()
told = threading.Event()
client = WhatsApp(token, phone_number_id=phone)
client.base_url = base + "/v14.0"
client.v15_base_url = base + "/v15.0"
client.url = f"{client.base_url}/{phone}/messages"


class Handler(BaseHTTPRequestHandler):
    """As the example of heyoo reads webhooks; it leaves verifying to the program."""

    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlparse(self.path).query).items()}
        known = query.get("hub.verify_token") == "verify me"
        self.answer(200 if known else 403, query.get("hub.challenge", "") if known else "")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signature, self.headers.get("X-Hub-Signature-256", "")):
            return self.answer(401, "")
        data = json.loads(body)
        if client.changed_field(data) == "messages":
            if client.is_message(data):
                got.append({
                    "id": client.get_message_id(data),
                    "text": client.get_message(data),
                    "from": client.get_mobile(data),
                    "name": client.get_name(data),
                    "type": client.get_message_type(data),
                    "read": client.mark_as_read(client.get_message_id(data)),
                })
                arrived.set()
            elif client.get_delivery(data):
                states.append(client.get_delivery(data))
                if {"sent", "delivered", "read"} <= set(states):
                    told.set()
        self.answer(200, "ok")

    def answer(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/"}), flush=True)
os.chdir(tempfile.mkdtemp())
with open("a.jpg", "wb") as file:
    file.write(b"\xff\xd8\xff\xe0" + b"\0" * 64)
text = client.send_message("Hello from heyoo", customer)
media = client.upload_media("a.jpg")
header = {"type": "header", "parameters": [{"type": "image", "image": {"id": media["id"]}}]}
template = client.send_template("summer_offer", customer, components=[header], lang="en_US")
image = client.send_image(media["id"], customer, link=False)
place = client.send_location(-6.8, 39.2, "Port", "Quay 1", customer)
saved = client.download_media(client.query_media_url(media["id"]), "image/jpeg", "b")
size = os.path.getsize(saved)
deleted = client.delete_media(media["id"])
arrived.wait(60)
told.wait(60)
answers = [text, template, image, place]
print(
    json.dumps({
        "sent": [one["messages"][0]["id"] if "messages" in one else one for one in answers],
        "media": [size, deleted],
        "received": got,
        "inbound": got[0]["id"] if got else None,
        "states": sorted(set(states)),
    }),
    flush=True,
)
