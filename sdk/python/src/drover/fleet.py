"""The machines of a cluster, key for key as the server tells of them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class WorkerView(TypedDict):
    id: str
    name: str
    pool: str
    state: str
    draining: bool
    address: str
    network: str
    attributes: Dict[str, str]
    agentVersion: str
    joinedAtMs: int
    lastSeenAtMs: Optional[int]
    host: str
    instance: Optional[str]
    endsAtMs: Optional[int]
    problems: List[Dict[str, Any]]
    attempts: int
    total: Dict[str, int]
    free: Dict[str, int]
    devices: List[Dict[str, Any]]
