# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A pynvml made of the functions that a test gives, for what the emulator does not do."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ansible_collections.gpufleet.dra.plugins.module_utils.nvml.session import NvmlSession


class FakeError(Exception):
    """Stands in for pynvml.NVMLError: ``value`` is the NVML code."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


def session_over(library: Any = None, **functions: Any) -> NvmlSession:
    """Return an open session over a pynvml that has only these functions, over a library that has only those of ``library``.

    A function that is not given answers FUNCTION_NOT_FOUND.
    """
    session = NvmlSession()
    session._pynvml = _FakePynvml(library, functions)
    return session


class _FakePynvml(SimpleNamespace):
    NVMLError = FakeError

    def __init__(self, library: Any, functions: dict[str, Any]) -> None:
        super().__init__(nvmlLib=library, **functions)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        return failing(13)


def failing(code: int) -> Any:
    """Return a function that always fails with this code."""
    def fail(*_args: Any) -> None:
        raise FakeError(code)

    return fail
