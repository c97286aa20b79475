"""A job's output: what is there, page by page, or all of it as it comes, over broken streams."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from .errors import ConnectionFailed, DroverError, from_problem
from .http import RETRY_FIRST_S, Query, Transport, may_pass, retry_pause
from .sse import SseEvent, read_events

# How long a broken stream is opened again: a controller may be away for minutes.
FOLLOW_RETRY_WINDOW_S = 600.0
# How long the output of an ended job may be silent before what is there is all.
QUIET_LIMIT_S = 5.0


@dataclass(frozen=True)
class LogRecord:
    """A run of output, whole lines where possible."""

    # Grows by one writer's order; the id to resume by.
    seq: int
    # The task's index.
    task: int
    attempt: int
    # stdout or stderr
    stream: str
    at_ms: int
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class LogQuery:
    task: int | None = None
    tail: int | None = None
    since_ms: int | None = None

    def parameters(self, after: int) -> dict[str, str | int | bool | None]:
        # Where to go on from lies behind the tail that was wanted at first.
        tail = None if after > 0 else self.tail
        return {"task": self.task, "since": self.since_ms, "tail": tail}


def read_logs(
    transport: Transport, path: str, query: LogQuery, *, to_its_end: bool = False
) -> Iterator[LogRecord]:
    """What is there now. The last bytes may come in after a job's end: `to_its_end` awaits them."""
    after = 0
    quiet_since = time.monotonic()
    while True:
        page: Query = {**query.parameters(after), "after": after or None}
        data, meta = transport.call("GET", path, query=page)
        for record in data:
            yield _record(record)
        reached = int(meta.get("next", after))
        if meta.get("complete"):
            return
        # An empty page that moved on held only what was not asked for.
        if reached > after:
            after, quiet_since = reached, time.monotonic()
        elif to_its_end and time.monotonic() - quiet_since < QUIET_LIMIT_S:
            time.sleep(RETRY_FIRST_S)
        else:
            return


def follow_logs(transport: Transport, path: str, query: LogQuery) -> Iterator[LogRecord]:
    """Every record once and in order, over however many connections that takes, until the end."""
    after, failures, connected = 0, 0, False
    broken_at: float | None = None
    while True:
        try:
            for event in _stream(transport, path, query, after):
                failures, broken_at, connected = 0, None, True
                if event.event == "end":
                    return
                if event.event == "problem":
                    problem = json.loads(event.data)
                    raise from_problem(int(problem.get("status", 500)), problem)
                if event.event != "log":
                    continue
                record = _record(json.loads(event.data))
                if record.seq > after:
                    after = record.seq
                    yield record
        except DroverError as error:
            broken_at = broken_at or time.monotonic()
            late = time.monotonic() - broken_at > FOLLOW_RETRY_WINDOW_S
            # Refused at the first try: nobody is there. Later it is a restart: go on.
            nobody = not connected and isinstance(error, ConnectionFailed) and error.refused
            if late or nobody or not may_pass(error):
                raise
        time.sleep(retry_pause(failures))
        failures += 1


def _stream(transport: Transport, path: str, query: LogQuery, after: int) -> Iterator[SseEvent]:
    headers = {"accept": "text/event-stream"}
    if after > 0:
        headers["last-event-id"] = str(after)
    parameters: Query = {**query.parameters(after), "follow": True}
    with transport.stream(path, parameters, headers) as answer:
        yield from read_events(answer.lines())


def _record(entry: Mapping[str, Any]) -> LogRecord:
    if "text" in entry:
        data = str(entry["text"]).encode("utf-8", "surrogatepass")
    else:
        data = base64.b64decode(entry["base64"])
    return LogRecord(
        seq=entry["seq"],
        task=entry["index"],
        attempt=entry["attempt"],
        stream=entry["stream"],
        at_ms=entry["atMs"],
        data=data,
    )
