# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""YAML files that users give: read into plain data of bounded size, which can travel to a node as JSON, or refused in words."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.gpufleet.dra.plugins.module_utils.mig.shown import shown

_MOST_BYTES = 1 << 20
_MOST_VALUES = 100_000
_SCALARS = (str, int, float, type(None))


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file: mappings, lists, text, numbers, booleans, None.

    Raises OSError, and ValueError for a file that is none, is too large or holds something else; its text continues a sentence about the file.
    """
    with path.open("rb") as stream:
        raw = stream.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
    content = _parse(raw)
    _check(content)
    return content


def _parse(raw: bytes) -> Any:
    try:
        return yaml.safe_load(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f" at line {error.problem_mark.line + 1}"
        raise ValueError(f"it is not YAML{line}: {error.problem}") from error
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {error}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except ValueError as error:  # looks like a date or a number, and is none
        raise ValueError(f"it has a value that cannot be read: {error}") from error


def _check(content: Any) -> None:
    """Refuse what JSON has no form for, and what a few lines of aliases unfold to, which may be endless. Raises ValueError."""
    waiting, count = [content], 0
    while waiting:
        value = waiting.pop()
        count += len(value) if isinstance(value, (dict, list)) else 0
        if count > _MOST_VALUES:
            raise ValueError(f"it has more than {_MOST_VALUES} values, counting what its aliases stand for")
        if isinstance(value, dict):
            odd = [key for key in value if not isinstance(key, _SCALARS)]
            waiting.extend(value.values())
        elif isinstance(value, list):
            odd = []
            waiting.extend(value)
        else:
            odd = [] if isinstance(value, _SCALARS) else [value]
        if odd:
            raise ValueError(f"{shown(odd[0])} in it is no text, number, list or mapping; write it in quotes if text is meant")
