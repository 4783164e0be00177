"""What `--explain` says about the disk that stands in for memory: where it is, and how much of it there is."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.budget import estimated_spill
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.runtime.arbitrate.spill_settings import NEAR, spill_settings

_DEFAULT_ROOT = "the system's folder for temporary files (default)"


def spill_storage_lines(plan: Plan) -> list[str]:
    """Nothing where [storage.spill] says nothing."""
    settings = spill_settings(plan)
    if not settings.config.model_fields_set:
        return []
    root = _DEFAULT_ROOT if settings.folder is None else f"{settings.folder} [storage.spill.dir]"
    cap = settings.config.disk_cap_bytes
    told = "unlimited (default)" if cap is None else f"{cap} bytes [storage.spill.disk_cap_bytes]"
    lines = [f"Spill root: {root}", f"Spill disk cap: {told}", f"Spill compression: {settings.config.compress}"]
    headroom = _headroom(plan, cap)
    if headroom is not None:
        near = f" WARNING: more than {NEAR:.0%}" if headroom["over_threshold"] else ""
        share = f"{shown_size(headroom['estimated_bytes'])} estimated, {headroom['pct_of_cap']} % of the cap"
        lines.append(f"Cap headroom: {headroom['headroom_bytes']} bytes ({share}){near}")
    return lines


def spill_storage_json(plan: Plan) -> dict[str, Any]:
    settings = spill_settings(plan)
    folder, cap = settings.folder, settings.config.disk_cap_bytes
    source = "default" if folder is None else "storage.spill.dir"
    return {
        "spill_root": {"path": None if folder is None else str(folder), "source": source},
        "spill_disk_cap_bytes": cap,
        "spill_compression": {"mode": settings.config.compress},
        "cap_headroom": _headroom(plan, cap),
    }


def _headroom(plan: Plan, cap: int | None) -> dict[str, Any] | None:
    """What the estimate leaves of the cap."""
    if cap is None:
        return None
    likely = sum(estimated_spill(plan).values())
    return {
        "headroom_bytes": cap - likely,
        "estimated_bytes": likely,
        "cap_bytes": cap,
        "pct_of_cap": round(100 * likely / cap, 1) if cap else None,
        "over_threshold": likely >= NEAR * cap,
    }
