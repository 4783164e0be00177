"""What kind of file system a folder is on."""

from __future__ import annotations

_OVER_A_NETWORK = (
    "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "afpfs", "9p", "ceph", "glusterfs", "lustre",
    "gpfs", "beegfs", "davfs", "webdav", "ncpfs", "fuse",
)  # fmt: skip


def mounts() -> list[tuple[str, str]]:
    """All places where a file system begins, with its type."""
    import psutil  # takes a while to load, and few ask

    return [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


def file_system(path: str, mounts: list[tuple[str, str]]) -> str:
    """The type of the file system that a path is on: that of the innermost mount around it, the last one made.

    >>> file_system("/mnt/share/stage", [("/", "ext4"), ("/mnt/share", "nfs4"), ("/mnt/sha", "xfs")])
    'nfs4'
    """
    best, kind = -1, ""
    for place, fstype in mounts:
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= best:
            best, kind = len(place), fstype.lower()
    return kind


def is_over_network(kind: str) -> bool:
    """Does such a file system live on another machine, as far as anybody can tell?"""
    return kind in _OVER_A_NETWORK or kind.startswith("fuse.")
