"""One REST call: kept-alive connections, safe retries, failures as DroverError."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import threading
import time
from typing import IO, Any, Callable, Mapping, NamedTuple, TypeVar, Union
from urllib.parse import urlencode, urlsplit

from .answer import Answer
from .connection import Connection, TlsFiles
from .errors import ConnectionFailed, DroverError, from_problem

VERSION = "0.1.0"
# How long one call may take; a parked `wait` adds its own time.
CALL_TIMEOUT_S = 30.0
# A stream sends a comment every 15 s: silence beyond this is a dead connection.
STREAM_SILENCE_S = 60.0
# How long a call is tried again: covers a restart of the controller with room.
RETRY_WINDOW_S = 15.0
RETRY_FIRST_S = 0.1
RETRY_MOST_S = 2.0
# The longest silence of a transfer: a large blob is brought to disk before it is answered.
TRANSFER_SILENCE_S = 300.0
IDLE_CONNECTIONS = 8
RETRYABLE_STATUS = (502, 503, 504)

Query = Mapping[str, Union[str, int, bool, None]]
Body = Union[bytes, Callable[[], IO[bytes]], None]
T = TypeVar("T")


class Envelope(NamedTuple):
    data: Any
    meta: dict[str, Any]


def may_pass(error: DroverError) -> bool:
    """Whether the failure is of the connection or of a server that is just starting."""
    return isinstance(error, ConnectionFailed) or error.status in RETRYABLE_STATUS


def retry_pause(attempt: int) -> float:
    return float(min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(attempt, 10)))


class Transport:
    """Safe to use from several threads. Every call must be safe to repeat."""

    def __init__(self, connection: Connection) -> None:
        self.url = connection.url
        self._token = connection.token
        parts = urlsplit(connection.url)
        self._host, self._port, self._prefix = parts.hostname or "", parts.port, parts.path
        self._tls = _tls_context(connection.tls) if parts.scheme == "https" else None
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> Envelope:
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        sent = dict(headers or {})
        if content is not None:
            sent["content-type"] = "application/json"

        def once() -> Envelope:
            with self._open(method, path, query, content, sent, CALL_TIMEOUT_S + wait_s) as answer:
                return self._envelope(answer)

        return self._retried(once)

    def upload(self, path: str, content: Body) -> Envelope:
        """Streams a body from memory or from a file that is opened anew for each try."""
        sent = {"content-type": "application/octet-stream"}

        def once() -> Envelope:
            with self._open("PUT", path, None, content, sent, TRANSFER_SILENCE_S) as answer:
                return self._envelope(answer)

        return self._retried(once)

    def download(self, path: str, take: Callable[[bytes], object]) -> None:
        """Hands each run of bytes to `take` once, and goes on from there after a broken line."""
        taken = 0

        def once() -> None:
            nonlocal taken
            words = {"accept": "*/*"}
            if taken > 0:
                words["range"] = f"bytes={taken}-"
            with self._open("GET", path, None, None, words, TRANSFER_SILENCE_S) as answer:
                if taken > 0 and answer.status != 206:
                    raise self._not_ours(answer.status)
                for chunk in answer.chunks():
                    take(chunk)
                    taken += len(chunk)

        self._retried(once, lambda: taken)

    def stream(self, path: str, query: Query, headers: Mapping[str, str]) -> Answer:
        """An answer that goes on; the caller closes it. Not retried: the caller resumes."""
        return self._open("GET", path, query, None, headers, STREAM_SILENCE_S)

    def _retried(self, once: Callable[[], T], progress: Callable[[], int] = lambda: 0) -> T:
        give_up_at = time.monotonic() + RETRY_WINDOW_S
        attempt, reached = 0, 0
        while True:
            try:
                return once()
            except DroverError as error:
                if progress() > reached:
                    give_up_at, attempt = time.monotonic() + RETRY_WINDOW_S, 1
                    reached = progress()
                # Refused at the first try: nobody is there. Later it is a restart: go on.
                refused = attempt == 0 and isinstance(error, ConnectionFailed) and error.refused
                pause = retry_pause(attempt)
                if refused or not may_pass(error) or time.monotonic() + pause > give_up_at:
                    raise
            time.sleep(pause)
            attempt += 1

    def _open(
        self,
        method: str,
        path: str,
        query: Query | None,
        content: Body,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> Answer:
        words = {"user-agent": f"drover-python/{VERSION}", "accept": "application/json", **headers}
        if self._token:
            words["authorization"] = f"Bearer {self._token}"
        target = self._prefix + path + _query_text(query)
        while True:
            connection, reused = self._take(timeout_s)
            try:
                answer = self._exchange(connection, method, target, content, words)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # The server may close an idle connection at any time: that says nothing.
                if not reused or isinstance(error, socket.timeout):
                    raise self._broken(error) from None
                continue
            if 200 <= answer.status < 300:
                return answer
            with answer:
                raise self._problem(answer)

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        content: Body,
        headers: dict[str, str],
    ) -> Answer:
        try:
            if callable(content):
                with content() as file:
                    sized = {**headers, "content-length": str(os.fstat(file.fileno()).st_size)}
                    connection.request(method, target, body=file, headers=sized)
            else:
                connection.request(method, target, body=content, headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            # A refusal may come before the whole body went: it says more than the broken pipe.
            if content is None or connection.sock is None:
                raise
        return Answer(connection, give_back=self._give, broken=self._broken)

    def _take(self, timeout_s: float) -> tuple[http.client.HTTPConnection, bool]:
        with self._lock:
            if self._pid != os.getpid():  # After a fork the sockets are the parent's.
                self._pid, self._idle = os.getpid(), []
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            connection.sock.settimeout(timeout_s)
            return connection, True
        if self._tls is None:
            fresh = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        else:
            fresh = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout_s, context=self._tls
            )
        return fresh, False

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()

    def _broken(self, error: BaseException) -> ConnectionFailed:
        never = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
        refused = isinstance(error, never)
        return ConnectionFailed(self.url, error, refused=refused)

    def _envelope(self, answer: Answer) -> Envelope:
        if answer.status == 204:
            return Envelope(None, {})
        parsed = answer.json()
        if isinstance(parsed, dict) and "data" in parsed:
            return Envelope(parsed["data"], parsed.get("meta") or {})
        raise self._not_ours(answer.status)

    def _problem(self, answer: Answer) -> DroverError:
        parsed = answer.json()
        if isinstance(parsed, dict) and isinstance(parsed.get("code"), str):
            return from_problem(answer.status, parsed)
        return self._not_ours(answer.status)

    def _not_ours(self, status: int) -> DroverError:
        return DroverError(
            "UNEXPECTED_RESPONSE",
            f"{self.url} answered {status} with something that is not Drover's",
            hint="check the URL, and that no proxy stands between",
            status=status,
        )


def _tls_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    name = files.ca_file
    try:
        if files.ca_file:
            context.load_verify_locations(cafile=files.ca_file)
        if files.cert_file:
            name = files.cert_file
            context.load_cert_chain(files.cert_file, files.key_file)
    except OSError as error:  # ssl.SSLError is one, too.
        raise DroverError("USAGE", f"{name} cannot be used: {error}") from None
    return context


def _query_text(query: Query | None) -> str:
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (query or {}).items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""
