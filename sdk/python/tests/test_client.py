"""Jobs from submit to result against a real server, over good and bad connections."""

from __future__ import annotations

import json
import socket
import urllib.request
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Server
from proxy import Proxy

import drover
from drover import fleet, views
from drover.http import Transport


def test_a_job_from_submit_to_exit_code(client: drover.Client) -> None:
    job = client.submit(
        ["sh", "-c", 'echo "out $WORD"; echo problem >&2; exit 3'],
        name="first",
        env={"WORD": "one"},
        cpus=0.5,
        memory="64M",
        time="5m",
        grace=timedelta(seconds=2),
        labels={"team": "a"},
    )
    view = job.wait(60)
    assert (view["state"], view["exitCode"]) == ("FAILED", 3)
    assert job.output() == "out one\n"
    assert job.output(stream="stderr") == "problem\n"
    spec = job.refresh()["spec"]
    assert spec["resources"]["cpuMillis"] == 500
    assert (spec["timeLimitMs"], spec["graceMs"]) == (300_000, 2000)
    with pytest.raises(drover.JobFailed, match="problem") as caught:
        job.check()
    assert (caught.value.code, caught.value.exit_code) == ("JOB_FAILED", 3)
    assert [attempt["exitCode"] for attempt in job.attempts()] == [3]
    assert "job" in {key for event in job.events() for key in event}


def test_a_shell_line_an_array_and_its_tasks(client: drover.Client) -> None:
    job = client.submit("echo $DROVER_ARRAY_INDEX", array=[2, 5], at_once=1, cpus=0.1)
    assert job.check(60)["tasks"]["succeeded"] == 2
    assert sorted(task["index"] for task in job.tasks()) == [2, 5]
    assert job.output(task=5) == "5\n"


def test_metrics_that_a_job_logged(client: drover.Client) -> None:
    line = 'echo "{\\"step\\": $i, \\"loss\\": $((10 / i))}" >>"$DROVER_METRICS_FILE"'
    job = client.submit(["sh", "-c", f"for i in 1 2 5; do {line}; done"])
    job.check(60)
    (loss,) = job.metrics()
    assert (loss["name"], loss["count"], loss["step"]) == ("loss", 3, 5)
    assert (loss["min"], loss["max"], loss["last"]) == (2, 10, 2)
    assert [point["last"] for point in job.metrics(name="loss", max_points=1)[0]["points"]] == [2]
    assert job.metrics(name="accuracy") == []


def test_jobs_after_others_run_in_order(client: drover.Client) -> None:
    first = client.submit("sleep 0.3; echo first", cpus=0.1)
    second = client.submit("echo second", after=[first], cpus=0.1)
    third = client.submit("true", after=[{"job": second.id, "when": "failed"}], cpus=0.1)
    started, ended = second.check(60)["startedAtMs"], first.wait(1)["endedAtMs"]
    assert started and ended and started >= ended
    assert third.wait(60)["state"] != "SUCCEEDED"


def test_why_cancel_and_the_lists(client: drover.Client) -> None:
    job = client.submit("sleep 600", name="waits", cpus=8, start_within="10m")
    blocked = client.submit("true", name="blocked", cpus=8)
    with pytest.raises(drover.WaitTimeout) as caught:
        blocked.wait(0.5)
    assert isinstance(caught.value, TimeoutError)
    assert client.why(blocked.id)["sentence"]
    assert [view["id"] for view in client.jobs(name="waits")] == [job.id]
    assert client.cancel(blocked.id)["state"] == "CANCELLED"
    job.cancel()
    assert job.wait(30)["state"] == "CANCELLED"
    assert job.state == "CANCELLED"
    assert next(client.workers())["state"] == "ONLINE"
    assert client.cluster()["store"] == "sqlite"


def test_a_sweep_of_commands_is_one_call(client: drover.Client, proxy: Proxy) -> None:
    params = [{"lr": rate, "text": "it's"} for rate in (0.1, 0.2, 0.3)]
    jobs = client.map("echo {lr} {text} {other}", params, cpus=0.1)
    assert [job.check(60)["state"] for job in jobs] == ["SUCCEEDED"] * 3
    assert [job.output() for job in jobs] == [f"{r} it's {{other}}\n" for r in (0.1, 0.2, 0.3)]
    [word] = client.map(["printf", "%s", "{a}"], [{"a": "x; y"}], cpus=0.1)
    word.check(60)
    assert word.output() == "x; y"


def test_a_follow_survives_cut_connections(server: Server, proxy: Proxy) -> None:
    client = drover.Client(proxy.url, server.token)
    job = client.submit("for i in $(seq 40); do echo line $i; sleep 0.03; done", cpus=0.1)
    proxy.cut_after = [700, 1, 900, 500]
    client.close()
    text = "".join(record.text for record in job.logs(follow=True))
    assert text == "".join(f"line {i}\n" for i in range(1, 41))
    assert proxy.connections >= 5


def test_bytes_that_are_no_text_arrive_as_they_are(client: drover.Client) -> None:
    job = client.submit(["printf", r"\377\000ok"], cpus=0.1)
    job.wait(60)
    assert b"".join(record.data for record in job.logs()) == b"\xff\x00ok"
    assert [record.text for record in job.logs(tail=1)]


def test_a_lost_answer_makes_one_job(server: Server, client: drover.Client, proxy: Proxy) -> None:
    proxy.cut_after = [0]
    job = drover.Client(proxy.url, server.token).submit("true", name="only-once", cpus=0.1)
    assert proxy.connections == 2
    assert [view["id"] for view in client.jobs(name="only-once")] == [job.id]


def test_a_key_of_ones_own_gives_the_same_job(client: drover.Client) -> None:
    first = client.submit("true", idempotency_key="monday", cpus=0.1)
    assert client.submit("true", idempotency_key="monday", cpus=0.1).id == first.id
    with pytest.raises(drover.DroverError) as caught:
        client.submit("false", idempotency_key="monday", cpus=0.1)
    assert caught.value.code == "IDEMPOTENCY_MISMATCH"


def test_calls_share_a_connection(server: Server, proxy: Proxy) -> None:
    with drover.Client(proxy.url, server.token) as client:
        for _ in range(5):
            client.cluster()
        assert proxy.connections == 1


def test_a_connection_that_went_stale_is_replaced(server: Server, proxy: Proxy) -> None:
    client = drover.Client(proxy.url, server.token)
    proxy.cut_after = [10_000]
    size = len(json.dumps(client.cluster()))
    for _ in range(10_000 // size + 2):
        assert client.cluster()["store"] == "sqlite"


def refused(client: drover.Client, command: Any = "true", **options: Any) -> drover.DroverError:
    with pytest.raises(drover.DroverError) as caught:
        client.submit(command, **options)
    return caught.value


def test_what_is_wrong_is_named_with_what_to_try(server: Server, client: drover.Client) -> None:
    wrong = refused(drover.Client(server.url, "drv_wrong"))
    assert (wrong.code, wrong.status) == ("UNAUTHENTICATED", 401)
    assert "try: " in str(wrong) and "drv_wrong" not in str(wrong)
    assert refused(client, cpus=0.1, priority="urgent").code == "INVALID_ARGUMENT"
    assert "priority" in str(refused(client, priority="urgent"))
    assert refused(client, [], cpus=1).code == "INVALID_ARGUMENT"
    assert "memory" in str(refused(client, mem="1G"))
    assert "'64X'" in str(refused(client, memory="64X"))
    assert "not both" in str(refused(client, array=2, gang=2))
    assert "at_once" in str(refused(client, at_once=2))
    missing = client.job("j-none")
    with pytest.raises(drover.DroverError) as caught:
        missing.wait(1)
    assert caught.value.code == "NOT_FOUND"
    assert caught.value.request_id
    with pytest.raises(drover.DroverError, match="NOT_FOUND"):
        list(missing.logs(follow=True))


def test_nobody_there_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    nobody = drover.Client(f"http://127.0.0.1:{port}", "x")
    error = refused(nobody)
    with pytest.raises(drover.ConnectionFailed):
        list(nobody.job("j1").logs(follow=True))
    assert isinstance(error, drover.ConnectionFailed)
    assert error.code == "NO_CONNECTION" and str(port) in str(error)
    assert error.__suppress_context__, "no chain of socket errors before it"


def test_an_answer_that_is_not_drovers_is_named(tmp_path: Path) -> None:
    import http.server
    import threading

    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        error = refused(drover.Client(f"http://127.0.0.1:{other.server_port}", "x"))
        other.shutdown()
    assert error.code == "UNEXPECTED_RESPONSE"


def test_what_goes_over_the_wire_is_the_servers(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/openapi.json") as answer:
        schemas = json.load(answer)["components"]["schemas"]
    theirs = schemas["JobSpec"] if "JobSpec" in schemas else schemas["JobSpecInput"]
    assert set(views.JobSpec.__annotations__) == set(theirs["properties"]), (
        "src/drover/views.py must name the fields that the server takes"
    )
    parts = {
        "resources": views.ResourceRequest,
        "placement": views.Placement,
        "code": views.CodeSpec,
        "inputs": views.InputSpec,
        "environment": views.EnvironmentSpec,
        "checkpoint": views.CheckpointSpec,
        "secrets": views.SecretSpec,
        "rules": views.JobRules,
    }
    for key, part in parts.items():
        schema = theirs["properties"][key]
        fields = schema.get("items", schema)["properties"]
        assert set(part.__annotations__) == set(fields), key
    for name in ("Job", "Task", "Attempt", "Event", "Why", "Worker", "Checkpoint"):
        module = fleet if name == "Worker" else views
        ours = getattr(module, f"{name}View").__annotations__
        assert set(ours) <= set(schemas[name]["properties"]), name


def test_the_client_finds_the_server_of_this_home(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DROVER_URL", "DROVER_TOKEN", "DROVER_DATA", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(server.home))
    assert drover.Client().cluster()["store"] == "sqlite"
    assert isinstance(drover.Client().transport, Transport)


def test_a_file_goes_up_once_and_comes_back_over_a_broken_line(
    server: Server, client: drover.Client, proxy: Proxy, tmp_path: Path
) -> None:
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(range(256)) * 20_000)
    uri = client.upload(file)
    assert (
        client.upload(file) == uri and drover.Client(server.url, server.token).upload(file) == uri
    )
    broken = drover.Client(proxy.url, server.token)
    proxy.cut_after = [1_000_000, 2_000_000, 0]
    broken.blobs.save(uri[len("blob:") :], tmp_path / "copy" / "data.bin")
    assert (tmp_path / "copy" / "data.bin").read_bytes() == file.read_bytes()
    assert proxy.connections == 4
    with pytest.raises(drover.DroverError) as caught:
        client.blobs.save(f"sha256:{'0' * 64}", tmp_path / "none")
    assert caught.value.code == "NOT_FOUND"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "data.bin"]
    with pytest.raises(drover.DroverError, match="absent"):
        client.upload(tmp_path / "absent")
