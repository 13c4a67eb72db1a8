# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The environment of programs that work with a sandbox: what Ansible, kubectl and Helm leave behind goes to the cache, too.

`python -m sandbox.environment NAME COMMAND...` runs a command in it.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .artifacts import cache_folder
from .state import RunState

CHECKOUT = Path(__file__).resolve().parent.parent
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
#: A socket's path has at most 107 bytes. Ansible names a socket with 10 characters, and ssh adds 17 while it makes it.
_LONGEST_SOCKET_FOLDER = 107 - len("/0123456789.0123456789abcdef")


def complete_path(path: str) -> str:
    """Return ``path`` with the folders of a system's programs at its end that it lacks: root may come without sbin, as after `su`."""
    folders = [folder for folder in path.split(os.pathsep) if folder]
    return os.pathsep.join([*folders, *(folder for folder in _SYSTEM_FOLDERS if folder not in folders)])


def environment(cache: Path, name: str, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return ``base`` with what makes Ansible, Molecule, kubectl and Helm use the sandbox ``name`` and write below ``cache`` only.

    Connections are shared over sockets in the sandbox's own folder, where `down` finds and ends them; where their paths would be too long
    for a socket, connections are not shared. Makes the folder for temporary files.
    """
    state, temporary = RunState(cache, name), cache / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    shared = len(os.fsencode(state.control_sockets)) <= _LONGEST_SOCKET_FOLDER
    return {
        **base,
        "PATH": complete_path(base.get("PATH", "")),
        "GPUFLEET_SANDBOX": name,
        "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
        "ANSIBLE_HOME": str(cache / "ansible"),
        **({"ANSIBLE_SSH_CONTROL_PATH_DIR": str(state.control_sockets)} if shared else {"ANSIBLE_SSH_ARGS": "-o ControlMaster=no"}),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(cache / "molecule"),
        "TMPDIR": str(temporary),
        "KUBECACHEDIR": str(cache / "kube"),
        "HELM_CACHE_HOME": str(cache / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(cache / "helm" / "config"),
        "HELM_DATA_HOME": str(cache / "helm" / "data"),
    }


def main(arguments: list[str]) -> None:
    """Become the command ``arguments[1:]`` in the environment for the sandbox ``arguments[0]``."""
    name, *command = arguments
    os.execvpe(command[0], command, environment(cache_folder(), name))


if __name__ == "__main__":
    main(sys.argv[1:])
