"""A coordinator made of the proto files and grpcio alone, for a gateway of Drover's to front.

What happens to a call is in the name of the job it is about, so that the server needs no memory of
it. Each call is told as a line of JSON on stdout, with the metadata it came with.
Usage: coordinator.py STUBS PORT
"""

import json
import os
import sys
import threading
import time
from concurrent import futures

sys.path.insert(0, sys.argv[1])

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from drover.v1 import coordinator_pb2 as messages
from drover.v1 import coordinator_pb2_grpc as service
from drover.v1 import error_pb2, fleet_pb2, job_pb2

SCOPES = ["jobs:read", "jobs:manage", "fleet:read"]
USERS = {
    "token-of-ada": ("physics", "ada"),
    "token-of-bob": ("chemistry", "bob"),
    "token-of-eve": ("physics", "eve"),
    "token-of-dan": ("chemistry", "dan"),
}
LINES = 12
FLOOD_RECORD = "x" * 32 * 1024


def tell(**fact):
    # In one write: calls run on threads.
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def metadata_of(context):
    return dict(context.invocation_metadata())


def job_of(id, tenant, spec=None):
    kind, _, _ = id.partition("-")
    return job_pb2.Job(
        id=id,
        name=kind,
        state=job_pb2.JOB_STATE_RUNNING,
        cluster="elsewhere",
        tenant=tenant,
        owner="ada",
        priority=job_pb2.PRIORITY_BATCH,
        created_at_ms=1_700_000_000_000,
        tasks=job_pb2.TaskCounts(total=1, running=1),
        spec=spec,
    )


def record(seq, text, stream=job_pb2.LOG_STREAM_STDOUT):
    return job_pb2.LogRecord(
        seq=seq, task="t.0", attempt=1, stream=stream, offset=seq * 10, at_ms=seq, text=text
    )


def fail(context, code, message):
    """With a canary in every place where a server may leave one."""
    debug = error_details_pb2.DebugInfo(
        stack_entries=["CANARY-stack"], detail="CANARY-detail"
    )
    details = any_pb2.Any()
    details.Pack(debug)
    status = status_pb2.Status(code=code.value[0], message=message, details=[details])
    context.set_trailing_metadata((("x-debug", "CANARY-trailer"),))
    context.abort_with_status(rpc_status.to_status(status))


def fail_as_drover(context, code, message, detail):
    packed = any_pb2.Any()
    packed.Pack(detail)
    status = status_pb2.Status(code=code.value[0], message=message, details=[packed])
    context.abort_with_status(rpc_status.to_status(status))


class Coordinator(service.CoordinatorServicer):
    def __init__(self):
        self.jobs = {}
        self.lock = threading.Lock()

    def Authenticate(self, request, context):
        found = USERS.get(request.secret)
        if not found:
            return messages.AuthenticateResponse()
        tenant, user = found
        principal = fleet_pb2.Principal(
            token=f"t-{user}", tenant=tenant, user=user, scopes=SCOPES
        )
        return messages.AuthenticateResponse(principal=principal)

    def Readiness(self, request, context):
        return messages.ReadinessResponse(ready=True)

    def SubmitJob(self, request, context):
        sent = metadata_of(context)
        tell(call="SubmitJob", metadata=sent, command=list(request.spec.command))
        with self.lock:
            id = f"{request.spec.name}-{len(self.jobs)}"
            self.jobs[id] = (sent["x-tenant-id"], request.spec)
        return messages.SubmitJobResponse(id=id)

    def GetJob(self, request, context):
        sent = metadata_of(context)
        tell(call="GetJob", metadata=sent)
        kind, _, rest = request.id.partition("-")
        if kind == "fail":
            code = grpc.StatusCode[rest]
            fail(context, code, f"CANARY-message of {rest}")
        if kind == "raise":
            raise RuntimeError("CANARY-exception")
        if kind == "echo":
            secret = sent["x-api-secret"]
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"you sent me {secret}, odd")
        if kind == "inside":
            detail = error_pb2.ErrorDetail(code="INTERNAL", hint="CANARY-hint")
            fail_as_drover(context, grpc.StatusCode.INTERNAL, "CANARY-message", detail)
        if kind == "lies":
            detail = error_pb2.ErrorDetail(code="NOT_FOUND", hint="CANARY-hint")
            fail_as_drover(context, grpc.StatusCode.UNKNOWN, "CANARY-message", detail)
        if kind == "never":
            detail = error_pb2.ErrorDetail(code="NEVER_FITS", hint="ask for less")
            fail_as_drover(context, grpc.StatusCode.INVALID_ARGUMENT, "too large", detail)
        with self.lock:
            tenant, spec = self.jobs.get(request.id, (None, None))
        if tenant != sent["x-tenant-id"]:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no job {request.id}")
        return messages.GetJobResponse(job=job_of(request.id, tenant, spec))

    def ListJobs(self, request, context):
        if request.name == "slow":
            time.sleep(1.5)
        with self.lock:
            mine = [
                job_of(id, tenant)
                for id, (tenant, _) in self.jobs.items()
                if tenant == metadata_of(context)["x-tenant-id"]
            ]
        named = [job for job in mine if request.name in ("", job.name)]
        return messages.ListJobsResponse(jobs=named)

    def CancelJob(self, request, context):
        job = self.GetJob(messages.GetJobRequest(id=request.id), context).job
        job.cancel_requested_at_ms = 1_700_000_001_000
        return messages.CancelJobResponse(job=job)

    def StreamJobLogs(self, request, context):
        return self.follow("StreamJobLogs", request, context)

    def StreamJobMetrics(self, request, context):
        return self.follow("StreamJobMetrics", request, context)

    def follow(self, call, request, context):
        kind, _, _ = request.job.partition("-")
        begun = time.monotonic()
        sent = {"pages": 0}
        tell(call=call, job=request.job, after=request.after, metadata=metadata_of(context))
        over = threading.Event()

        def ended():
            over.set()
            tell(ended=call, job=request.job, pages=sent["pages"])

        context.add_callback(ended)
        if kind == "fail":
            fail(context, grpc.StatusCode.INTERNAL, "CANARY-message of a stream")
        page = messages.StreamJobLogsResponse
        stream = job_pb2.LOG_STREAM_STDOUT
        text = "line {}\n".format
        if call == "StreamJobMetrics":
            page = messages.StreamJobMetricsResponse
            stream = job_pb2.LOG_STREAM_METRICS
            text = '{{"step": {0}, "loss": {0}.5}}\n'.format
        if kind == "quiet":
            over.wait(30)
            return
        if kind == "flood":
            for seq in range(1, 1_000_000):
                if over.is_set():
                    return
                sent["pages"] += 1
                yield page(records=[record(seq, FLOOD_RECORD)], next=seq)
            return
        for seq in range(request.after + 1, LINES + 1):
            if seq == 6 and request.after == 0:
                if kind == "breaks":
                    context.abort(grpc.StatusCode.UNAVAILABLE, "CANARY-message")
                if kind == "dies":
                    # What was given to the transport is on its way before the process is gone.
                    time.sleep(0.3)
                    os._exit(1)
                if kind == "bursts":
                    fail(context, grpc.StatusCode.INTERNAL, "CANARY-message in the middle")
            sent["pages"] += 1
            last = seq == LINES
            yield page(records=[record(seq, text(seq), stream)], next=seq, complete=last)


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32))
    service.add_CoordinatorServicer_to_server(Coordinator(), server)
    port = server.add_insecure_port(f"127.0.0.1:{sys.argv[2]}")
    server.start()
    tell(port=port)
    server.wait_for_termination()


main()
