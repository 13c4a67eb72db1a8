# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes container images as docker archives (what ``ctr images import`` reads), the same bytes for the same content."""
from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass
class Image:
    """One image of one layer, for linux/amd64.

    ``files``: path in the image (no leading slash) to (content, mode). ``links``: path to target. ``folders``: empty folders; the parents of
    files and links come by themselves. ``config``: the image's run configuration (Entrypoint, Cmd, Env).
    """

    reference: str
    config: dict[str, Any]
    files: dict[str, tuple[bytes | Path, int]] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def write(self, target: Path) -> None:
        """Write the archive to ``target``. Raises OSError when a file cannot be read or written."""
        with tempfile.TemporaryFile(dir=target.parent) as layer:
            with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
                self._fill(tar)
            layer_size = layer.tell()
            layer.seek(0)
            layer_sum = hashlib.file_digest(layer, "sha256").hexdigest()
            layer.seek(0)
            config = _json(
                {
                    "architecture": "amd64",
                    "os": "linux",
                    "config": self.config,
                    "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_sum}"]},
                }
            )
            config_name = hashlib.sha256(config).hexdigest() + ".json"
            layer_name = f"{layer_sum}/layer.tar"
            manifest = _json([{"Config": config_name, "RepoTags": [self.reference], "Layers": [layer_name]}])
            with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
                _add(tar, config_name, config, 0o644)
                info = tarfile.TarInfo(layer_name)
                info.size = layer_size
                tar.addfile(info, layer)
                _add(tar, "manifest.json", manifest, 0o644)

    def _fill(self, tar: tarfile.TarFile) -> None:
        names = {*self.files, *self.links, *self.folders}
        folders = self.folders | {str(parent) for name in names for parent in PurePosixPath(name).parents} - {"."}
        for name in sorted(names | folders):
            if name in self.links:
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, self.links[name], 0o777
                tar.addfile(info)
            elif name in self.files:
                content, mode = self.files[name]
                _add(tar, name, content if isinstance(content, bytes) else content.read_bytes(), mode)
            else:
                info = tarfile.TarInfo(name)
                info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                tar.addfile(info)


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
