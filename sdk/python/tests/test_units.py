"""Amounts as people write them, and where the server is looked for."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from drover import DroverError
from drover.connection import find_connection
from drover.options import build_spec
from drover.units import cpu_millis, duration_ms, gpu_request, memory_bytes


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (memory_bytes, "64G", 64 * 2**30),
        (memory_bytes, "1.5GiB", 3 * 2**29),
        (memory_bytes, "64GB", 64 * 10**9),
        (memory_bytes, 1024, 1024),
        (cpu_millis, 4, 4000),
        (cpu_millis, 0.5, 500),
        (cpu_millis, "250m", 250),
        (gpu_request, 0, None),
        (gpu_request, 2, {"kind": "gpu", "count": 2}),
        (gpu_request, 0.5, {"kind": "gpu", "count": 1, "share": 500}),
        (gpu_request, "A100:2", {"kind": "gpu", "count": 2, "models": ["A100"]}),
        (gpu_request, "A100,H100", {"kind": "gpu", "count": 1, "models": ["A100", "H100"]}),
        (gpu_request, "80GB:1", {"kind": "gpu", "count": 1, "memoryBytes": 80 * 10**9}),
    ],
)
def test_amounts(read: Any, text: Any, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (90, 90_000),
        (0.5, 500),
        ("1h30m", 5_400_000),
        ("45", 2_700_000),
        ("1-00:00:00", 86_400_000),
        ("1:30", 90_000),
        ("2:00:00", 7_200_000),
        (timedelta(minutes=1), 60_000),
    ],
)
def test_durations(text: Any, ms: int) -> None:
    assert duration_ms(text, "time") == ms


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (memory_bytes, "64"),
        (cpu_millis, 0),
        (cpu_millis, "four"),
        (gpu_request, ":2"),
        (gpu_request, 1.5),
        (lambda text: duration_ms(text, "time"), "soon"),
    ],
)
def test_wrong_amounts_name_the_value_and_an_example(read: Any, text: Any) -> None:
    with pytest.raises(DroverError) as caught:
        read(text)
    assert repr(text) in caught.value.detail and caught.value.hint


def test_options_become_the_parts_of_a_specification() -> None:
    spec = build_spec(
        ["train"],
        {
            "image": "ubuntu:24.04",
            "checkpoint": True,
            "secrets": ["WANDB_API_KEY", {"name": "hf", "as": "file"}],
            "outputs": ("out/*",),
            "keep_on_failure": "30m",
            "notify": ["team"],
            "spot": True,
            "spread": True,
            "max_cost": 4.1,
            "ports": 2,
            "spec": {"maxInterruptions": 1},
        },
    )
    assert spec == {
        "command": ["train"],
        "environment": {"image": "ubuntu:24.04"},
        "checkpoint": {},
        "secrets": [{"name": "WANDB_API_KEY"}, {"name": "hf", "as": "file"}],
        "rules": {"outputs": ["out/*"], "keepOnFailureMs": 1_800_000, "notify": [{"to": "team"}]},
        "placement": {"interruptible": True, "arrangement": "spread"},
        "maxCostMicros": 4_100_000,
        "resources": {"ports": 2},
        "maxInterruptions": 1,
    }


def test_the_server_is_found_as_the_command_line_finds_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    with pytest.raises(DroverError, match="no server is known"):
        find_connection(None, None, env)
    up = tmp_path / ".drover" / "connection.json"
    up.parent.mkdir()
    up.write_text(json.dumps({"url": "http://127.0.0.1:7070/", "token": "up"}))
    assert find_connection(None, None, env)[:2] == ("http://127.0.0.1:7070", "up")
    contexts = tmp_path / ".config" / "drover" / "context.json"
    contexts.parent.mkdir(parents=True)
    servers = {"http://a:1": {"token": "a", "name": "lab"}, "http://b:2": {"token": "b"}}
    contexts.write_text(json.dumps({"current": "http://b:2", "servers": servers}))
    assert find_connection(None, None, env)[:2] == ("http://b:2", "b")
    for name in ("lab", "http://a:1"):
        chosen = {**env, "DROVER_CONTEXT": name}
        assert find_connection(None, None, chosen)[:2] == ("http://a:1", "a")
    with pytest.raises(DroverError, match="no context 'lob'"):
        find_connection(None, None, {**env, "DROVER_CONTEXT": "lob"})
    named = {**env, "DROVER_URL": "a:1"}
    assert find_connection(None, None, named)[:2] == ("http://a:1", "a")
    assert find_connection("127.0.0.1:7070", None, named)[:2] == ("http://127.0.0.1:7070", "up")
    with_token = {**named, "DROVER_TOKEN": "t"}
    assert find_connection(None, None, with_token)[:2] == ("http://a:1", "t")
    assert find_connection(None, "given", with_token)[:2] == ("http://a:1", "given")
    assert find_connection("https://[::1]:443/x", "", env)[:2] == ("https://[::1]/x", None)
    servers["https://c:3"] = {"token": "c", "caFile": "/saved.pem"}
    contexts.write_text(json.dumps({"current": "https://c:3", "servers": servers}))
    assert find_connection(None, None, env).tls == ("/saved.pem", None, None)
    in_variable = {**env, "DROVER_CA_FILE": "/variable.pem"}
    assert find_connection("https://c:3", "t", in_variable).tls.ca_file == "/variable.pem"
    given = find_connection("https://c:3", "t", in_variable, ca_file="/given.pem")
    assert given.tls.ca_file == "/given.pem"


@pytest.mark.parametrize(
    "url", ["ftp://a", "http://", "http://u:p@h", "http://h:port", "http://h?q"]
)
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(DroverError, match="not a server's address"):
        find_connection(url, "t", {})


@pytest.mark.parametrize("text", ["{", "[]", '{"url": "http://a"}', '{"url": 1, "token": "x"}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "connection.json").write_text(text)
    with pytest.raises(DroverError, match=r"connection\.json is damaged"):
        find_connection(None, None, {"HOME": str(tmp_path), "DROVER_DATA": str(tmp_path)})
