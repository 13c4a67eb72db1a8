# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Filter ``reason``: lets a role fail with the same sentence, code and remedy as a module."""
from __future__ import annotations

from typing import Any, Callable

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import finding


def reason(code: str, subject: str, **fields: Any) -> str:
    """Return the sentence of reason ``code`` about ``subject``. An unknown code or a missing field is the author's mistake."""
    try:
        return finding(code, subject, **fields).sentence()
    except KeyError as error:
        raise AnsibleFilterError(f"reason {code}: {error} is not in the registry or was not given") from error


class FilterModule:
    """Names the filter for Ansible."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters of this file by name."""
        return {"reason": reason}
