# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options and abilities that the modules which load NVML on the node share."""
from __future__ import annotations


class ModuleDocFragment:
    """Fragment ``gpufleet.dra.nvml``."""

    DOCUMENTATION = r"""
options:
  driver_root:
    description:
      - Folder on the node below which the NVIDIA driver is installed. It decides which C(libnvidia-ml.so.1) and which C(nvidia-smi) are used.
      - V(/run/nvidia/driver) for a driver that runs in a container.
    type: path
    default: /
  pynvml_path:
    description:
      - Folder or archive on the node that holds C(pynvml.py). It is put before everything else on Python's search path.
      - The action plugin sets this option to the copy that it carries to the node, so leave it out.
    type: path
requirements:
  - Python >= 3.9 on the node.
  - nvidia-ml-py >= 13.580 on the controller, from where it is carried to the node. Without it, on the node.
  - The NVIDIA driver on the node.
"""
