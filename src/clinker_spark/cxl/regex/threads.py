"""A pattern as a small program that all ways through it run at once, one step for each character of the text.

No way is tried again, so the time is at most the length of the text times that of the program. Where two ways meet, the
one that the pattern prefers goes on, which gives the same match as trying one way after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from clinker_spark.cxl.regex.alphabet import Alphabet
from clinker_spark.cxl.regex.tree import Alternatives, Assertion, Char, Group, Node, Repeat, Sequence

Spans = tuple[tuple[int, int], ...]
Caps = tuple[int, ...]

_CHAR, _SPLIT, _SAVE, _ASSERT, _MATCH = range(5)


class Threads:
    """The program of a pattern over the letters of its alphabet."""

    def __init__(self, tree: Node, alphabet: Alphabet, groups: int) -> None:
        self._alphabet = alphabet
        self._slots = 2 * (groups + 1)
        self._code: list[tuple[int, object]] = []
        self._emit(tree)
        self._code.append((_MATCH, None))

    # ---------------------------------------------------------------- compiling

    def _add(self, op: int, arg: object = None) -> int:
        self._code.append((op, arg))
        return len(self._code) - 1

    def _emit(self, node: Node) -> None:
        match node:
            case Char(chars):
                self._add(_CHAR, self._alphabet.letters[chars])
            case Assertion():
                self._add(_ASSERT, node)
            case Group(index, body):
                self._add(_SAVE, 2 * index)
                self._emit(body)
                self._add(_SAVE, 2 * index + 1)
            case Sequence(items):
                for item in items:
                    self._emit(item)
            case Alternatives(branches):
                ends = []
                for branch in branches[:-1]:
                    split = self._add(_SPLIT)
                    self._emit(branch)
                    ends.append(self._add(_SPLIT))
                    self._code[split] = (_SPLIT, (split + 1, len(self._code)))
                self._emit(branches[-1])
                for end in ends:
                    self._code[end] = (_SPLIT, (len(self._code),))
            case Repeat(body, low, high, lazy):
                self._repeat(body, low, high, lazy)

    def _repeat(self, body: Node, low: int, high: int | None, lazy: bool) -> None:
        for _ in range(low if high is not None else low - 1):
            self._emit(body)
        if high is not None:
            splits = []
            for _ in range(high - low):
                splits.append(self._add(_SPLIT))
                self._emit(body)
            for split in splits:
                self._code[split] = (_SPLIT, _preferred(split + 1, len(self._code), lazy))
            return
        # At least once: an iteration, then choose. Iterations that may be empty mean the same to RE2 only in this form.
        skip = None if low else self._add(_SPLIT)
        start = len(self._code)
        self._emit(body)
        end = self._add(_SPLIT)
        self._code[end] = (_SPLIT, _preferred(start, end + 1, lazy))
        if skip is not None:
            self._code[skip] = (_SPLIT, _preferred(start, end + 1, lazy))

    # ------------------------------------------------------------------ running

    def run(self, letters: str, whole: bool) -> Spans | None:
        """The first match; with `whole`, that of the whole text or none."""
        codes = list(map(ord, letters))
        threads: list[tuple[int, Caps]] = []
        found: Caps | None = None
        nothing: Caps = (-1,) * self._slots
        for at in range(len(codes) + 1):
            seen: set[int] = set()
            ready: list[tuple[int, Caps]] = []
            for pc, caps in threads:
                ready.extend(self._follow(pc, caps, at, codes, seen))
            if found is None and (at == 0 or not whole):
                ready.extend(self._follow(0, (at, *nothing[1:]), at, codes, seen))
            if not ready and (found is not None or whole):
                break
            threads = []
            for pc, caps in ready:
                op, arg = self._code[pc]
                if op == _MATCH:
                    if not whole or at == len(codes):
                        found = (caps[0], at, *caps[2:])
                        break  # the ways after this one are less preferred
                elif at < len(codes) and codes[at] in arg:  # type: ignore[operator]
                    threads.append((pc + 1, caps))
        return None if found is None else tuple(zip(found[::2], found[1::2], strict=True))

    def _follow(self, pc: int, caps: Caps, at: int, codes: list[int], seen: set[int]) -> Iterator[tuple[int, Caps]]:
        """The characters to be read next, and the end, in order of preference."""
        waiting = [(pc, caps)]
        while waiting:
            pc, caps = waiting.pop()
            if pc in seen:
                continue
            seen.add(pc)
            op, arg = self._code[pc]
            if op == _SPLIT:
                waiting.extend((to, caps) for to in reversed(arg))  # type: ignore[call-overload]
            elif op == _SAVE:
                slot: int = arg  # type: ignore[assignment]
                waiting.append((pc + 1, (*caps[:slot], at, *caps[slot + 1 :])))
            elif op == _ASSERT:
                if self._holds(arg, at, codes):  # type: ignore[arg-type]
                    waiting.append((pc + 1, caps))
            else:
                yield pc, caps

    def _holds(self, assertion: Assertion, at: int, codes: list[int]) -> bool:
        newline, words = self._alphabet.newline, self._alphabet.words[assertion.ascii]
        before = at > 0 and codes[at - 1] in words
        after = at < len(codes) and codes[at] in words
        match assertion.kind:
            case "start":
                return at == 0
            case "end":
                return at == len(codes)
            case "line_start":
                return at == 0 or codes[at - 1] == newline
            case "line_end":
                return at == len(codes) or codes[at] == newline
            case "b":
                return before != after
            case "B":
                return before == after
            case "word_start":
                return not before and after
            case "word_end":
                return before and not after
            case "half_start":
                return not before
        return not after


def _preferred(more: int, enough: int, lazy: bool) -> tuple[int, int]:
    return (enough, more) if lazy else (more, enough)
