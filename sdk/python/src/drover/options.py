"""The keyword arguments of a submission, and how they become a specification."""

from __future__ import annotations

import difflib
from os import PathLike
from typing import Any, Dict, Iterable, List, Mapping, Sequence, TypedDict, Union

from .errors import DroverError
from .units import Amount, Duration, cpu_millis, duration_ms, gpu_request, memory_bytes
from .views import (
    After,
    CheckpointSpec,
    Constraint,
    JobSpec,
    NotifyRule,
    ResourceRequest,
    SecretSpec,
)

# A URI as it is; a path or bytes are uploaded.
InputSource = Union[str, "PathLike[str]", bytes]
Command = Union[str, Sequence[str]]


class JobOptions(TypedDict, total=False):
    """All may be left out. Names and meanings are those of `drover run`."""

    name: str
    env: Mapping[str, str]
    # An existing directory on the worker.
    workdir: str
    # 4, 0.5 or "500m"; 1 by default.
    cpus: Amount
    # "64G", or bytes.
    memory: Amount
    # 1, 0.5, "A100:2" or "80GB:1".
    gpus: Amount
    ports: int
    # How many tasks, or their indices.
    array: Union[int, Iterable[int]]
    # At most so many tasks of an array at once.
    at_once: int
    # So many tasks that start together.
    gang: int
    pool: str
    # production, interactive or batch.
    priority: str
    constraints: Sequence[Constraint]
    spread: bool
    exclusive: bool
    anti_affinity: str
    locality: str
    spot: bool
    # normal or restricted.
    trust: str
    # Ids, jobs, or {"job": ID, "when": "failed"}.
    after: Sequence[Any]
    # In whole units of the server's currency.
    max_cost: float
    # How many failures are borne before the task fails for good.
    retries: int
    # Seconds, "1h30m" or a timedelta.
    time: Duration
    start_within: Duration
    # Between TERM and KILL.
    grace: Duration
    labels: Mapping[str, str]
    # Name -> URI, path or bytes; at $DROVER_INPUTS/NAME in the job.
    inputs: Mapping[str, InputSource]
    # A container image.
    image: str
    # Environment modules to load.
    modules: Sequence[str]
    # A lock file of the code; "auto" looks for one.
    lock: str
    # True, or parts of the API's checkpoint: {"everyMs": 600_000}.
    checkpoint: Union[bool, CheckpointSpec]
    # Names, or {"name": "hf", "as": "file"}.
    secrets: Sequence[Union[str, SecretSpec]]
    # Patterns below the working directory that are kept with the result.
    outputs: Sequence[str]
    # A failed attempt keeps its worker and directory so long.
    keep_on_failure: Duration
    # Who is told: names of channels, or {"to": "team", "on": ["failed"]}.
    notify: Sequence[Union[str, NotifyRule]]
    # When a job of this name lives: allow, error, keep or replace.
    name_taken: str
    # It gets a token of its own in DROVER_TOKEN, with which it can submit jobs.
    may_submit: bool
    # Goes on when the job that submitted it has ended.
    outlive_parent: bool
    # Fields of the API's own specification; they win over all others here.
    spec: JobSpec


_PLACEMENT = {
    "constraints": "constraints",
    "exclusive": "exclusive",
    "anti_affinity": "antiAffinity",
    "locality": "locality",
    "spot": "interruptible",
    "trust": "trust",
}
_ENVIRONMENT = {"image": "image", "modules": "modules", "lock": "lock"}
_RULES = {
    "name_taken": "nameTaken",
    "may_submit": "maySubmit",
    "outlive_parent": "outliveParent",
    "outputs": "outputs",
}
_DURATIONS = {"time": "timeLimitMs", "start_within": "startWithinMs", "grace": "graceMs"}


def build_spec(command: Command, options: Mapping[str, Any]) -> JobSpec:
    """Everything but `inputs`, which may have to be uploaded first."""
    _refuse_unknown(options)
    spec: Dict[str, Any] = {"command": _words(command)}
    for name in ("name", "workdir", "pool", "priority", "retries"):
        if name in options:
            spec[name] = options[name]
    for name in ("env", "labels"):
        if name in options:
            spec[name] = {key: str(value) for key, value in options[name].items()}
    for name, key in _DURATIONS.items():
        if name in options:
            spec[key] = duration_ms(options[name], name)
    if "max_cost" in options:
        spec["maxCostMicros"] = round(options["max_cost"] * 1_000_000)
    if "after" in options:
        spec["after"] = [_after(entry) for entry in options["after"]]
    if options.get("checkpoint") not in (None, False):
        spec["checkpoint"] = {} if options["checkpoint"] is True else options["checkpoint"]
    if "secrets" in options:
        spec["secrets"] = [_named(entry, "name") for entry in options["secrets"]]
    for key, part in (
        ("resources", _resources(options)),
        ("placement", _placement(options)),
        ("shape", _shape(options)),
        ("environment", _renamed(options, _ENVIRONMENT)),
        ("rules", _rules(options)),
    ):
        if part:
            spec[key] = part
    spec.update(options.get("spec") or {})
    return spec  # type: ignore[return-value]


def _words(command: Command) -> List[str]:
    """A text is a line of the shell; a sequence is the program and its arguments."""
    if isinstance(command, str):
        return ["sh", "-c", command]
    return [str(word) for word in command]


def _resources(options: Mapping[str, Any]) -> ResourceRequest:
    resources: ResourceRequest = {}
    if "cpus" in options:
        resources["cpuMillis"] = cpu_millis(options["cpus"])
    if "memory" in options:
        resources["memoryBytes"] = memory_bytes(options["memory"])
    if "gpus" in options:
        resources["device"] = gpu_request(options["gpus"])
    if "ports" in options:
        resources["ports"] = options["ports"]
    return resources


def _placement(options: Mapping[str, Any]) -> Dict[str, Any]:
    placement = _renamed(options, _PLACEMENT)
    if options.get("spread"):
        placement["arrangement"] = "spread"
    return placement


def _rules(options: Mapping[str, Any]) -> Dict[str, Any]:
    rules = _renamed(options, _RULES)
    if "keep_on_failure" in options:
        rules["keepOnFailureMs"] = duration_ms(options["keep_on_failure"], "keep_on_failure")
    if "notify" in options:
        rules["notify"] = [_named(entry, "to") for entry in options["notify"]]
    return rules


def _renamed(options: Mapping[str, Any], keys: Mapping[str, str]) -> Dict[str, Any]:
    return {
        key: list(options[name]) if isinstance(options[name], (tuple, set)) else options[name]
        for name, key in keys.items()
        if name in options
    }


def _named(entry: Any, key: str) -> Dict[str, Any]:
    return {key: entry} if isinstance(entry, str) else dict(entry)


def _shape(options: Mapping[str, Any]) -> Dict[str, Any]:
    array, gang = options.get("array"), options.get("gang")
    if array is not None and gang is not None:
        raise DroverError("USAGE", "a job is an array or a gang, not both", hint="leave one out")
    if gang is not None:
        return {"kind": "gang", "size": gang}
    if array is None:
        if "at_once" in options:
            hint = "give array=N as well"
            raise DroverError("USAGE", "at_once limits the tasks of an array", hint=hint)
        return {}
    indices = list(range(array)) if isinstance(array, int) else [int(index) for index in array]
    return {"kind": "array", "indices": indices, "limit": options.get("at_once", 0)}


def _after(entry: Any) -> After:
    if isinstance(entry, str):
        return {"job": entry}
    if isinstance(entry, Mapping):
        return {"job": str(entry["job"]), "when": str(entry.get("when", "ok"))}
    return {"job": str(entry.id)}


def _refuse_unknown(options: Mapping[str, Any]) -> None:
    known = list(JobOptions.__annotations__)
    for name in options:
        if name in known:
            continue
        close = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
        raise DroverError("USAGE", f"a job has no option {name!r}", hint=hint)
