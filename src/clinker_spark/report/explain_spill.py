"""What `--explain` says about the disk that stands in for memory: where it is, and how much of it there is."""

from __future__ import annotations

from typing import Any

from clinker_spark.plan.budget import estimated_spill
from clinker_spark.plan.graph import Plan
from clinker_spark.plan.memory import shown_size
from clinker_spark.runtime.arbitrate.spill_settings import NEAR, SpillSettings, spill_settings, usual_folder

_SAYS = {"default": "folder for temporary files (default)", "storage.spill.dir": "storage.spill.dir"}


def spill_storage_lines(plan: Plan) -> list[str]:
    settings = spill_settings(plan)
    root = f"{settings.folder or usual_folder()} [{_SAYS[_source(settings)]}]"
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
    cap = settings.config.disk_cap_bytes
    return {
        "spill_root": {"path": str(settings.folder or usual_folder()), "source": _source(settings)},
        "spill_disk_cap_bytes": cap,
        "spill_compression": {"mode": settings.config.compress},
        "cap_headroom": _headroom(plan, cap),
    }


def _source(settings: SpillSettings) -> str:
    """Who says where it is. Without `dir`, a Spark that runs on this machine takes the folder of the system."""
    return "default" if settings.folder is None else "storage.spill.dir"


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
