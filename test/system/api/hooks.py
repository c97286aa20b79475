"""What schemathesis must know of Drover that no description can say: see fuzz.ts."""

import os

import schemathesis

OWN_TOKEN = os.environ["FUZZ_TOKEN_ID"]
OWN_USER = os.environ["FUZZ_USER"]
OWN_TENANT = os.environ["FUZZ_TENANT"]
ENDED_JOB = os.environ["FUZZ_JOB"]

# It finds out what there is and tries everything on it: also to take away its own permission.
SPARED = {
    ("DELETE", "/v1/tokens/{id}", "id"): OWN_TOKEN,
    ("DELETE", "/v1/users/{user}", "user"): OWN_USER,
    ("PUT", "/v1/tenants/{tenant}", "tenant"): OWN_TENANT,
}
LONGEST_WAIT_MS = 100


@schemathesis.hook
def before_call(context, case, **kwargs):
    place = (case.operation.method.upper(), case.operation.path)
    for name, value in (case.path_parameters or {}).items():
        if SPARED.get((*place, name)) == value:
            case.path_parameters[name] = "somebody-else"
    if place[1] == "/v1/jobs/{id}/wait":
        shorten_wait(case)
    if place[1] in ("/v1/jobs/{id}/logs", "/v1/jobs/{id}/metrics/stream"):
        follow_what_has_ended(case)


def shorten_wait(case):
    """A wait is answered when it is over: nothing is learnt from a long one."""
    wait = (case.query or {}).get("waitMs")
    if str(wait).isdigit() and 0 < int(wait) <= 60_000:
        case.query["waitMs"] = min(int(wait), LONGEST_WAIT_MS)


def follow_what_has_ended(case):
    """A stream of a job that has not ended has no end either."""
    if str((case.path_parameters or {}).get("id", "")).startswith("j"):
        case.path_parameters["id"] = ENDED_JOB
