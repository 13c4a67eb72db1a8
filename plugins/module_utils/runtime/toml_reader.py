# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A strict small reader of TOML (https://toml.io/en/v1.0.0), for nodes whose Python has no tomllib.

It reads the shape that container runtimes' configurations have: tables, arrays of tables, and keys with strings, numbers, booleans and arrays. Where each
key stands is kept, so that one statement of a file can be replaced and the rest left as its author wrote it. What a key holds beyond these types (an
inline table, a date) is kept as text only.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+|[+-]?[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?|[+-]?(inf|nan)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9TtZz:.+ -]*|[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}


class TomlError(Exception):
    """The text is not TOML as this reader knows it; says in which line and why."""


@dataclass(frozen=True)
class Entry:
    """One ``key = value``. ``table`` and ``key`` are the names as written, split at their dots; ``value`` is None for types that are not read.

    ``start`` and ``end`` are offsets in the text: the statement from its key to the end of its value. ``raw`` is the value as written.
    """

    table: tuple[str, ...]
    key: tuple[str, ...]
    value: Any
    raw: str
    start: int
    end: int

    @property
    def path(self) -> tuple[str, ...]:
        """Return table and key in one."""
        return self.table + self.key


def entries(text: str) -> list[Entry]:
    """Return every key of ``text`` in its order. An array of tables counts its elements, as ``name#0``, ``name#1``. Raises TomlError."""
    return _Reader(text).entries()


def values(text: str) -> dict[tuple[str, ...], Any]:
    """Return the value of every key by its whole path; of types that are not read, the text. Raises TomlError, also for a key given twice."""
    found: dict[tuple[str, ...], Any] = {}
    for entry in entries(text):
        if entry.path in found:
            raise TomlError(f"line {text.count(chr(10), 0, entry.start) + 1}: {'.'.join(entry.path)} is given twice")
        found[entry.path] = entry.raw if entry.value is None else entry.value
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def entries(self) -> list[Entry]:
        found: list[Entry] = []
        table: tuple[str, ...] = ()
        arrays: dict[tuple[str, ...], int] = {}
        while self._next_statement():
            start = self.at
            if self.text.startswith("[[", start):
                self.at += 2
                name = self._key_path()
                self._expect("]]")
                arrays[name] = arrays.get(name, -1) + 1
                table = (*name[:-1], f"{name[-1]}#{arrays[name]}")
            elif self.text[start] == "[":
                self.at += 1
                table = self._key_path()
                self._expect("]")
            else:
                key = self._key_path()
                self._expect("=")
                self._blanks()
                begin = self.at
                value = self._value()
                found.append(Entry(table, key, value, self.text[begin:self.at], start, self.at))
            self._end_of_line()
        return found

    def _next_statement(self) -> bool:
        """Go to the next statement; return whether there is one."""
        self._space()
        return self.at < len(self.text)

    def _space(self) -> None:
        """Go over blanks, line ends and comments."""
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r\n\ufeff":
                self.at += 1
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1

    def _end_of_line(self) -> None:
        self._blanks()
        if self.at < len(self.text) and self.text[self.at] not in "\r\n#":
            raise self._error("something stands after the end of the statement")

    def _expect(self, what: str) -> None:
        self._blanks()
        if not self.text.startswith(what, self.at):
            raise self._error(f"{what} is missing")
        self.at += len(what)

    def _key_path(self) -> tuple[str, ...]:
        parts = [self._key()]
        self._blanks()
        while self.text.startswith(".", self.at):
            self.at += 1
            parts.append(self._key())
            self._blanks()
        return tuple(parts)

    def _key(self) -> str:
        self._blanks()
        if self.text[self.at:self.at + 1] in ('"', "'"):
            return self._string(multiline=False)
        bare = _BARE.match(self.text, self.at)
        if bare is None:
            raise self._error("a key is missing")
        self.at = bare.end()
        return bare[0]

    def _value(self) -> Any:
        first = self.text[self.at:self.at + 1]
        if first in ('"', "'"):
            return self._string()
        if first == "[":
            return self._array()
        if first == "{":
            return self._inline_table()
        for word, value in (("true", True), ("false", False)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        date = _DATE.match(self.text, self.at)
        if date is not None:
            self.at = date.end()
            return None
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            raise self._error("a value is missing or not TOML")
        self.at = number.end()
        digits = number[0].replace("_", "")
        return int(digits, 0 if digits[:2] in ("0x", "0o", "0b") else 10) if re.fullmatch(r"[+-]?[0-9]+|0[xob].+", digits) else float(digits)

    def _array(self) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while True:
            self._space()
            if self.text.startswith("]", self.at):
                self.at += 1
                return items
            if items and not self.text.startswith(",", self.at):
                raise self._error("an array does not end")
            if items:
                self.at += 1
                self._space()
                if self.text.startswith("]", self.at):
                    continue
            items.append(self._value())

    def _inline_table(self) -> None:
        """Go over an inline table; its contents are not read."""
        self.at += 1
        while True:
            self._space()
            if self.text.startswith("}", self.at):
                self.at += 1
                return
            if self.text.startswith(",", self.at):
                self.at += 1
                continue
            self._key_path()
            self._expect("=")
            self._blanks()
            self._value()

    def _string(self, multiline: bool = True) -> str:
        quote = self.text[self.at]
        if multiline and self.text.startswith(quote * 3, self.at):
            return self._long_string(quote)
        start = self.at
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != "\n":
            char = self.text[self.at]
            self.at += 1
            if char == quote:
                return "".join(out)
            out.append(self._escaped() if char == "\\" and quote == '"' else char)
        self.at = start
        raise self._error("a string does not end")

    def _long_string(self, quote: str) -> str:
        start = self.at
        self.at += 3
        if self.text.startswith("\r\n", self.at):
            self.at += 2
        elif self.text.startswith("\n", self.at):
            self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            if self.text.startswith(quote * 3, self.at):
                self.at += 3
                while self.text.startswith(quote, self.at):  # up to two quotes may stand before the closing three
                    out.append(quote)
                    self.at += 1
                return "".join(out)
            char = self.text[self.at]
            self.at += 1
            if char == "\\" and quote == '"':
                rest = re.compile(r"[ \t]*\r?\n[ \t\r\n]*").match(self.text, self.at)
                if rest is not None:
                    self.at = rest.end()
                    continue
                char = self._escaped()
            out.append(char)
        self.at = start
        raise self._error("a string does not end")

    def _escaped(self) -> str:
        char = self.text[self.at:self.at + 1]
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        length = {"u": 4, "U": 8, "x": 2}.get(char, 0)
        digits = self.text[self.at:self.at + length]
        if not length or not re.fullmatch(f"[0-9a-fA-F]{{{length}}}", digits) or int(digits, 16) > 0x10FFFF:
            raise self._error("a string has an unknown escape")
        self.at += length
        return chr(int(digits, 16))

    def _error(self, why: str) -> TomlError:
        return TomlError(f"line {self.text.count(chr(10), 0, self.at) + 1}: {why}")
