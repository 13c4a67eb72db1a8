# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is taken from a kubelet's kubeconfig, and which kubeconfigs are refused."""
from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
import yaml
from ansible_collections.gpufleet.dra.plugins.module_utils.reasons import FleetError
from ansible_collections.gpufleet.dra.plugins.plugin_utils.kubelet_access import kubelet_access

PATH = "/etc/kubernetes/kubelet.conf"
PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
# As kubeadm leaves it after the kubelet's first certificate rotation.
KUBEADM: dict[str, Any] = {
    "apiVersion": "v1", "kind": "Config", "current-context": "default",
    "clusters": [{"name": "default-cluster", "cluster": {"certificate-authority-data": base64.b64encode(PEM.encode()).decode(), "server": "https://10.0.0.1:6443"}}],
    "contexts": [{"name": "default", "context": {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"}}],
    "users": [{"name": "default-auth", "user": {"client-certificate": CURRENT, "client-key": CURRENT}}],
}
K3S = """
apiVersion: v1
clusters:
- cluster: {server: "https://127.0.0.1:6444", certificate-authority: server-ca.crt}
  name: local
contexts:
- context: {cluster: local, namespace: default, user: user}
  name: Default
current-context: Default
kind: Config
users:
- name: user
  user: {client-certificate: /k3s/agent/client-kubelet.crt, client-key: /k3s/agent/client-kubelet.key}
"""


def changed(**parts: dict[str, Any]) -> str:
    config = copy.deepcopy(KUBEADM)
    config["clusters"][0]["cluster"].update(parts.get("cluster", {}))
    config["users"][0]["user"].update(parts.get("user", {}))
    return yaml.safe_dump(config)


def test_a_kubeconfig_of_kubeadm() -> None:
    assert kubelet_access(yaml.safe_dump(KUBEADM), PATH) == {"server": "https://10.0.0.1:6443", "ca_pem": PEM, "certificate": CURRENT, "key": CURRENT}


def test_a_kubeconfig_of_k3s_with_another_server() -> None:
    assert kubelet_access(K3S, "/k3s/agent/kubelet.kubeconfig", "https://10.0.0.1:6443") == {
        "server": "https://10.0.0.1:6443", "ca_file": "/k3s/agent/server-ca.crt",
        "certificate": "/k3s/agent/client-kubelet.crt", "key": "/k3s/agent/client-kubelet.key",
    }


REFUSED = {
    "own_address": (K3S, "does not answer before the kubelet runs"),
    "localhost": (changed(cluster={"server": "https://localhost:6443"}), "does not answer before the kubelet runs"),
    "no_tls": (changed(cluster={"server": "http://10.0.0.1:8080"}), "is not an https address"),
    "unverified": (changed(cluster={"insecure-skip-tls-verify": True}), "does not verify the API server"),
    "proxy": (changed(cluster={"proxy-url": "http://proxy"}), "uses a proxy"),
    "broken_address": (changed(cluster={"server": "https://[::1"}), "is not an https address"),
    "no_such_port": (changed(cluster={"server": "https://10.0.0.1:99999"}), "is not an https address"),
    "odd_authority": (changed(cluster={"certificate-authority-data": base64.b64encode("# Zürich\n".encode()).decode()}), "is not a certificate in base64"),
    "no_base64": (changed(cluster={"certificate-authority-data": "a"}), "is not a certificate in base64"),
    "no_authority": (changed(cluster={"certificate-authority-data": None}), "names no certificate authority"),
    "inline_key": (changed(user={"client-key-data": "LS0t"}), "client key stands in the kubeconfig"),
    "inline_certificate": (changed(user={"client-certificate-data": "LS0t"}), "client certificate stands in the kubeconfig"),
    "exec": (changed(user={"exec": {"command": "aws"}}), "from a program"),
    "token": (changed(user={"token": "abcdef.0123456789abcdef"}), "uses a token"),
    "no_certificate": (changed(user={"client-certificate": None, "client-key": None}), "names no client certificate and key"),
    "no_context": (yaml.safe_dump({**KUBEADM, "current-context": ""}), "current context"),
    "empty": ("", "current context"),
    "no_mapping": ("- a\n- b\n", "current context"),
    "no_yaml": ("a: [", "is not YAML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused_by_name(name: str) -> None:
    text, why = REFUSED[name]
    with pytest.raises(FleetError) as refused:
        kubelet_access(text, PATH)
    assert refused.value.finding.code == "KubeletCredentialsUnusable"
    assert str(refused.value).startswith(f"{PATH}: ") and why in str(refused.value)
    assert "abcdef.0123456789abcdef" not in str(refused.value) and "LS0t" not in str(refused.value)
