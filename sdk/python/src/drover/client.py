"""The client: finds the server, submits jobs, functions and sweeps, lists what is there."""

from __future__ import annotations

import os
import re
import shlex
import uuid
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    TypeVar,
    cast,
    overload,
)
from urllib.parse import quote

from .blobs import Blobs
from .calls import Call, CallMap
from .connection import find_connection
from .fleet import WorkerView
from .functions import Arguments, command_of, name_of, pack_call, pack_runtime
from .http import Query, Transport
from .job import Job
from .options import Command, InputSource, JobOptions, build_spec
from .remote import CALL_INPUT, RUNTIME_INPUT
from .views import InputSpec, JobSpec, JobView, WhyView

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

T = TypeVar("T")
# The server's limit of one call.
BATCH_JOBS = 1000


class Client:
    """Without arguments it speaks to the server that the command line would."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, ca_file: str | None = None
    ) -> None:
        self.transport = Transport(find_connection(url, token, ca_file=ca_file))
        self.blobs = Blobs(self.transport)

    @property
    def url(self) -> str:
        return self.transport.url

    def __repr__(self) -> str:
        return f"<drover.Client {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def submit(
        self,
        command: Command,
        *,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Job:
        """A text is a line of the shell, a sequence the program and its arguments.

        Sent again after a broken connection under the same key, so that one job comes of it. Give
        a key of your own to make that hold for two runs of your program too.
        """
        return Job(self, self._submit_spec(self._spec(command, options), idempotency_key))

    def call(
        self,
        function: Callable[..., T],
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        python: str = "python3",
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> Call[T]:
        """Runs a function in a job; `result()` is what it returns or raises."""
        spec = self._call_spec(function, [(tuple(args), dict(kwargs or {}))], python, options)
        return Call(self, self._submit_spec(spec, idempotency_key))

    @overload
    def map(
        self,
        work: Command,
        params: Iterable[Any],
        *,
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> list[Job]: ...

    @overload
    def map(
        self,
        work: Callable[..., T],
        params: Iterable[Any],
        *,
        python: str = "python3",
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> CallMap[T]: ...

    def map(
        self,
        work: Command | Callable[..., T],
        params: Iterable[Any],
        *,
        python: str = "python3",
        idempotency_key: str | None = None,
        **options: Unpack[JobOptions],
    ) -> list[Job] | CallMap[T]:
        """One task or job for each of `params`.

        A function becomes one array: a dict is its keyword arguments, a tuple its arguments,
        anything else its one argument. A command becomes one job each, with `{name}` replaced.
        """
        if callable(work):
            return self._map_calls(work, list(params), python, idempotency_key, options)
        key = idempotency_key or str(uuid.uuid4())
        specs = [self._spec(fill(work, entry), options) for entry in params]
        jobs: list[Job] = []
        for first in range(0, len(specs), BATCH_JOBS):
            part = {"jobs": specs[first : first + BATCH_JOBS]}
            headers = {"idempotency-key": f"{key}-{first // BATCH_JOBS}"}
            answer = self.transport.call("POST", "/v1/jobs/batch", body=part, headers=headers)
            jobs += [Job(self, id) for id in answer.data["ids"]]
        return jobs

    def job(self, id: str) -> Job:
        """A handle; the server is asked when it is used."""
        return Job(self, id)

    def jobs(
        self, *, state: str | None = None, name: str | None = None, owner: str | None = None
    ) -> Iterator[JobView]:
        """Newest first, page by page as they are read."""
        query = {"state": state, "name": name, "owner": owner}
        return cast(Iterator[JobView], self.pages("/v1/jobs", query))

    def cancel(self, id: str) -> JobView:
        return self.job(id).cancel()

    def why(self, id: str) -> WhyView:
        return self.job(id).why()

    def workers(self) -> Iterator[WorkerView]:
        return cast(Iterator[WorkerView], self.pages("/v1/workers"))

    def cluster(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.transport.call("GET", "/v1/cluster").data)

    def upload(self, source: bytes | os.PathLike[str]) -> str:
        """A URI for `inputs`; what the server has already is not sent again by this client."""
        return f"blob:{self.blobs.put(source)}"

    def pages(self, path: str, query: Query | None = None) -> Iterator[Any]:
        cursor: str | None = None
        while True:
            page: Query = {**(query or {}), "cursor": cursor, "limit": 500}
            data, meta = self.transport.call("GET", path, query=page)
            yield from data
            cursor = meta.get("nextCursor")
            if cursor is None:
                return

    def job_path(self, id: str) -> str:
        return f"/v1/jobs/{quote(id, safe='')}"

    def _map_calls(
        self,
        function: Callable[..., T],
        params: list[Any],
        python: str,
        key: str | None,
        options: JobOptions,
    ) -> CallMap[T]:
        if not params:
            return CallMap(self, "", 0)
        shaped: JobOptions = {**options, "array": len(params)}
        spec = self._call_spec(function, [_arguments(entry) for entry in params], python, shaped)
        return CallMap(self, self._submit_spec(spec, key), len(params))

    def _call_spec(
        self,
        function: Callable[..., Any],
        calls: list[Arguments],
        python: str,
        options: JobOptions,
    ) -> JobSpec:
        content = pack_call(function, calls)
        inputs: dict[str, InputSource] = {
            **options.get("inputs", {}),
            RUNTIME_INPUT: pack_runtime(),
            CALL_INPUT: content,
        }
        named: JobOptions = {"name": name_of(function)[:200], **options, "inputs": inputs}
        return self._spec(command_of(python), named)

    def _spec(self, command: Command, options: JobOptions) -> JobSpec:
        spec = build_spec(command, options)
        given = options.get("inputs")
        if given:
            inputs: list[InputSpec] = [
                {"name": name, "uri": source if isinstance(source, str) else self.upload(source)}
                for name, source in given.items()
            ]
            spec["inputs"] = inputs + spec.get("inputs", [])
        return spec

    def _submit_spec(self, spec: JobSpec, key: str | None) -> str:
        headers = {"idempotency-key": key or str(uuid.uuid4())}
        return str(self.transport.call("POST", "/v1/jobs", body=spec, headers=headers).data["id"])


def fill(command: Command, values: Any) -> Command:
    """`{name}` by its value; other braces stay. In a line of the shell values are quoted."""
    if not isinstance(values, Mapping):
        values = {"": values}
    if isinstance(command, str):
        return _replaced(command, {name: shlex.quote(str(v)) for name, v in values.items()})
    return [_replaced(word, {name: str(v) for name, v in values.items()}) for word in command]


def _replaced(text: str, values: Mapping[str, str]) -> str:
    pattern = "|".join(re.escape(f"{{{name}}}") for name in values)
    if not pattern:
        return text
    return re.sub(pattern, lambda match: values[match[0][1:-1]], text)


def _arguments(entry: Any) -> Arguments:
    if isinstance(entry, Mapping):
        return (), dict(entry)
    return (entry if isinstance(entry, tuple) else (entry,)), {}
