"""A publication is not interrupted: signals wait until it is over, and come then."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back SIGINT, SIGTERM and SIGHUP until the block is done. Only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        pending.append(number)

    held = [number for number in _HELD if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    saved = {number: signal.signal(number, hold) for number in held}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)
    for came in dict.fromkeys(pending):  # not after an error: that ends the run too, and says why
        signal.raise_signal(came)
