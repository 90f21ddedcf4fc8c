"""`EventMetadata`: the facts of a device's profiler about a kernel, a copy or a collective, as typed fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class EventMetadata(NamedTuple):
    """Facts of one device event; None if unknown."""

    # a kernel
    registers_per_thread: int | None
    shared_memory: int | None
    grid: list[int] | None
    block: list[int] | None
    priority: int | None
    blocks_per_sm: float | None
    warps_per_sm: float | None
    occupancy: dict[str, Any] | None
    est_occupancy_pct: float | None
    queued: int | None
    graph_id: int | None
    graph_node_id: int | None
    stream: int | None
    context: int | None
    channel: int | None
    channel_type: int | None
    # a copy
    bytes: int | None
    bandwidth_gb_s: float | None
    # a collective
    collective_name: str | None
    dtype: str | None
    in_msg_nelems: int | None
    out_msg_nelems: int | None
    in_split_size: str | None
    out_split_size: str | None
    global_rank_start: int | None
    global_rank_stride: int | None
    group_size: int | None
    process_group_name: str | None
    process_group_desc: str | None
    group_ranks: str | None
    rank: int | None
    src_rank: int | None
    dst_rank: int | None
    seq: int | None
    is_async: bool | None


def _to_str(v: str) -> str:
    return v.strip('"')


def _to_bool(v: str) -> bool:
    return v in ("1", "true")


# Key in a Kineto file -> (field, how to read its text).
_EVENT_METADATA_KEYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    **{key: (field, int) for key, field in (
        ("registers per thread", "registers_per_thread"), ("shared memory", "shared_memory"),
        ("priority", "priority"), ("queued", "queued"), ("graph id", "graph_id"), ("graph node id", "graph_node_id"),
        ("stream", "stream"), ("context", "context"), ("channel", "channel"), ("channel_type", "channel_type"),
        ("bytes", "bytes"), ("In msg nelems", "in_msg_nelems"), ("Out msg nelems", "out_msg_nelems"),
        ("Global rank start", "global_rank_start"), ("Global rank stride", "global_rank_stride"),
        ("Group size", "group_size"), ("Rank", "rank"), ("Src Rank", "src_rank"), ("Dst Rank", "dst_rank"),
        ("Seq", "seq"),
    )},
    **{key: (field, float) for key, field in (
        ("blocks per SM", "blocks_per_sm"), ("warps per SM", "warps_per_sm"),
        ("est. achieved occupancy %", "est_occupancy_pct"), ("memory bandwidth (GB/s)", "bandwidth_gb_s"),
    )},
    **{key: (key, json.loads) for key in ("grid", "block", "occupancy")},
    **{key: (field, _to_str) for key, field in (
        ("Collective name", "collective_name"), ("dtype", "dtype"), ("In split size", "in_split_size"),
        ("Out split size", "out_split_size"), ("Process Group Name", "process_group_name"),
        ("Process Group Description", "process_group_desc"), ("Process Group Ranks", "group_ranks"),
    )},
    "Is asynchronized op": ("is_async", _to_bool),
}


def _build_metadata(extra_meta: Mapping[str, str]) -> EventMetadata | None:
    """The typed form of Kineto's key-value pairs, or None if none of them is known."""
    found = {
        field: read(extra_meta[key])
        for key, (field, read) in _EVENT_METADATA_KEYS.items()
        if extra_meta.get(key) is not None
    }
    return EventMetadata(**{field: found.get(field) for field in EventMetadata._fields}) if found else None
