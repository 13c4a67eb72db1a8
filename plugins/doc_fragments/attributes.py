# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the modules can do, in the words that Ansible's documentation uses for it."""
from __future__ import annotations


class ModuleDocFragment:
    """Documentation that modules share: the fragment itself, and one more per action group."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return changed status prediction without modifying the target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
  idempotent:
    description: A second run with the same options changes nothing, unless something else has changed the target in between.
"""

    KUBERNETES = r"""
options: {}
attributes:
  action_group:
    description: Use C(group/gpufleet.dra.k8s) in C(module_defaults) to set the authentication options for all modules of the group.
    support: full
    membership:
      - gpufleet.dra.k8s
requirements:
  - kubernetes >= 32.0.1
  - kubernetes.core collection >= 6.5.0
"""
