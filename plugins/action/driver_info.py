# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action plugin of driver_info: carries nvidia-ml-py to the node and runs the module there."""
from __future__ import annotations

from ansible_collections.gpufleet.dra.plugins.plugin_utils.nvml_action import NvmlAction


class ActionModule(NvmlAction):
    """Nothing beyond what all NVML modules need."""
