"""Runs pywa against the facade: its base address is all that differs. Prints one JSON object."""
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlparse

import httpx
from pywa import WhatsApp, types
from pywa.types import templates
from pywa.types.calls import SessionDescription

base, token, phone, waba, customer, secret = sys.argv[1:7]
got = []
statuses = []
calls = []
forged = []
called = threading.Event()
done = threading.Event()
told = threading.Event()
sent = []
client = WhatsApp(phone_id=phone, token=token, app_secret=secret, verify_token="verify me", server=None, waba_id=waba, session=httpx.Client(timeout=120))
client.api._session.base_url = base + "/v26.0"


@client.on_message
def on_message(_, message: types.Message):
    got.append({"id": message.id, "text": message.text, "from": message.from_user.wa_id, "name": message.from_user.name, "bsuid": message.from_user.bsuid})
    done.set()


@client.on_call_connect
def on_call(_, call: types.CallConnect):
    calls.append(call.id)
    called.set()


@client.on_message_status
def on_status(_, status: types.MessageStatus):
    statuses.append([status.id, str(status.status.value), status.from_user.wa_id])
    tell_when_read()


def tell_when_read():
    if sent and {id for id, state, _ in list(statuses) if state == "read"} >= set(sent):
        told.set()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlparse(self.path).query).items()}
        self.answer(client.webhook_challenge_handler(vt=query.get("hub.verify_token"), ch=query.get("hub.challenge")))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        refusal = client.webhook_update_validator(body, self.headers.get("X-Hub-Signature-256"))
        if refusal is None:
            forged.append(client.webhook_update_validator(body + b" ", self.headers.get("X-Hub-Signature-256"))[1])
        self.answer(refusal or client.webhook_update_handler(update=body))

    def answer(self, result):
        text, status = result
        self.send_response(status)
        self.end_headers()
        self.wfile.write(str(text).encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}/"}), flush=True)
text = client.send_message(to=customer, text="Hello from pywa")
buttons = client.send_message(
    to=customer, text="Shall we?", buttons=[types.Button(title="Yes", callback_data="yes")]
)
media = client.upload_media(media=b"\xff\xd8\xff\xe0" + b"\0" * 64, mime_type="image/jpeg", filename="a.jpg")
media_id = media if isinstance(media, str) else media.id
image = client.send_image(to=customer, image=media_id)
url = client.get_media_url(media_id=media_id)
data = client.get_media_bytes(url=url.url)
try:
    client.send_message(to=customer, text="x" * 5000)
    error = None
except Exception as failure:  # what pywa makes of upstream's error form
    error = [type(failure).__name__, getattr(failure, "error_code", None) or getattr(failure, "code", None)]
picture = b"\xff\xd8\xff\xe0" + b"\0" * 70_000
offer = templates.Template(
    name=f"offer_{customer}",
    language=templates.TemplateLanguage.ENGLISH_US,
    category=templates.TemplateCategory.UTILITY,
    components=[templates.HeaderImage(example=picture, mime_type="image/jpeg"), templates.BodyText("Your mugs are here.")],
)
# The app is that which the sandbox sends its webhooks from.
made = client.create_template(template=offer, app_id="700000000000001")
header = templates.HeaderImage.params(image=media_id)
offered = client.send_template(to=customer, name=offer.name, language=offer.language, params=[header])
client.block_users(users=["12025550143"])
code = client.create_qr_code(prefilled_message="Hi")
edges = [
    client.get_business_profile().industry.value,
    [user.wa_id for user in client.get_blocked_users()],
    client.get_qr_code(code.code).prefilled_message,
    client.get_templates().total_count >= 5,
]
call = client.initiate_call(to=customer, sdp=SessionDescription(sdp_type="offer", sdp="v=0"))
# get_call_permissions of pywa 4.5.0 fails before it asks.
made_calls = [call.id, client.terminate_call(call.id).success]
sent.extend([str(text.id), str(buttons.id), str(image.id), str(offered.id)])
tell_when_read()
done.wait(60)
called.wait(60)
told.wait(60)
# The webhook is answered at once; what the program does then may take longer.
read = [
    [client.mark_message_as_read(one["id"]).success, client.indicate_typing(one["id"]).success] for one in got
]
answer = SessionDescription(sdp_type="answer", sdp="v=0")
taken = [[id, client.pre_accept_call(id, answer).success, client.accept_call(id, answer).success] for id in calls]
print(
    json.dumps(
        {
            "sent": sent,
            "statuses": statuses,
            "edges": edges,
            "media": [media_id, url.mime_type, len(data)],
            "error": error,
            "template": str(made.status.value),
            "received": got,
            "inbound": got[0]["id"] if got else None,
            "read": read,
            "calls": [made_calls, taken],
            "forged": sorted(set(forged)),
        }
    ),
    flush=True,
)
