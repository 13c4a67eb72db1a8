# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Stub driver packages for tests: NVIDIA's names, versions, dependencies and repository layout, with the NVML emulator inside."""
