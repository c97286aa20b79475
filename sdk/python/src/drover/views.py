"""What goes over the wire, key for key: the specification of a job and the server's answers."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union


class DeviceRequest(TypedDict, total=False):
    kind: str
    count: int
    # Thousandths of one device.
    share: int
    models: List[str]
    memoryBytes: int


class ResourceRequest(TypedDict, total=False):
    cpuMillis: int
    memoryBytes: int
    device: Optional[DeviceRequest]
    ports: int


class Shape(TypedDict, total=False):
    # single, array or gang
    kind: str
    indices: List[int]
    limit: int
    size: int


class Constraint(TypedDict, total=False):
    attribute: str
    # EQ, NE, IN, GT, LT or EXISTS
    operator: str
    values: List[str]
    preferred: bool


class Placement(TypedDict, total=False):
    constraints: List[Constraint]
    # pack or spread
    arrangement: str
    exclusive: bool
    antiAffinity: str
    locality: str
    interruptible: bool
    # normal or restricted
    trust: str


class After(TypedDict, total=False):
    job: str
    # ok, failed or any
    when: str


class CodeSpec(TypedDict, total=False):
    bundle: str
    folder: str
    commit: str
    diff: str


class InputSpec(TypedDict, total=False):
    name: str
    # blob:HASH, data:NAME, file:///PATH, s3://, http(s)://, hf://, pool:///PATH
    uri: str
    hash: str


class EnvironmentSpec(TypedDict, total=False):
    image: str
    shmBytes: int
    registrySecret: str
    modules: List[str]
    lock: str


class CheckpointSpec(TypedDict, total=False):
    dir: str
    everyMs: int
    signal: str
    beforeDeadlineMs: int
    keep: int


# `as` is a word of Python's own, so this one cannot be written as a class.
SecretSpec = TypedDict("SecretSpec", {"name": str, "as": str, "target": str}, total=False)


class IdleRule(TypedDict, total=False):
    belowPercent: float
    forMs: int
    # warn or stop
    action: str


class NotifyRule(TypedDict, total=False):
    to: str
    # of started, interrupted, failed, done, idle
    on: List[str]


class JobRules(TypedDict, total=False):
    keepOnFailureMs: int
    idle: Optional[IdleRule]
    notify: List[NotifyRule]
    # allow, error, keep or replace
    nameTaken: str
    maySubmit: bool
    outliveParent: bool
    outputs: List[str]
    # 0: none.
    requeueExitCode: int


class JobSpec(TypedDict, total=False):
    """The body of POST /v1/jobs; only `command` is needed."""

    name: str
    command: List[str]
    env: Dict[str, str]
    workdir: str
    resources: ResourceRequest
    shape: Shape
    pool: str
    # production, interactive or batch
    priority: str
    placement: Placement
    after: List[After]
    maxCostMicros: int
    retries: int
    maxInterruptions: int
    timeLimitMs: int
    startWithinMs: int
    graceMs: int
    attemptLeaseMs: int
    labels: Dict[str, str]
    code: CodeSpec
    inputs: List[InputSpec]
    environment: EnvironmentSpec
    checkpoint: CheckpointSpec
    secrets: List[SecretSpec]
    rules: JobRules
    annotations: Dict[str, str]


class TaskCounts(TypedDict):
    total: int
    pending: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    unschedulable: int


class _JobView(TypedDict):
    id: str
    name: str
    state: str
    reason: str
    kind: str
    cluster: str
    tenant: str
    owner: str
    submittingPrincipal: str
    priority: str
    pool: str
    createdAtMs: int
    startedAtMs: Optional[int]
    endedAtMs: Optional[int]
    cancelRequestedAtMs: Optional[int]
    exitCode: Optional[int]
    tasks: TaskCounts


class JobView(_JobView, total=False):
    # Left out of lists.
    spec: JobSpec


class TaskView(TypedDict):
    id: str
    job: str
    index: int
    state: str
    reason: str
    attempts: int
    failures: int
    interruptions: int
    exitCode: Optional[int]
    worker: Optional[str]
    createdAtMs: int
    startedAtMs: Optional[int]
    endedAtMs: Optional[int]


class AttemptView(TypedDict):
    uid: str
    task: str
    n: int
    round: int
    worker: str
    state: str
    cause: Optional[str]
    exitCode: Optional[int]
    signal: Optional[str]
    message: str
    assignedAtMs: int
    startedAtMs: Optional[int]
    endedAtMs: Optional[int]
    # The blob that lists what it left.
    result: Optional[str]
    resultBytes: Optional[int]


class CheckpointView(TypedDict):
    task: str
    n: int
    attempt: str
    # The blob that lists its files.
    manifest: str
    bytes: int
    files: int
    reason: str
    createdAtMs: int


class MetricPoint(TypedDict):
    atMs: float
    count: int
    min: float
    mean: float
    max: float
    last: float
    step: Optional[float]


class MetricSeries(MetricPoint):
    """Of one task and one name, over all attempts; `points` are it over time."""

    task: str
    index: int
    name: str
    points: List[MetricPoint]


class EventView(TypedDict):
    epoch: int
    seq: int
    atMs: int
    kind: str
    job: Optional[str]
    task: Optional[str]
    attempt: Optional[str]
    worker: Optional[str]
    data: Dict[str, Union[str, int, float, bool, None]]


class WhyWorkers(TypedDict):
    reason: str
    count: int
    text: str


class WhyView(TypedDict):
    job: str
    state: str
    code: str
    sentence: str
    workers: List[WhyWorkers]
    position: Optional[int]
    ahead: Optional[int]
    aheadSample: List[Dict[str, str]]
    rule: str
    quota: Optional[Dict[str, Any]]
    predictedStartAtMs: Optional[int]
    suggestions: List[str]
    tasks: Dict[str, int]
    atMs: int
