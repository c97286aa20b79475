"""Receives Drover's webhooks: checks who sent them and when, and takes each of them once.

python3 receiver.py KEYFILE [PORT]
"""

import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLAY_SECONDS = 300
LARGEST_BYTES = 1_000_000
KEY = open(sys.argv[1], "rb").read().strip()
seen: set[str] = set()


def is_genuine(header: str, body: bytes) -> bool:
    """`t=SECONDS,v1=HEX`: HMAC-SHA256 of `SECONDS.BODY` with the shared key."""
    parts = dict(part.split("=", 1) for part in header.split(",") if "=" in part)
    sent = parts.get("t", "")
    if not sent.isdigit() or abs(time.time() - int(sent)) > REPLAY_SECONDS:
        return False
    wanted = hmac.new(KEY, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, parts.get("v1", ""))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        body = self.rfile.read(min(length, LARGEST_BYTES))
        genuine = is_genuine(self.headers.get("drover-signature", ""), body)
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if not genuine:
            return
        notice = json.loads(body)
        if notice["id"] in seen:
            return
        seen.add(notice["id"])
        print(f"{notice['kind']}: {notice['subject']}", flush=True)
        for line in notice["lines"]:
            print(f"  {line}", flush=True)

    def log_message(self, *_: object) -> None:
        """Says nothing of requests."""


port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
print(f"listening on {server.server_port}", flush=True)
server.serve_forever()
