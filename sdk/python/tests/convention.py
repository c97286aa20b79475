"""Stands before the server: keeps blobs and results by the convention the SDK is written for."""

from __future__ import annotations

import hashlib
import http.client
import http.server
import json
import re
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from drover.blobs import Blobs
from drover.connection import Connection
from drover.http import Transport

_WRAP = (
    'export DROVER_RESULT_DIR="$FAKE_RESULTS/$DROVER_JOB_ID/$DROVER_TASK_INDEX"; '
    'mkdir -p "$DROVER_RESULT_DIR"; exec "$@"'
)


class Convention:
    def __init__(self, target: str, token: str, folder: Path) -> None:
        self.folder = folder
        self.blobs = Blobs(Transport(Connection(target, token)))
        for part in ("inputs", "results"):
            (folder / part).mkdir(parents=True)
        handler = type("Handler", (_Handler,), {"convention": self, "target": urlsplit(target)})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def prepared(self, spec: dict[str, Any]) -> dict[str, Any]:
        inputs = self.folder / "inputs" / hashlib.sha256(json.dumps(spec).encode()).hexdigest()
        inputs.mkdir(exist_ok=True)
        for entry in spec.pop("inputs", []):
            self.blobs.save(entry["uri"][len("blob:") :], inputs / entry["name"])
        env = {"DROVER_INPUTS": str(inputs), "FAKE_RESULTS": str(self.folder / "results")}
        return {
            **spec,
            "command": ["sh", "-c", _WRAP, "sh", *spec["command"]],
            "env": {**spec.get("env", {}), **env},
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    convention: Convention
    target: Any

    def log_message(self, *_: object) -> None:
        pass

    def do_PUT(self) -> None:
        self._forward(self.rfile.read(int(self.headers["content-length"])))

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        match = re.fullmatch(r"/v1/jobs/([^/]+)/result", parts.path)
        if match is None:
            return self._forward(b"")
        task = parse_qs(parts.query).get("task", ["0"])[0]
        files = []
        for file in (self.convention.folder / "results" / match[1] / task).glob("**/*"):
            content = file.read_bytes()
            name = f"sha256:{hashlib.sha256(content).hexdigest()}"
            self.convention.blobs.put(content)
            files.append({"path": file.name, "size": len(content), "hash": name})
        self._answer(200, json.dumps({"data": {"files": files}}).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        if self.path == "/v1/jobs":
            body = json.dumps(self.convention.prepared(json.loads(body))).encode()
        self._forward(body)

    def _forward(self, body: bytes) -> None:
        connection = http.client.HTTPConnection(self.target.hostname, self.target.port)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "content-length"}
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        self._answer(answer.status, answer.read())
        connection.close()

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
