"""concurrent.futures on Drover: each call is a job, `map` is one array."""

from __future__ import annotations

import secrets
import threading
import time
from concurrent.futures import Executor as BaseExecutor
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, TypeVar

from .calls import Call
from .client import Client
from .errors import DroverError, RemoteTraceback
from .functions import name_of
from .http import RETRY_MOST_S, may_pass
from .job import ENDED
from .options import JobOptions

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, Unpack

    P = ParamSpec("P")

T = TypeVar("T")
# How long the watcher waits for the oldest call before it looks at all of them.
LOOK_S = 0.5


class JobFuture(Future[T]):
    """Can be cancelled while it runs: the job is stopped."""

    def __init__(self, call: Call[T]) -> None:
        super().__init__()
        self.job = call
        self.remote_running = False
        # Held over a move and its notice; callbacks run inside it and may look or cancel.
        self._moving = threading.RLock()

    def cancel(self) -> bool:
        if not self.done():
            self.job.cancel()
        with self._moving:
            if self.done() or not super().cancel():
                return self.cancelled()
            self.set_running_or_notify_cancel()
        return True

    def running(self) -> bool:
        return self.remote_running and not self.done()

    def settle(self, value: Any, error: BaseException | None) -> None:
        """The end of its job; a future that was cancelled meanwhile stays so."""
        with self._moving:
            if self.done():
                return
            self.set_running_or_notify_cancel()
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)


class Executor(BaseExecutor):
    """`Executor(gpus=1)`: the options of `Client.submit` hold for every call."""

    def __init__(
        self,
        client: Client | None = None,
        *,
        python: str = "python3",
        **options: Unpack[JobOptions],
    ) -> None:
        self._client = client or Client()
        self._python = python
        # One name for all: what of them has not ended is one question.
        self._name = options.get("name") or f"executor-{secrets.token_hex(4)}"
        self._options: JobOptions = {**options, "name": self._name}
        self._lock = threading.Condition()
        self._open: dict[str, JobFuture[Any]] = {}
        self._watcher: threading.Thread | None = None
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Returns when the server has accepted the job; a refused one raises here."""
        self._refuse_closed()
        call = self._client.call(fn, args, kwargs, python=self._python, **self._options)
        future: JobFuture[T] = JobFuture(call)
        with self._lock:
            if self._closed:  # Meanwhile, by another thread: nobody would watch it.
                call.cancel()
            self._refuse_closed()
            self._open[call.id] = future
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True)
                self._watcher.start()
            self._lock.notify_all()
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """One array job. The iterator that is left early cancels what is still to do."""
        del chunksize, buffersize  # A task is one call; the server holds the queue.
        self._refuse_closed()
        calls = list(zip(*iterables))
        label = f"{self._name} {name_of(fn)}"[:200]
        options: JobOptions = {**self._options, "name": label}
        array = self._client.map(fn, calls, python=self._python, **options)

        def results() -> Iterator[T]:
            complete = False
            try:
                yield from array.results(timeout)
                complete = True
            finally:
                if not complete:
                    array.cancel()

        return results()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            self._closed = True
            left = list(self._open.values())
            watcher = self._watcher
            self._lock.notify_all()
        if cancel_futures:
            for future in left:
                future.cancel()
        if wait and watcher is not None:
            watcher.join()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")

    def _watch(self) -> None:
        while True:
            with self._lock:
                while not self._open and not self._closed:
                    self._lock.wait()
                if not self._open:
                    return
                waiting = dict(self._open)
            try:
                self._look(waiting)
            except Exception as error:
                if isinstance(error, DroverError) and may_pass(error):
                    time.sleep(RETRY_MOST_S)
                else:
                    self._fail(waiting, error)

    def _look(self, waiting: dict[str, JobFuture[Any]]) -> None:
        """Two questions whatever the number of calls, then one for each that seems to be over."""
        next(iter(waiting.values())).job.linger(LOOK_S)
        pending = {job["id"] for job in self._client.jobs(name=self._name, state="PENDING")}
        running = {job["id"] for job in self._client.jobs(name=self._name, state="RUNNING")}
        for id, future in waiting.items():
            future.remote_running = id in running
            if future.done():
                self._forget(id)
            # Between the two questions a job may have moved from one answer to the other.
            elif id not in pending and id not in running and future.job.refresh()["state"] in ENDED:
                self._settle(id, future)

    def _settle(self, id: str, future: JobFuture[Any]) -> None:
        value, error = None, None
        try:
            value = future.job.result()
        except Exception as raised:  # The function's own exceptions come this way too.
            there = isinstance(raised.__cause__, RemoteTraceback)
            if not there and isinstance(raised, DroverError) and may_pass(raised):
                raise  # Only the connection: the result can be had later.
            error = raised
        self._forget(id)
        future.settle(value, error)

    def _forget(self, id: str) -> None:
        with self._lock:
            self._open.pop(id, None)

    def _fail(self, waiting: dict[str, JobFuture[Any]], error: Exception) -> None:
        """The server tells no more (a revoked token and the like): nobody waits for ever."""
        for id, future in waiting.items():
            self._forget(id)
            future.settle(None, error)
