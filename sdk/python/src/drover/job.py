"""A job at the server: wait for it, read its output and results, ask why it waits, cancel it."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, cast

from .errors import DroverError, JobFailed, WaitTimeout
from .logs import LogQuery, LogRecord, follow_logs, read_logs
from .views import AttemptView, CheckpointView, EventView, JobView, MetricSeries, TaskView, WhyView

if TYPE_CHECKING:
    from .client import Client

ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "UNSCHEDULABLE")
# The longest wait one call asks for; the server's own limit is a minute.
WAIT_CALL_S = 30.0
# Lines of output that an error shows.
FAILURE_LINES = 20


@dataclass(frozen=True)
class ResultFile:
    """A file that a task left in $DROVER_RESULT_DIR or named as an output."""

    path: str
    size: int
    hash: str
    executable: bool
    _client: Client

    def read(self) -> bytes:
        return self._client.blobs.get(self.hash)

    def save(self, target: Path | str) -> None:
        self._client.blobs.save(self.hash, Path(target), mode=0o755 if self.executable else 0o644)


class Job:
    def __init__(self, client: Client, id: str, view: JobView | None = None) -> None:
        self.id = id
        self._client = client
        self._view = view

    def __repr__(self) -> str:
        return f"<drover.{type(self).__name__} {self.id}>"

    def refresh(self) -> JobView:
        """The job as it is now."""
        self._view = cast(JobView, self._get("").data)
        return self._view

    @property
    def state(self) -> str:
        """PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED or UNSCHEDULABLE; asked for each time."""
        if self._view is not None and self._view["state"] in ENDED:
            return self._view["state"]
        return self.refresh()["state"]

    def wait(self, timeout: float | None = None) -> JobView:
        """Returns when the job has ended, however it did; WaitTimeout after `timeout` seconds."""
        if self._view is not None and self._view["state"] in ENDED:
            return self._view
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while True:
            left = WAIT_CALL_S if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            view = self.linger(min(left, WAIT_CALL_S))
            if view["state"] in ENDED:
                return view
            if give_up_at is not None and time.monotonic() >= give_up_at:
                raise WaitTimeout(
                    "TIMEOUT",
                    f"job {self.id} is {view['state']} after {timeout} s",
                    hint=f"it goes on; `drover why {self.id}` says what holds it",
                )

    def linger(self, seconds: float) -> JobView:
        """The job when it has ended, or as it is after so long (a minute at most)."""
        answer = self._get("/wait", wait_s=seconds, waitMs=int(seconds * 1000))
        self._view = cast(JobView, answer.data)
        return self._view

    def check(self, timeout: float | None = None) -> JobView:
        """Waits, and raises JobFailed unless the job SUCCEEDED."""
        view = self.wait(timeout)
        if view["state"] != "SUCCEEDED":
            raise JobFailed(cast(Any, view), self.last_lines())
        return view

    def cancel(self) -> JobView:
        """Returns when it is recorded; running tasks get TERM, and KILL after their grace time."""
        answer = self._client.transport.call("POST", f"{self._path}/cancel")
        self._view = cast(JobView, answer.data)
        return self._view

    def why(self) -> WhyView:
        return cast(WhyView, self._get("/why").data)

    def logs(
        self,
        follow: bool = False,
        *,
        task: int | None = None,
        tail: int | None = None,
        since_ms: int | None = None,
    ) -> Iterator[LogRecord]:
        """What is there, of an ended job all; with `follow` also what comes until it ends."""
        query = LogQuery(task=task, tail=tail, since_ms=since_ms)
        transport, path = self._client.transport, f"{self._path}/logs"
        if follow:
            return follow_logs(transport, path, query)
        return read_logs(transport, path, query, to_its_end=self.state in ENDED)

    def print_logs(self, follow: bool = True, *, task: int | None = None) -> None:
        """The job's stdout and stderr on ours."""
        for record in self.logs(follow, task=task):
            target = sys.stderr if record.stream == "stderr" else sys.stdout
            target.write(record.text)
            target.flush()

    def output(self, *, task: int | None = None, stream: str | None = "stdout") -> str:
        """All that was written so far; `stream=None` mixes both."""
        chosen = (r for r in self.logs(task=task) if stream in (None, r.stream))
        return b"".join(record.data for record in chosen).decode("utf-8", "replace")

    def files(self, task: int | None = None) -> list[ResultFile]:
        """What a task left as its result, the first one where none is named.

        A task that left nothing has none, which is a DroverError with the code NOT_FOUND.
        """
        return self._files(self._get("/result", task=task).data)

    def download(self, target: Path | str, task: int | None = None) -> list[Path]:
        """Saves the result's files and links below a folder, which is made."""
        folder = Path(target)
        view = self._get("/result", task=task).data
        for file in self._files(view):
            file.save(below(folder, file.path))
        for link in view["links"]:
            place = below(folder, link["path"])
            below(folder, str(Path(link["path"]).parent / link["target"]))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(link["target"])
        return [folder / entry["path"] for entry in (*view["files"], *view["links"])]

    def result(self, timeout: float | None = None) -> Any:
        """Waits for success, then the files of the result. Calls of functions return a value."""
        self.check(timeout)
        return self.files()

    def metrics(
        self, name: str | None = None, task: int | None = None, max_points: int | None = None
    ) -> list[MetricSeries]:
        """What was measured of the job, and what it logged by `log_metrics`: a series by name."""
        answer = self._get("/metrics", name=name, task=task, maxPoints=max_points)
        return cast("list[MetricSeries]", answer.data)

    def checkpoints(self, task: int | None = None) -> Iterator[CheckpointView]:
        """What its tasks can resume from, oldest first."""
        path = f"{self._path}/checkpoints"
        return cast(Iterator[CheckpointView], self._client.pages(path, {"task": task}))

    def ask_for_checkpoint(self, task: int | None = None) -> list[str]:
        """Asks what runs for one now; the ids of the tasks that were asked."""
        path = f"{self._path}/checkpoints"
        answer = self._client.transport.call("POST", path, query={"task": task})
        return cast("list[str]", answer.data["tasks"])

    def tasks(self) -> Iterator[TaskView]:
        return cast(Iterator[TaskView], self._client.pages(f"{self._path}/tasks"))

    def attempts(self) -> Iterator[AttemptView]:
        return cast(Iterator[AttemptView], self._client.pages(f"{self._path}/attempts"))

    def events(self) -> Iterator[EventView]:
        return cast(Iterator[EventView], self._client.pages(f"{self._path}/events"))

    @property
    def _path(self) -> str:
        return self._client.job_path(self.id)

    def _get(self, part: str, wait_s: float = 0.0, **query: str | int | bool | None) -> Any:
        return self._client.transport.call("GET", self._path + part, query=query, wait_s=wait_s)

    def _files(self, view: Any) -> list[ResultFile]:
        return [
            ResultFile(f["path"], f["size"], f["hash"], f["executable"], self._client)
            for f in view["files"]
        ]

    def last_lines(self, task: int | None = None) -> str:
        """The end of its output, of stderr where there is any: what an error shows."""
        records = list(self.logs(task=task, tail=FAILURE_LINES))
        errors = [record for record in records if record.stream == "stderr"]
        return "".join(record.text for record in errors or records)


def below(folder: Path, name: str) -> Path:
    """A name from another machine must not lead out of the folder."""
    place = Path(os.path.normpath(folder / name))
    if Path(os.path.normpath(folder)) in place.parents:
        return place
    raise DroverError("USAGE", f"{name!r} of the result is no path below {folder}")
