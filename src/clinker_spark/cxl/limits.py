"""Bounds on CXL programs. Going past one is a diagnostic, never a crash.

The length of a program is bounded by its text alone: chains of operators, calls and branches are read, checked and
lowered in loops, and cut into parts (`check.chains.CHAIN_CUT`), so that no tree is as deep as they are long. What
nests is bounded by depth, because the parser and the passes over trees recurse into it.
"""

from __future__ import annotations

MAX_SOURCE_BYTES = 64 * 1024
"""UTF-8 size of a program or a single expression."""

MAX_MODULE_BYTES = 1024 * 1024
"""UTF-8 size of a module file."""

MAX_MODULES = 64
"""Modules that one program may reach."""

MAX_MODULE_DEPTH = 32
"""Modules that use modules that use modules."""

MAX_MODULE_BYTES_TOTAL = 16 * 1024 * 1024
"""Size of all modules of one program."""

MAX_EXPRESSION_DEPTH = 256
"""Levels of an expression: brackets, prefixes and right operands around an operand.

A list of parts is a level of its own (so a call with arguments is two), an arm or a map entry another one. A chain such
as `a + b + c`, `x.f().g()`, `a ?? b ?? c` or `else if` is one level, whatever its length.
"""

MAX_EMIT_EACH_DEPTH = 32
"""`emit each` blocks inside one another."""

MAX_CONTAINER_DEPTH = 64
"""Array and map literals inside one another."""

I64_MIN = -(2**63)
I64_MAX = 2**63 - 1

MAX_STRING_BYTES = 10 * 1024 * 1024
"""UTF-8 size of a text built by repeat and the pad methods."""

MAX_CONSTRUCTED_BYTES = 10 * 1024 * 1024
"""Size of the arrays and maps that one record builds with literals and comprehensions (see `construction.py`)."""
