"""What every Python process that Spark starts on this machine does first: it looks for PySpark where it is installed.

Spark names the archive `pyspark.zip` before all other places. An archive keeps nothing of what Python has compiled, so
that each process would compile two hundred modules: two thirds of a second of work. Beside the archive lies PySpark
itself, the same modules and the one that started Spark. So the archives go to the end of the path, where they still
serve a Python that has no other PySpark.

Python imports a module of this name by itself; the one that the machine may have, and that this one hides, comes next.
"""

import os
import sys


def in_order(path: list[str]) -> list[str]:
    """Places of modules: archives that lie in a package which one of the other places has come last.

    >>> in_order(["/tmp/pyspark/python/lib/pyspark.zip", "/tmp"])  # there is no PySpark beside it
    ['/tmp/pyspark/python/lib/pyspark.zip', '/tmp']
    """
    homes = {home for place in path if (home := _home(place)) is not None and os.path.dirname(home) in path}
    last = [place for place in path if place.endswith((".zip", ".jar")) and place.startswith(tuple(homes))]
    return [place for place in path if place not in last] + last


def _home(place: str) -> "str | None":
    """The package `pyspark` in which its own archive lies."""
    folder, name = os.path.split(place)
    home = os.path.dirname(os.path.dirname(folder))
    there = name == "pyspark.zip" and os.path.basename(home) == "pyspark"
    return home if there and os.path.isfile(os.path.join(home, "__init__.py")) else None


def _next_one() -> None:
    """The module of this name that is next on the path, if any."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    own = sys.modules.pop(__name__)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize":
    sys.path[:] = in_order(sys.path)
    _next_one()
