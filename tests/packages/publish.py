# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fills the package server of a sandbox: NVIDIA's repositories, the distribution's own, and drivers of other origins."""
from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sandbox.artifacts import Progress, Settings
from sandbox.artifacts.store import digest, file_digest, tree_digest
from sandbox.nodes import kernel_module
from sandbox.nodes.systems import family, server_url
from sandbox.nvml.build import build
from sandbox.state import RunState

from . import deb, keys, rpm, surroundings
from .contents import Layout
from .stub import Stub
from .table import FOLDERS, nvidia_packages
from .tools import Tools, tools

REPOSITORIES = "compute/cuda/repos"
"""Where NVIDIA's repositories lie on their server and on this one."""

HERE = Path(__file__).resolve().parent


def publish(
    state: RunState, settings: Settings, progress: Progress, versions: Sequence[str], systems: Sequence[str], key: str = keys.NAMES[0]
) -> dict[str, Any]:
    """Publish the stub packages of ``versions`` for ``systems``, in the place of what was published for these systems before.

    Returns the addresses and the key: ``{"url": base of NVIDIA's repositories, "fingerprint": ..., "systems": {system: {...}}}``.
    """
    url = server_url(state.addresses.gateway)
    served = state.root / "packages"
    served.mkdir(exist_ok=True)
    answer: dict[str, Any] = {"url": f"{url}/{REPOSITORIES}", "versions": list(versions), "systems": {}}
    with tools(settings, progress) as tool:
        signer = keys.Signer(keys.find(key, settings, tool), tool)
        try:
            answer["fingerprint"] = signer.key.fingerprint
            for system in systems:
                with progress.step(f"publishing stub packages for {system}"):
                    answer["systems"][system] = _publish_system(Publisher(settings, tool, signer, served, system), versions, url)
        finally:
            signer.close()
    return answer


def _publish_system(publisher: Publisher, versions: Sequence[str], url: str) -> dict[str, str]:
    system = publisher.system
    folder, key_file = FOLDERS[system]
    place = f"{REPOSITORIES}/{folder}/x86_64"
    stubs = [stub for version in versions for stub in nvidia_packages(system, version)]
    sets = [nvidia_packages(system, version) for version in versions]
    publisher.repository(place, sets, ("NVIDIA", "NVIDIA CUDA"), signed=True, modules=_modules(system, stubs))
    (publisher.served / place / key_file).write_text(publisher.signer.key.public)
    if family(system) == "rpm":
        (publisher.served / place / f"cuda-{folder}.repo").write_text(_REPO.format(folder=folder, url=f"{url}/{place}", key=key_file))
    origin = "Ubuntu" if system == "ubuntu2404" else "Debian"
    publisher.repository(f"system/{system}", [surroundings.distribution(system)], (origin, origin), signed=False)
    publisher.repository(f"drivers/{system}", [surroundings.other_drivers(system)], (origin, origin), signed=False)
    return {
        "repository": f"{url}/{place}/", "key": f"{url}/{place}/{key_file}", "system": f"{url}/system/{system}/", "drivers": f"{url}/drivers/{system}/",
    }


_REPO = """\
[cuda-{folder}-x86_64]
name=cuda-{folder}-x86_64
baseurl={url}
enabled=1
gpgcheck=1
gpgkey={url}/{key}
"""


def _modules(system: str, stubs: Sequence[Stub]) -> str:
    """Return the module metadata of EL9; the default stream is the newest open one, as NVIDIA's open-dkms is."""
    streams = {stream for stub in stubs for stream in stub.streams}
    return rpm.modules_document(stubs, max(stream for stream in streams if stream.endswith("-open"))) if streams else ""


class Publisher:
    """Makes repositories of one system below the served folder."""

    def __init__(self, settings: Settings, tool: Tools, signer: keys.Signer, served: Path, system: str) -> None:
        self.settings, self.tool, self.signer, self.served, self.system = settings, tool, signer, served, system
        libraries = "usr/lib/x86_64-linux-gnu" if family(system) == "apt" else "usr/lib64"
        self.layout = Layout(libraries, platform.release())

    def repository(self, place: str, sets: list[list[Stub]], origin: tuple[str, str], signed: bool, modules: str = "") -> None:
        """Make the repository at ``place`` with the packages of ``sets``, each of which is built once per content. It appears whole, by a rename."""
        work = self.tool.scratch / "repository"
        for stubs in sets:
            self.tool.link(sorted(self._packages(stubs, signed).iterdir()), work)
        if family(self.system) == "apt":
            deb.index(work, work.glob("*.deb"), *origin)
            for path in work.glob("*.control"):
                path.unlink()
            if signed:
                self.signer.release(work)
        else:
            rpm.index(work, self.tool, modules)
            if signed:
                self.signer.metadata(work)
        target = self.served / place
        target.parent.mkdir(parents=True, exist_ok=True)
        old = target.with_name(f".{target.name}.old")
        if target.exists():
            target.rename(old)
        os.rename(work, target)
        shutil.rmtree(old, ignore_errors=True)

    def _packages(self, stubs: list[Stub], signed: bool) -> Path:
        """Return the folder with the built packages; .rpm are signed one by one."""
        apt = family(self.system) == "apt"
        emulators = [build(driver_version=version).name for version in sorted({stub.driver for stub in stubs if stub.driver})]
        parts = [[asdict(stub) for stub in stubs], asdict(self.layout), emulators, tree_digest(HERE), file_digest(Path(kernel_module.__file__)), apt]
        store = self.settings.store

        def make(place: Path) -> None:
            if apt:
                for stub in stubs:
                    deb.write(stub, self.layout, place)
            else:
                rpm.build(stubs, self.layout, place, self.tool)

        plain = store.publish("stubs", digest(parts), make)
        if apt or not signed:
            return plain

        def sign(place: Path) -> None:
            work = self.tool.scratch / "signing"
            shutil.copytree(plain, work)
            self.signer.packages(sorted(work.iterdir()))
            for path in work.iterdir():
                shutil.move(path, place / path.name)
            work.rmdir()

        return store.publish("stubs-signed", digest([*parts, self.signer.key.fingerprint]), sign)
