"""Jobs that are calls of functions: one, or one for each of many arguments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Generic, Iterator, TypeVar, cast

from .errors import DroverError, JobFailed, WaitTimeout
from .functions import outcome_in, read_outcome
from .job import ENDED, Job
from .views import JobView, TaskView

if TYPE_CHECKING:
    from .client import Client

T = TypeVar("T")
# How often the tasks of an array are looked at.
POLL_S = 0.25
POLL_MOST_S = 2.0


class Call(Job, Generic[T]):
    def result(self, timeout: float | None = None) -> T:
        """What the function returned; what it raised is raised here, with its traceback."""
        return cast(T, outcome_of(self, self.wait(timeout)))


class CallMap(Job, Generic[T]):
    """An array job: task i is the call with the i-th arguments."""

    def __init__(self, client: Client, id: str, size: int) -> None:
        super().__init__(client, id)
        self._size = size

    def __len__(self) -> int:
        return self._size

    def result(self, timeout: float | None = None) -> list[T]:
        return list(self.results(timeout))

    def results(self, timeout: float | None = None) -> Iterator[T]:
        """In order, each as soon as it is there; the first that failed raises."""
        give_up_at = None if timeout is None else time.monotonic() + timeout
        ended: dict[int, TaskView] = {}
        for index in range(self._size):
            pause = POLL_S
            while index not in ended:
                ended = {t["index"]: t for t in self.tasks() if t["state"] in ENDED}
                if index in ended:
                    break
                if give_up_at is not None and time.monotonic() >= give_up_at:
                    detail = f"task {index} of {self.id} has not ended after {timeout} s"
                    raise WaitTimeout("TIMEOUT", detail, hint=f"drover why {self.id}")
                self.linger(pause)
                pause = min(POLL_MOST_S, pause * 1.5)
            yield cast(T, outcome_of(self, ended[index], index))


def outcome_of(job: Job, view: JobView | TaskView, task: int | None = None) -> Any:
    """A failed job has an outcome too, unless it was ended before it could leave one."""
    try:
        file = outcome_in(job.files(task or 0))
    except DroverError as error:
        if view["state"] == "SUCCEEDED" or error.status not in (404, 409):
            raise
        file = None
    if file is not None and view["state"] in ("SUCCEEDED", "FAILED"):
        return read_outcome(file.read())
    failed: dict[str, Any] = {**view, "id": job.id}
    raise JobFailed(failed, job.last_lines(task))
