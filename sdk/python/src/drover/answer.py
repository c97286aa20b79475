"""A response that is read in runs of bytes, lines or as JSON, and what breaks while it is read."""

from __future__ import annotations

import http.client
import json
from typing import Any, Callable, Iterator

CHUNK_BYTES = 1024 * 1024


class Answer:
    """A response that hands its connection back when it was read to its end."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        *,
        give_back: Callable[[http.client.HTTPConnection], None],
        broken: Callable[[BaseException], Exception],
    ) -> None:
        response = connection.getresponse()
        self.status = response.status
        self._give_back = give_back
        self._broken = broken
        self._connection = connection
        self._response = response

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._response.isclosed() and not self._response.will_close:
            self._give_back(self._connection)
        else:
            self._connection.close()
        self._response.close()

    def chunks(self) -> Iterator[bytes]:
        length = self._response.length
        read = 0
        while True:
            chunk = self._guarded(lambda: self._response.read(CHUNK_BYTES))
            if not chunk:
                break
            read += len(chunk)
            yield chunk
        if length is not None and read < length:
            raise self._broken(http.client.IncompleteRead(b"", length - read))

    def lines(self) -> Iterator[bytes]:
        while True:
            line = self._guarded(self._response.readline)
            if not line:
                return
            yield line

    def json(self) -> Any:
        text = b"".join(self.chunks())
        try:
            return json.loads(text)
        except ValueError:
            return None  # Not JSON, so not ours; the caller reports it with the status.

    def _guarded(self, read: Callable[[], bytes]) -> bytes:
        try:
            return read()
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from None
