"""What schemathesis must know of Drover that no description can say: see fuzz.ts."""

import os

import schemathesis

OWN_TOKEN = os.environ["FUZZ_TOKEN_ID"]
OWN_USER = os.environ["FUZZ_USER"]
ENDED_JOB = os.environ["FUZZ_JOB"]

# It finds out what there is and tries everything on it: also to take away its own permission.
SPARED = {
    ("DELETE", "/v1/tokens/{id}", "id"): {OWN_TOKEN},
    ("DELETE", "/v1/users/{user}", "user"): {OWN_USER, "closer"},
    ("PUT", "/v1/tenants/{tenant}", "tenant"): {"alpha", "beta", "default"},
}
LONGEST_WAIT_MS = 100


@schemathesis.hook
def before_call(context, case, **kwargs):
    place = (case.operation.method.upper(), case.operation.path)
    for name, value in (case.path_parameters or {}).items():
        if value in SPARED.get((*place, name), ()):
            case.path_parameters[name] = "somebody-else"
    if place[1] == "/v1/jobs/{id}/wait":
        shorten_wait(case)
    if place[1].endswith(("/jobs/{id}/logs", "/jobs/{id}/metrics/stream")):
        follow_what_has_ended(case)


def shorten_wait(case):
    """A wait is answered when it is over: nothing is learnt from a long one."""
    wait = (case.query or {}).get("waitMs", 60_000)
    if str(wait).isdigit() and 0 < int(wait) <= 60_000:
        case.query = {**(case.query or {}), "waitMs": min(int(wait), LONGEST_WAIT_MS)}


def follow_what_has_ended(case):
    """A stream of a job that has not ended has no end either."""
    if str((case.path_parameters or {}).get("id", "")).startswith("j"):
        case.path_parameters["id"] = ENDED_JOB


# Rules that OpenAPI has no words for: the schema fits and the sense does not. Each is refused with
# 400 and says so in these words; nothing else that fits a schema may be refused.
RULES = [
    "is not a cursor of this list",  # opaque: only what a page gave is one
    "The content has the hash",  # a blob's name is the hash of its bytes
    "tail and after cannot both be given",
    "names nothing that a task serves",  # a port above 65535
    "is no name of a variable",  # the target of a secret, by what it becomes
    "is no file name",
    "appears twice",
    "a share is of one device",
    "EXISTS takes",  # values of a constraint, by its operator
    "IN takes",
    "takes one value",
    "compares numbers",
    "excludes an image",
    "is for an image",
    "must stay below",
    "the program to run is empty",
    "characters, the limit is",  # of all words of a command together
    "characters; at most",  # of all variables together
    "there is no notification channel",
    "is no ISO 8601 time",  # the 30th of February
]


# Which of their fields mean something is up to the site's templates.
BY_TEMPLATE = ["/v1/modules/scaimind/jobs", "/v1/modules/scaimind/evaluations"]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    name = type(failure).__name__
    if name == "UnsupportedMethodResponse" and case.operation.path == "/v1/blobs/missing":
        return False  # under another method it is the name of a blob, and a malformed one: 400
    if name == "UseAfterFree" and "DELETE /v1/jobs/" in str(failure.message):
        return False  # a job that is deleted is cancelled; what it was and left stays known
    if name != "RejectedPositiveData":
        return True
    if case.operation.path in BY_TEMPLATE:
        return False
    text = response.content.decode("utf-8", "replace")
    return not any(rule in text for rule in RULES)
