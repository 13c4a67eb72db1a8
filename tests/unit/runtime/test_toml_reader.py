# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The small TOML reader against the standard library's, on what containerd 1.7.24 and 2.1.9 really print and on what people write."""
from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.runtime.toml_reader import TomlError, entries, values

DATA = Path(__file__).resolve().parent / "data"


def flat(table: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found.update(flat(value, (*path, key)))
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for number, item in enumerate(value):
                found.update(flat(item, (*path[:], f"{key}#{number}")))
        else:
            found[(*path, key)] = value
    return found


@pytest.mark.parametrize("path", sorted(DATA.glob("*.toml")), ids=lambda path: path.stem)
def test_real_configurations_read_as_the_standard_library_reads_them(path: Path) -> None:
    text = path.read_text()
    assert values(text) == flat(tomllib.loads(text))


@pytest.mark.parametrize("text", [
    'a = 1\nb = "x # no comment" # comment\n',
    "a = 'C:\\temp'\n\n[t.'io.x.v1'.u]\nb = [\n  'one', # first\n  \"two\",\n]\n",
    'a.b.c = true\n["q\\u00e9".r]\nd = -1_000\ne = 0x1f\nf = 1.5e3\n',
    'a = """\nline one\\\n   joined "quoted"\n"""\nb = \'\'\'raw \\n\'\'\'\n',
    "\ufeffa = []\r\nb = [[1, 2], ['x']]\r\n",
    "[[t]]\na = 1\n[[t]]\na = 2\n",
    "",
])
def test_what_people_write_reads_as_the_standard_library_reads_it(text: str) -> None:
    assert values(text) == flat(tomllib.loads(text.removeprefix("\ufeff")))


@pytest.mark.parametrize(("text", "line"), [
    ("a = 1\n[x", 2),
    ("a = \n", 1),
    ("a = [1, 2\n", 2),
    ('a = "x\n', 1),
    ("a = 1 b = 2\n", 1),
    ("= 1\n", 1),
    ('a = "\\q"\n', 1),
    ("x\na = 1\n", 1),
    ("a = 1\n\na = 2\n", 3),
    ('a = """x\n', 1),
    ('a = "\\uD8"\n', 1),
])
def test_what_is_no_toml_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    with pytest.raises(TomlError, match=f"^line {line}: "):
        values(text)


def test_a_statement_is_found_where_it_stands() -> None:
    text = "version = 2\n# imports = []\nimports = [\n  'a', # why\n  'b',\n]\n[t]\nimports = 1\n"
    found = entries(text)[1]
    assert text[found.start:found.end] == "imports = [\n  'a', # why\n  'b',\n]" and found.value == ["a", "b"] and found.path == ("imports",)


def test_what_is_not_read_is_kept_as_text() -> None:
    assert values("a = 1979-05-27T07:32:00Z\nb = {x = 1, y = ['}']}\n") == {("a",): "1979-05-27T07:32:00Z", ("b",): "{x = 1, y = ['}']}"}
