"""Reads server-sent events from lines of bytes, as the HTML standard defines them."""

from __future__ import annotations

from typing import Iterable, Iterator, NamedTuple


class SseEvent(NamedTuple):
    event: str
    data: str
    # The last id seen on the stream, empty before the first.
    id: str


def read_events(lines: Iterable[bytes]) -> Iterator[SseEvent]:
    """An event cut off by the end of the stream is dropped: its id was never acknowledged."""
    event, data, last_id = "", list[str](), ""
    for raw in lines:
        if not raw.endswith(b"\n"):
            return
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line == "":
            if data:
                yield SseEvent(event or "message", "\n".join(data), last_id)
            event, data = "", []
            continue
        field, _, value = line.partition(":")
        if value.startswith(" "):
            value = value[1:]
        if field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value
