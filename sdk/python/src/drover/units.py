"""Amounts as people write them: gpus="A100:2", memory="64G", time="1h30m"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Union

from .errors import DroverError
from .views import DeviceRequest

Amount = Union[int, float, str]
Duration = Union[int, float, str, timedelta]

_BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt])(i?b?)", re.IGNORECASE)
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_UNITS = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_NUMBER = re.compile(r"\d*\.?\d+")
_SHARE_OF_ONE = 1000


def memory_bytes(value: Amount, what: str = "memory") -> int:
    """A number is bytes. 64G is binary as in Slurm and Docker, 64GB is decimal."""
    if isinstance(value, (int, float)):
        return int(value)
    size = _size(value, _BINARY)
    if size is None:
        raise _wrong(what, value, "an amount of memory", "512M, 64G or a number of bytes")
    return size


def cpu_millis(value: Amount, what: str = "cpus") -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(m?)", str(value).strip())
    millis = round(float(match[1]) * (1 if match[2] else 1000)) if match else 0
    if millis < 1:
        raise _wrong(what, value, "a number of cores", "4, 0.5 or '500m'")
    return millis


def gpu_request(value: Amount, what: str = "gpus") -> DeviceRequest | None:
    """1, 0.5, "A100:2", "A100,H100:2" or "80GB:1"; None for 0."""
    text = str(value).strip()
    wanted, colon, amount = text.rpartition(":")
    if not colon and not _NUMBER.fullmatch(amount):
        wanted, colon, amount = amount, ":", "1"
    wanted = wanted.strip()
    quantity = float(amount) if _NUMBER.fullmatch(amount.strip()) else -1.0
    shared = 0.001 <= quantity < 1
    if (colon and not wanted) or quantity < 0 or not (shared or quantity.is_integer()):
        raise _wrong(what, value, "a GPU request", "1, 0.5, 'A100:2' or '80GB:1'")
    if quantity == 0:
        return None
    request: DeviceRequest = {"kind": "gpu", "count": 1 if shared else int(quantity)}
    if shared:
        request["share"] = round(quantity * _SHARE_OF_ONE)
    # Vendors' gigabytes are decimal: an "80GB" card shows 79.6 GiB, and must fit 80G and 80GB.
    size = _size(wanted, _DECIMAL) if wanted else None
    if size is not None:
        request["memoryBytes"] = size
    elif wanted:
        request["models"] = [model.strip() for model in wanted.split(",")]
    return request


def duration_ms(value: Duration, what: str) -> int:
    """A number is seconds; a text is 90s, 45m, 1h30m, or Slurm's D-H:M:S."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, (int, float)):
        return round(value * 1000)
    text = value.strip()
    parts = _UNITS.findall(text)
    if parts and "".join(amount + unit for amount, unit in parts) == text:
        return round(sum(float(amount) * _UNIT_MS[unit] for amount, unit in parts))
    slurm = _slurm_seconds(text)
    if slurm is None:
        raise _wrong(what, value, "a duration", "90 (seconds), '45m', '1h30m' or '1-00:00:00'")
    return slurm * 1000


def _slurm_seconds(text: str) -> int | None:
    """MINUTES, M:S, H:M:S, D-H, D-H:M or D-H:M:S."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if match is None:
        return None
    days, first, second, third = (int(part) if part else None for part in match.groups())
    if days is not None:
        return days * 86_400 + (first or 0) * 3600 + (second or 0) * 60 + (third or 0)
    if third is not None:
        return (first or 0) * 3600 + (second or 0) * 60 + third
    return (first or 0) * 60 + (second or 0)


def _size(text: str, bare_units: dict[str, int]) -> int | None:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    suffix = match[3].lower()
    units = _BINARY if suffix.startswith("i") else _DECIMAL if suffix == "b" else bare_units
    return round(float(match[1]) * units[match[2].lower()])


def _wrong(what: str, value: object, wanted: str, example: str) -> DroverError:
    return DroverError("USAGE", f"{what} {value!r} is not {wanted}", hint=f"write {example}")
