# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Action plugin of dra_node_pause: finds the kubeconfig on the controller and runs the module."""
from __future__ import annotations

from ansible_collections.gpufleet.dra.plugins.plugin_utils.kubeconfig import KubeconfigAction


class ActionModule(KubeconfigAction):
    """Nothing beyond what all modules for the Kubernetes API need."""
