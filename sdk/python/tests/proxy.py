"""A TCP proxy that breaks connections when told to, and counts them."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit


class Proxy:
    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        # How many connections were made.
        self.connections = 0
        # Of the next connections: how many bytes of answers pass before each is cut.
        self.cut_after: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            limit = self.cut_after.pop(0) if self.cut_after else None
            far = socket.create_connection(self._target)
            for source, sink, most in ((near, far, None), (far, near, limit)):
                threading.Thread(target=_pump, args=(source, sink, most), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, most: int | None) -> None:
    left = most
    try:
        while left is None or left > 0:
            chunk = source.recv(65536 if left is None else min(left, 65536))
            if not chunk:
                break
            if left is not None:
                left -= len(chunk)
            sink.sendall(chunk)
        if left == 0:
            source.recv(1)  # An answer comes, so the request had its effect; it never arrives.
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
