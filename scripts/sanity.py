#!/usr/bin/env python3
# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run `ansible-test sanity` over what the collection publishes, with PyPI as the only thing that has to be reachable.

ansible-test insists on a real ansible_collections/gpufleet/dra folder (links are refused) and fetches pip's bootstrap script from a server of
its own. So the files of the collection archive (tracked, and not in galaxy.yml's build_ignore) are copied to such a folder in the cache, and the
bootstrap script is one of ours that lets ensurepip do the work. ansible-test's own environments stay in the cache between runs.
"""
from __future__ import annotations

import fnmatch
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml
from ansible_test._internal import python_requirements

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("GPUFLEET_SANDBOX_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpufleet-dra")

BOOTSTRAP = '''\
import ensurepip, subprocess, sys
ensurepip.bootstrap()
args = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
raise SystemExit(subprocess.call([sys.executable, "-m", "pip", "install", *args]))
'''


def pinned_pip() -> str:
    """Return the pip version that this ansible-core pins; it is part of the bootstrap script's file name."""
    found = re.search(r"pip='([0-9.]+)'", inspect.getsource(python_requirements.get_venv_packages))
    if not found:
        raise SystemExit("scripts/sanity.py: this ansible-core pins pip in a way that the script does not know")
    return found.group(1)


def published_files() -> list[str]:
    """Return the files of the collection archive, relative to the checkout: all that git knows, less galaxy.yml's build_ignore."""
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["build_ignore"]
    # the checkout may belong to another user than root
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")

    def is_ignored(name: str) -> bool:
        parents = [name, *(str(parent) for parent in Path(name).parents)]
        return any(fnmatch.fnmatch(part, pattern) for part in parents for pattern in ignored)

    return [name for name in listed if name and (ROOT / name).is_file() and not is_ignored(name)]


def lay_out(target: Path) -> None:
    """Copy the published files to ``target`` and make it a git work tree, as ansible-test wants it."""
    shutil.rmtree(target, ignore_errors=True)
    for name in published_files():
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy)
    subprocess.run(["git", "init", "-q"], cwd=target, check=True)
    subprocess.run(["git", "add", "-A"], cwd=target, check=True)


def main() -> int:
    home = CACHE / "sanity"
    script = home / ".ansible" / "test" / "cache" / f"get_pip_{pinned_pip().replace('.', '_')}.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(BOOTSTRAP, encoding="utf-8")

    tree = home / "ansible_collections"
    target = tree / "gpufleet" / "dra"
    lay_out(target)
    shutil.rmtree(tree / "kubernetes", ignore_errors=True)
    shutil.copytree(ROOT / ".build" / "collections" / "ansible_collections" / "kubernetes", tree / "kubernetes")

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = [str(Path(sys.executable).with_name("ansible-test")), "sanity", "--local", "--python", version, "--color", "no", *sys.argv[1:]]
    environment = dict(os.environ, HOME=str(home), PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    environment.pop("PYTHONPATH", None)
    return subprocess.run(command, cwd=target, env=environment, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
