"""Spark SQL as a small immutable tree, and its one renderer: the only place that quotes and prints.

Whoever makes SQL puts nodes together (`tree`, `build`) and prints them once (`render`). A literal or a name of a
program may hold anything, so text that is printed is never searched, cut or changed.
"""
