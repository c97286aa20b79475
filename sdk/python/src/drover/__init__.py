"""Drover for Python: submit jobs, follow logs, collect results, write checkpoints and metrics."""

from . import checkpoint
from .calls import Call, CallMap
from .client import Client
from .errors import ConnectionFailed, DroverError, JobFailed, RemoteTraceback, WaitTimeout
from .executor import Executor, JobFuture
from .fleet import WorkerView
from .http import VERSION as __version__
from .job import Job, ResultFile
from .logs import LogRecord
from .metrics import log_metrics
from .options import JobOptions
from .views import AttemptView, EventView, JobSpec, JobView, TaskView, WhyView

__all__ = [
    "AttemptView",
    "Call",
    "CallMap",
    "Client",
    "ConnectionFailed",
    "DroverError",
    "EventView",
    "Executor",
    "Job",
    "JobFailed",
    "JobFuture",
    "JobOptions",
    "JobSpec",
    "JobView",
    "LogRecord",
    "RemoteTraceback",
    "ResultFile",
    "TaskView",
    "WaitTimeout",
    "WhyView",
    "WorkerView",
    "__version__",
    "checkpoint",
    "log_metrics",
]
