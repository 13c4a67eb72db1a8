# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the boot service needs of a kubelet's kubeconfig: the server, who is trusted, and the paths of the client certificate. Never a key itself."""
from __future__ import annotations

import base64
import ipaddress
import posixpath
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import yaml
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError, finding

# Credentials that the boot service could not use, or would have to store.
_REFUSED_OF_USER = {
    "client-certificate-data": "its client certificate stands in the kubeconfig instead of in a file",
    "client-key-data": "its client key stands in the kubeconfig instead of in a file",
    "exec": "it gets its credentials from a program",
    "auth-provider": "it gets its credentials from a provider",
    "token": "it uses a token",
    "tokenFile": "it uses a token",
    "username": "it uses a password",
}
_REFUSED_OF_CLUSTER = {
    "insecure-skip-tls-verify": "it does not verify the API server",
    "proxy-url": "it uses a proxy",
    "tls-server-name": "it expects another name in the API server's certificate",
}


def kubelet_access(text: str, path: str, api_server: str | None = None) -> dict[str, str]:
    """Return server, certificate, key and either ca_file or ca_pem of the kubeconfig ``text``, which lies at ``path`` on the node.

    ``api_server`` replaces its server. Relative paths count from the kubeconfig's folder, as kubectl has it.
    Raises FleetError KubeletCredentialsUnusable.
    """
    def refuse(why: str) -> FleetError:
        return FleetError(finding("KubeletCredentialsUnusable", path, why=why))

    cluster, user = _current(text, refuse)
    for section, refused in ((cluster, _REFUSED_OF_CLUSTER), (user, _REFUSED_OF_USER)):
        for key, why in refused.items():
            if section.get(key):
                raise refuse(why)
    if not user.get("client-certificate") or not user.get("client-key"):
        raise refuse("it names no client certificate and key")
    server = api_server or str(cluster.get("server"))
    folder = posixpath.dirname(path)
    return {
        "server": _reachable_at_boot(server, refuse),
        "certificate": posixpath.join(folder, str(user["client-certificate"])),
        "key": posixpath.join(folder, str(user["client-key"])),
        **_authority(cluster, folder, refuse),
    }


def _current(text: str, refuse: Callable[[str], FleetError]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return cluster and user of the current context."""
    try:
        config = yaml.safe_load(text)
        context = _named(config, "context", config["current-context"])
        return _named(config, "cluster", context["cluster"]), _named(config, "user", context["user"])
    except yaml.YAMLError:
        raise refuse("it is not YAML") from None
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise refuse("its current context does not name a cluster and a user that it has") from None


def _named(config: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    return dict(next(item[kind] for item in config[f"{kind}s"] if item["name"] == name))


def _authority(cluster: dict[str, Any], folder: str, refuse: Callable[[str], FleetError]) -> dict[str, str]:
    if cluster.get("certificate-authority-data"):
        try:
            return {"ca_pem": base64.b64decode(cluster["certificate-authority-data"]).decode("ascii")}
        except (TypeError, ValueError):
            raise refuse("its certificate-authority-data is not a certificate in base64") from None
    if cluster.get("certificate-authority"):
        return {"ca_file": posixpath.join(folder, str(cluster["certificate-authority"]))}
    raise refuse("it names no certificate authority for the API server")


def _reachable_at_boot(server: str, refuse: Callable[[str], FleetError]) -> str:
    """Return ``server``. k3s and RKE2 give the kubelet an address of their own process, which answers only when they run: too late."""
    try:
        url = urlsplit(server)
        usable = url.scheme == "https" and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise refuse(f"the API server {server} is not an https address")
    if url.hostname == "localhost" or _is_loopback(str(url.hostname)):
        raise refuse(f"the API server {server} is on the node itself, and does not answer before the kubelet runs")
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
