"""Functions as jobs: what they return and raise comes back, by call, by map and by executor."""

from __future__ import annotations

import concurrent.futures
import functools
import pickle
import sys
import threading
import time
from typing import Any, Iterator

import pytest

import drover
from drover.functions import pack_call, pack_runtime


class Odd(ValueError):
    """An exception that only this file knows."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def halved(number: int, *, plus: int = 0) -> int:
    print(f"halving {number}")
    if number % 2:
        raise Odd(number)
    return number // 2 + plus


def slept(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_what_a_function_returns_comes_back(client: drover.Client) -> None:
    offset = 30
    call = client.call(
        lambda a, b: {"sum": a + b + offset}, [5, 7], python=sys.executable, cpus=0.1
    )
    assert call.result(60) == {"sum": 42}
    assert call.result() == {"sum": 42}
    named = client.call(halved, [4], {"plus": 1}, python=sys.executable, cpus=0.1)
    assert named.result(60) == 3
    assert named.output() == "halving 4\n"
    assert named.refresh()["name"] == "halved"


def test_what_a_function_raises_is_raised_here(client: drover.Client) -> None:
    call = client.call(halved, [3], python=sys.executable, cpus=0.1)
    with pytest.raises(Odd) as caught:
        call.result(60)
    assert caught.value.number == 3
    assert "raise Odd(number)" in str(caught.value.__cause__)
    assert call.state == "FAILED"


def test_a_function_that_ends_its_process_says_how(client: drover.Client) -> None:
    import os

    crashed = client.call(lambda: os._exit(9), python=sys.executable, cpus=0.1)
    with pytest.raises(drover.JobFailed) as caught:
        crashed.result(60)
    assert caught.value.exit_code == 9
    left = client.call(lambda: sys.exit(2), python=sys.executable, cpus=0.1)
    with pytest.raises(RuntimeError, match=r"sys\.exit\(2\)"):
        left.result(60)
    locked = client.call(threading.Lock, python=sys.executable, cpus=0.1)
    with pytest.raises(TypeError, match="lock"):
        locked.result(60)


def test_a_python_that_is_not_there_is_named(client: drover.Client) -> None:
    with pytest.raises(drover.JobFailed, match="python9"):
        client.call(halved, [4], python="python9", cpus=0.1).result(60)


def test_a_map_is_one_array_in_order(client: drover.Client) -> None:
    params: list[Any] = [4, (6,), {"number": 8, "plus": 1}]
    array = client.map(halved, params, python=sys.executable, cpus=0.1)
    assert array.result(60) == [2, 3, 5]
    assert len(array) == 3 and array.refresh()["tasks"]["total"] == 3
    mixed = client.map(halved, [4, 5, 6], python=sys.executable, cpus=0.1)
    results = mixed.results(60)
    assert next(results) == 2
    with pytest.raises(Odd):
        next(results)
    assert client.map(halved, []).result() == []


def test_what_cannot_be_sent_is_refused_before_anything_is(client: drover.Client) -> None:
    with pytest.raises(drover.DroverError, match=r"argument of halved \(call 0\) cannot be sent"):
        client.call(halved, [threading.Lock()])


def test_without_cloudpickle_only_what_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert pack_call(time.sleep, [((0,), {})])
    with pytest.raises(drover.DroverError, match="pip install cloudpickle"):
        pack_call(lambda: 1, [((), {})])


def test_errors_of_this_package_travel_whole() -> None:
    view = {"id": "j1", "state": "FAILED", "reason": "exit code 3", "exitCode": 3}
    for error in (
        drover.JobFailed(view, "the last line"),
        drover.ConnectionFailed("http://a", OSError("gone"), refused=True),
        drover.WaitTimeout("TIMEOUT", "late", hint="wait"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
        assert copy.__dict__ == error.__dict__ and copy.args == error.args


def test_equal_calls_are_equal_bytes() -> None:
    assert pack_runtime() == pack_runtime.__wrapped__()
    assert pack_call(halved, [((1,), {})]) == pack_call(halved, [((1,), {})])


@pytest.fixture
def executor(client: drover.Client) -> Iterator[drover.Executor]:
    with drover.Executor(client, python=sys.executable, cpus=0.1) as executor:
        yield executor


def test_futures_complete_as_their_jobs_do(executor: drover.Executor) -> None:
    futures = [executor.submit(halved, number) for number in (4, 5, 6)]
    done = concurrent.futures.as_completed(futures, timeout=60)
    outcomes = {future: future.exception() or future.result() for future in done}
    assert [outcomes[futures[0]], outcomes[futures[2]]] == [2, 3]
    assert isinstance(outcomes[futures[1]], Odd)
    assert "raise Odd" in str(futures[1].exception().__cause__)  # type: ignore[union-attr]
    called: list[concurrent.futures.Future[int]] = []
    futures[0].add_done_callback(called.append)
    assert called == [futures[0]]


def test_map_takes_several_iterables(executor: drover.Executor) -> None:
    add = functools.partial(lambda a, b, c: a + b + c, 100)
    assert list(executor.map(add, [1, 2], [10, 20], timeout=60)) == [111, 122]


def test_a_future_is_cancelled_with_its_job(executor: drover.Executor) -> None:
    future = executor.submit(time.sleep, 600)
    deadline = time.monotonic() + 30
    while not future.running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert future.running()
    assert future.cancel() and future.cancelled() and future.cancel()
    assert concurrent.futures.wait([future], timeout=5).done == {future}
    assert future.job.wait(30)["state"] == "CANCELLED"
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()


def test_a_job_cancelled_by_others_fails_its_future(executor: drover.Executor) -> None:
    future = executor.submit(time.sleep, 600)
    future.job.cancel()
    with pytest.raises(drover.JobFailed) as caught:
        future.result(30)
    assert caught.value.state == "CANCELLED"


def test_an_iterator_that_is_left_cancels_the_rest(
    executor: drover.Executor, client: drover.Client
) -> None:
    results = executor.map(slept, [0, 600])
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    [view] = [view for view in client.jobs() if view["tasks"]["total"] == 2][:1]
    assert client.job(view["id"]).wait(30)["state"] == "CANCELLED"


def test_shutdown_waits_or_cancels_and_takes_no_more(client: drover.Client) -> None:
    executor = drover.Executor(client, python=sys.executable, cpus=0.1)
    quick, slow = executor.submit(halved, 4), executor.submit(time.sleep, 600)
    assert quick.result(60) == 2
    executor.shutdown(cancel_futures=True)
    assert slow.cancelled()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(halved, 4)
