"""Count what a stranger's text costs, in steps and bytes and never in time.

A step is a call of a function, or a step of a regular expression: the product's patterns are run a
second time by a matcher of our own, which backtracks as the library's does and counts. The text
that a pattern is slow for is found by its steps, however fast the machine is.
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import sys
import tracemalloc
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any, Final

Accept = Callable[[str], bool]
Then = Callable[[int], bool]
Node = Callable[[int, Then], bool]

PRODUCT: Final = ("api", "checkout", "dashboard", "pay")
LIBRARIES: Final = ("http.cookies", "idna", "mangum", "starlette", "urllib.parse")
_CATEGORIES: Final[dict[Any, Accept]] = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: lambda each: each.isalnum() or each == "_",
    op.CATEGORY_NOT_DIGIT: lambda each: not each.isdecimal(),
    op.CATEGORY_NOT_SPACE: lambda each: not each.isspace(),
    op.CATEGORY_NOT_WORD: lambda each: not (each.isalnum() or each == "_"),
}
_ONE: Final = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


class TooManySteps(AssertionError):
    """More steps than a text of this length may cost."""


@dataclass
class Meter:
    """The steps so far, and how many there may be."""

    most: float = float("inf")
    steps: int = 0

    def step(self, number: int = 1) -> None:
        self.steps += number
        if self.steps > self.most:
            raise TooManySteps(f"more than {self.most:.0f} steps")


class Matcher:
    """A pattern that is matched step by step, each of which `meter` counts."""

    def __init__(self, pattern: re.Pattern[str], meter: Meter) -> None:
        self._meter = meter
        self._flags = pattern.flags
        self._text = ""
        self._groups: dict[int, str] = {}
        self._run = self._sequence(_parsed(pattern.pattern, pattern.flags))

    def end(self, text: str, begin: int, *, whole: bool = False) -> int | None:
        """Return where the match at `begin` ends, None without one."""
        self._text = text
        found: list[int] = []

        def done(at: int) -> bool:
            if whole and at < len(text):
                return False
            found.append(at)
            return True

        with _deep():
            return found[0] if self._run(begin, done) else None

    def search(self, text: str, begin: int = 0) -> tuple[int, int] | None:
        for start in range(begin, len(text) + 1):
            self._meter.step()
            if (end := self.end(text, start)) is not None:
                return start, end
        return None

    def each(self, text: str) -> None:
        at = 0
        while at <= len(text) and (found := self.search(text, at)):
            at = max(found[1], found[0] + 1)

    def _sequence(self, parts: Any) -> Node:
        nodes = [self._node(kind, value) for kind, value in parts]

        def run(at: int, then: Then, index: int = 0) -> bool:
            if index == len(nodes):
                return then(at)
            return nodes[index](at, lambda here: run(here, then, index + 1))

        return run

    def _node(self, kind: Any, value: Any) -> Node:
        meter = self._meter
        if kind in _ONE:
            accepts = self._one(kind, value)

            def one(at: int, then: Then) -> bool:
                meter.step()
                return at < len(self._text) and accepts(self._text[at]) and then(at + 1)

            return one
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, body = value
            [*inner] = body
            if len(inner) == 1 and inner[0][0] in _ONE:
                return self._run_of(self._one(*inner[0]), least, most, kind is op.MAX_REPEAT)
            return self._repeated(self._sequence(inner), least, most, kind is op.MAX_REPEAT)
        if kind is op.SUBPATTERN:
            _, on, off, body = value
            flags, self._flags = self._flags, (self._flags | on) & ~off
            run = self._sequence(body)
            self._flags = flags
            return run
        if kind is op.BRANCH:
            branches = [self._sequence(each) for each in value[1]]
            return lambda at, then: any(branch(at, then) for branch in branches)
        if kind in (op.ASSERT, op.ASSERT_NOT):
            return self._looked(kind, *value)
        assert kind is op.AT, kind
        return lambda at, then: self._stands(value, at) and then(at)

    def _run_of(self, accepts: Accept, least: int, most: Any, greedy: bool) -> Node:
        meter = self._meter

        def run(at: int, then: Then) -> bool:
            text = self._text
            limit = len(text) if most is op.MAXREPEAT else min(len(text), at + int(most))
            if greedy:
                end = at
                while end < limit and accepts(text[end]):
                    end += 1
                meter.step(end - at + 1)
                for stop in range(end, at + least - 1, -1):
                    meter.step()
                    if then(stop):
                        return True
                return False
            for stop in range(at, limit + 1):
                meter.step()
                if stop - at >= least and then(stop):
                    return True
                if stop == limit or not accepts(text[stop]):
                    return False
            return False

        return run

    def _repeated(self, body: Node, least: int, most: Any, greedy: bool) -> Node:
        limit = float("inf") if most is op.MAXREPEAT else int(most)
        meter = self._meter

        def run(at: int, then: Then, number: int = 0) -> bool:
            meter.step()

            def again() -> bool:
                if number >= limit:
                    return False
                return body(at, lambda here: here > at and run(here, then, number + 1))

            if number < least:
                return body(at, lambda here: run(here, then, number + 1))
            return (again() or then(at)) if greedy else (then(at) or again())

        return run

    def _looked(self, kind: Any, direction: int, body: Any) -> Node:
        run = self._sequence(body)
        width = body.getwidth()[0] if direction < 0 else 0

        def look(at: int, then: Then) -> bool:
            found = at >= width and run(at - width, lambda _: True)
            return found == (kind is op.ASSERT) and then(at)

        return look

    def _stands(self, value: Any, at: int) -> bool:
        text, end = self._text, len(self._text)
        self._meter.step()
        if value in (op.AT_BEGINNING, op.AT_BEGINNING_STRING):
            lines = self._flags & re.MULTILINE and value is op.AT_BEGINNING
            return at == 0 or bool(lines and text[at - 1] == "\n")
        if value in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY):
            word = _CATEGORIES[op.CATEGORY_WORD]
            differ = (at > 0 and word(text[at - 1])) != (at < end and word(text[at]))
            return differ == (value is op.AT_BOUNDARY)
        if value is op.AT_END_STRING:
            return at == end
        assert value is op.AT_END, value
        if self._flags & re.MULTILINE and at < end and text[at] == "\n":
            return True
        return at == end or (at == end - 1 and text[at] == "\n")

    def _one(self, kind: Any, value: Any) -> Accept:
        """Return what says whether a character matches; case is folded where it does not count."""
        if kind is op.ANY:
            dotall = bool(self._flags & re.DOTALL)
            return lambda each: dotall or each != "\n"
        if kind is op.IN:
            refused, *items = value if value[0][0] is op.NEGATE else (None, *value)
            ranges = [
                _accepts(item, char, ignore=bool(self._flags & re.IGNORECASE))
                for item, char in items
            ]
            return lambda each: any(one(each) for one in ranges) == (refused is None)
        same = _accepts(op.LITERAL, value, ignore=bool(self._flags & re.IGNORECASE))
        return same if kind is op.LITERAL else (lambda each: not same(each))


def _accepts(kind: Any, value: Any, *, ignore: bool) -> Accept:
    if kind is op.CATEGORY:
        return _CATEGORIES[value]
    low, high = value if kind is op.RANGE else (value, value)

    def within(each: str) -> bool:
        forms = {each, each.lower(), each.upper()} if ignore else {each}
        return any(len(form) == 1 and low <= ord(form) <= high for form in forms)

    return within


@lru_cache(maxsize=512)
def _parsed(pattern: str, flags: int) -> Any:
    return parser.parse(pattern, flags & ~re.DEBUG)


# The steps of a pattern with a text are counted once, whichever field the text came through.
_counted: dict[tuple[re.Pattern[str], str, str], int] = {}


class Counted:
    """Stands in for a compiled pattern: answers as it does, after counting its steps."""

    def __init__(self, pattern: re.Pattern[str], meter: Meter) -> None:
        self.real = pattern
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)
        if name not in ("match", "fullmatch", "search", "findall", "finditer", "sub", "split"):
            return method

        def counted(*arguments: Any, **options: Any) -> Any:
            text = arguments[1] if name == "sub" else arguments[0]
            if isinstance(text, str):
                with _unprofiled():
                    self._count(name, text)
            return method(*arguments, **options)

        return counted

    def _count(self, name: str, text: str) -> None:
        key = (self.real, name, text)
        if key not in _counted:
            own = Meter(most=self._meter.most - self._meter.steps)
            self._match(Matcher(self.real, own), name, text)
            _counted[key] = own.steps
        self._meter.step(_counted[key])

    @staticmethod
    def _match(matcher: Matcher, name: str, text: str) -> None:
        if name in ("match", "fullmatch"):
            matcher.end(text, 0, whole=name == "fullmatch")
        elif name == "search":
            matcher.search(text)
        else:
            matcher.each(text)


@contextmanager
def _unprofiled() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(before)


@contextmanager
def _deep() -> Iterator[None]:
    """Let each step of a repeat be a call within the one before."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def patterns_of(*packages: str) -> Iterator[tuple[ModuleType, str, re.Pattern[str]]]:
    """Yield each pattern of text that a loaded module of these packages has under a name."""
    for name, module in sorted(sys.modules.items()):
        if not any(name == each or name.startswith(f"{each}.") for each in packages):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                yield module, attribute, value


@lru_cache(maxsize=1)
def _places() -> list[tuple[ModuleType, str]]:
    """Return where patterns are; looking through all modules takes longer than a request."""
    return [(module, name) for module, name, _ in patterns_of(*PRODUCT, *LIBRARIES)]


@contextmanager
def counted(meter: Meter) -> Iterator[None]:
    """Count the steps of all patterns, of the product and of what reads requests for it."""
    replaced = [(module, name, getattr(module, name)) for module, name in _places()]
    for module, name, pattern in replaced:
        setattr(module, name, Counted(pattern, meter))
    try:
        yield
    finally:
        for module, name, pattern in replaced:
            setattr(module, name, pattern)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Count calls, and normalizations by the characters that they make, while this lasts."""

    def called(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            meter.steps += 1  # what is raised here would be lost in C

    normalize = unicodedata.normalize

    def measured(form: Any, text: str) -> str:
        made = normalize(form, text)
        meter.step(len(text) + len(made))
        return made

    unicodedata.normalize = measured
    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)
        unicodedata.normalize = normalize


def bytes_of(action: Callable[[], Any]) -> int:
    """Return the most bytes that were allocated at once during an action."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
