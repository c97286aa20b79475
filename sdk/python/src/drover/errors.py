"""Every error this package raises on purpose: a code, a sentence, and what to try."""

from __future__ import annotations

import ssl
from typing import Any, Mapping, Sequence


class DroverError(Exception):
    """Something a user can act on; `code` is one of docs/errors.md, or names a local cause."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        hint: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        violations: Sequence[str] = (),
    ) -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail
        self.hint = hint
        self.status = status
        self.request_id = request_id
        self.violations = list(violations)

    def __reduce__(self) -> Any:
        """By what it holds: one that was raised in a job arrives as it was."""
        return _restored, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.detail}"]
        lines += [f"  {violation}" for violation in self.violations]
        if self.hint:
            lines.append(f"try: {self.hint}")
        return "\n".join(lines)


class ConnectionFailed(DroverError):
    """No answer: the server is not there, or the connection broke."""

    def __init__(self, url: str, cause: BaseException, *, refused: bool) -> None:
        what = str(cause) or type(cause).__name__
        hint = "check that the server runs and that the address is right (DROVER_URL)"
        if isinstance(cause, ssl.SSLCertVerificationError):
            hint = "where the certificate is of your own authority, name its file: DROVER_CA_FILE"
        super().__init__(
            "NO_CONNECTION",
            f"no connection to {url} ({what})",
            hint=hint,
        )
        self.url = url
        # Nothing listens there that can be trusted: the request cannot have had an effect.
        self.refused = refused


class WaitTimeout(DroverError, TimeoutError):
    """The job had not ended when the caller's patience had."""


class JobFailed(DroverError):
    """The job ended in another way than SUCCEEDED."""

    def __init__(self, view: Mapping[str, Any], output: str = "", hint: str | None = None) -> None:
        job, state, reason = view["id"], view["state"], view["reason"]
        detail = f"job {job} is {state}" + (f": {reason}" if reason else "")
        if output:
            detail += f"\n{output.rstrip()}"
        super().__init__(f"JOB_{state}", detail, hint=hint or f"drover logs {job}")
        self.job = str(job)
        self.state = str(state)
        self.exit_code: int | None = view["exitCode"]


class RemoteTraceback(Exception):
    """The cause of an exception that was raised in a job: its traceback there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text.rstrip()}\n"""'


def _restored(kind: type[DroverError], args: tuple[Any, ...], state: Any) -> DroverError:
    error = kind.__new__(kind, *args)
    error.args = args  # An OSError, as WaitTimeout is one, leaves that to __init__.
    error.__dict__.update(state)
    return error


def from_problem(status: int, problem: Mapping[str, Any]) -> DroverError:
    """An application/problem+json answer as an exception."""
    violations = [
        f"{entry.get('path', '')}: {entry.get('message', '')}"
        for entry in problem.get("violations") or []
    ]
    return DroverError(
        str(problem.get("code") or f"HTTP_{status}"),
        str(problem.get("detail") or problem.get("title") or f"the server answered {status}"),
        hint=problem.get("hint"),
        status=status,
        request_id=problem.get("requestId"),
        # A single one is the detail already.
        violations=violations if len(violations) > 1 else [],
    )
