# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The sandbox as an Ansible inventory: how its hosts are reached, and nothing about what they should become."""
from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from .artifacts import Settings
from .nodes.hosts import Hosts
from .nodes.ssh import USER

GROUP = "sandbox_hosts"


def report_folder(settings: Settings, name: str) -> Path:
    """Return the folder for verdicts about the sandbox ``name``: in the cache, but kept when the sandbox is taken down."""
    return settings.cache / "reports" / name


def document(hosts: Hosts, settings: Settings) -> dict[str, Any]:
    """Return what an inventory script prints for ``--list``.

    Host variables are Ansible's own connection variables. With Kubernetes every host gets ``dra_k8s_auth`` (the administrator's kubeconfig),
    ``sandbox_bin_dir`` (the folder with kubectl and helm) and ``sandbox_report_dir``.
    """
    access = hosts.access
    records = hosts.all()
    variables: dict[str, Any] = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(access.private_key),
        "ansible_ssh_common_args": shlex.join(access.options()),
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    if hosts.plane is not None:
        variables["dra_k8s_auth"] = {"kubeconfig": str(hosts.state.admin_kubeconfig)}
        variables["sandbox_bin_dir"] = str(hosts.state.bin)
        variables["sandbox_report_dir"] = str(report_folder(settings, hosts.state.name))
    return {
        "_meta": {"hostvars": {host.name: {"ansible_host": host.address} for host in records}},
        "all": {"children": [GROUP]},
        GROUP: {"hosts": [host.name for host in records], "vars": variables},
    }
