# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Renders the stand-in's chart with helm: what it makes, what it refuses, and that its parts fit together."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.artifacts import QUIET, Settings, ensure, image_references

CHART = Path(__file__).resolve().parents[2] / "sandbox" / "gpu_operator" / "chart"
DRA = ("--api-versions", "resource.k8s.io/v1/DeviceClass")
HOST_DRIVER = ("--set", "clusterPolicy.deployCR=false,gpuCluster.deployCR=true,driver.enabled=false")

Manifest = dict[str, Any]


@pytest.fixture(scope="session")
def helm() -> Path:
    return ensure(["helm"], Settings.from_environment(), QUIET)["helm"]


def _template(helm: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm), "template", "gpu-operator", str(CHART), "--namespace", "gpu-operator", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _render(helm: Path, *arguments: str) -> list[Manifest]:
    done = _template(helm, *arguments)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def _only(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def _kinds(manifests: list[Manifest]) -> set[str]:
    return {one["kind"] for one in manifests} & {"GPUCluster", "NVIDIADriver", "ClusterPolicy"}


def test_version_is_the_operator_release_it_stands_in_for() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["name"], chart["version"], chart["appVersion"]) == ("gpu-operator", "26.7.2", "v26.7.2")
    assert "stand-in" in chart["description"]


def test_host_driver_install_makes_a_gpucluster_only(helm: Path) -> None:
    manifests = _render(helm, *DRA, *HOST_DRIVER)
    assert _kinds(manifests) == {"GPUCluster"}
    gpu_cluster = _only(manifests, "GPUCluster", "gpu-cluster")
    assert gpu_cluster["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert gpu_cluster["spec"]["draDriver"]["computeDomains"] == {"enabled": True}


def test_operator_driver_install_makes_a_default_nvidiadriver_too(helm: Path) -> None:
    values = "clusterPolicy.deployCR=false,gpuCluster.deployCR=true,driver.nvidiaDriverCRD.enabled=true"
    manifests = _render(helm, *DRA, "--set", values)
    assert _kinds(manifests) == {"GPUCluster", "NVIDIADriver"}
    driver = _only(manifests, "NVIDIADriver", "default")
    assert driver["spec"]["default"] is True
    assert "helm.sh/resource-policy" not in driver["metadata"].get("annotations", {})


def test_no_custom_resource_is_legal(helm: Path) -> None:
    assert _kinds(_render(helm, "--set", "clusterPolicy.deployCR=false")) == set()


def test_defaults_make_a_clusterpolicy(helm: Path) -> None:
    assert _kinds(_render(helm)) == {"ClusterPolicy"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*DRA, "--set", "gpuCluster.deployCR=true"), "cannot both be true"),
        ((*DRA, "--set", "gpuCluster.deployCR=true,clusterPolicy.deployCR=false"), "requires driver.nvidiaDriverCRD.enabled=true"),
        (HOST_DRIVER, "pass --api-versions resource.k8s.io/v1/DeviceClass"),
        (("--set", "platform.openshift=true"), "serves the sandbox only"),
    ],
)
def test_refusals(helm: Path, arguments: tuple[str, ...], sentence: str) -> None:
    done = _template(helm, *arguments)
    assert done.returncode != 0
    assert sentence in done.stderr


def test_values_reach_the_gpucluster(helm: Path, tmp_path: Path) -> None:
    kubelet_plugin = {"env": [{"name": "CONSUMABLE_SHARES", "value": "memory"}], "healthcheck": {"port": 51600}}
    values = tmp_path / "values.yaml"
    values.write_text(
        yaml.safe_dump(
            {
                "draDriver": {
                    "repository": "registry.example/nvidia",
                    "version": "v0.5.1",
                    "featureGates": {"TimeSlicingSettings": True},
                    "imagePullSecrets": ["pull"],
                    "gpus": {"kubeletPlugin": kubelet_plugin},
                    "computeDomains": {"enabled": False},
                },
                "dcgmExporter": {"enabled": False},
                "hostPaths": {"kubeletRootDir": "/data/kubelet"},
                "daemonsets": {"labels": {"team": "ml"}, "tolerations": [{"operator": "Exists"}]},
            }
        )
    )
    spec = _only(_render(helm, *DRA, *HOST_DRIVER, "--values", str(values)), "GPUCluster", "gpu-cluster")["spec"]
    assert spec["draDriver"] == {
        "repository": "registry.example/nvidia",
        "image": "dra-driver-nvidia-gpu",
        "version": "v0.5.1",
        "imagePullPolicy": "IfNotPresent",
        "imagePullSecrets": ["pull"],
        "featureGates": {"TimeSlicingSettings": True},
        "gpus": {"kubeletPlugin": kubelet_plugin},
        "computeDomains": {"enabled": False},
    }
    assert spec["dcgmExporter"]["enabled"] is False
    assert spec["hostPaths"] == {"driverInstallDir": "/run/nvidia/driver", "kubeletRootDir": "/data/kubelet"}
    assert spec["daemonsets"]["labels"] == {"team": "ml"}
    assert spec["daemonsets"]["tolerations"] == [{"operator": "Exists"}]


def test_images_are_the_ones_that_the_nodes_have(helm: Path) -> None:
    manifests = _render(helm, *DRA, *HOST_DRIVER)
    container = _only(manifests, "Deployment", "gpu-operator")["spec"]["template"]["spec"]["containers"][0]
    environment = {variable["name"]: variable.get("value") for variable in container["env"]}
    driver = _only(manifests, "GPUCluster", "gpu-cluster")["spec"]["draDriver"]
    used = {container["image"], environment["VALIDATOR_IMAGE"], f"{driver['repository']}/{driver['image']}:{driver['version']}"}
    assert used <= set(image_references(Settings.from_environment()).values())


def test_a_digest_is_written_as_a_digest(helm: Path) -> None:
    manifests = _render(helm, *DRA, *HOST_DRIVER, "--set", "operator.version=sha256:abc")
    container = _only(manifests, "Deployment", "gpu-operator")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "sandbox.local/gpu-operator@sha256:abc"


def test_operator_may_grant_what_the_plugin_gets(helm: Path) -> None:
    """An API server lets nobody create a ClusterRole with permissions that they do not hold."""
    held = _permissions(_only(_render(helm), "ClusterRole", "gpu-operator")["rules"])
    source = CHART.parent / "reconciler" / "internal" / "operands" / "manifests" / "dra-driver-rbac.yaml.tmpl"
    documents = yaml.safe_load_all(source.read_text().replace("{{ .Namespace }}", "gpu-operator"))
    (role,) = [document for document in documents if document["kind"] == "ClusterRole"]
    assert _permissions(role["rules"]) <= held


def test_cleanup_hook_runs_before_the_release_goes(helm: Path) -> None:
    manifests = _render(helm)
    job = _only(manifests, "Job", "gpu-operator-cleanup-gpucluster")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    role = _only(manifests, "ClusterRole", "gpu-operator-cleanup-gpucluster")
    assert int(role["metadata"]["annotations"]["helm.sh/hook-weight"]) < int(job["metadata"]["annotations"]["helm.sh/hook-weight"])


def test_no_rule_has_a_wildcard(helm: Path) -> None:
    roles = [one for one in _render(helm, *DRA, *HOST_DRIVER) if one["kind"] in {"Role", "ClusterRole"}]
    assert roles
    assert not [permission for role in roles for permission in _permissions(role["rules"]) if "*" in permission]


def test_every_value_is_explained() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    for number, line in enumerate(lines):
        key, _, value = line.partition(":")
        if re.fullmatch(r" *[A-Za-z]+", key) and value.strip() and not _within_explained_block(lines, number):
            assert lines[number - 1].strip().startswith("#"), f"values.yaml:{number + 1}: {line.strip()} has no comment above it"


def _within_explained_block(lines: list[str], number: int) -> bool:
    """Tell whether the line lies in a mapping whose own key has a comment right above it."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    for above in range(number - 1, 0, -1):
        line = lines[above]
        outer = len(line) - len(line.lstrip())
        if line.strip() and outer < indent and not line.lstrip().startswith("#"):
            if lines[above - 1].strip().startswith("#"):
                return True
            indent = outer
    return False


def test_schemas_are_structural() -> None:
    """Every object either lists its fields or says that it keeps unknown ones; lists say what they hold."""
    for path in sorted((CHART / "crds").glob("*.yaml")):
        definition = yaml.safe_load(path.read_text())
        for version in definition["spec"]["versions"]:
            for where, schema in _schemas(version["schema"]["openAPIV3Schema"], path.name):
                if where.endswith(".metadata"):
                    continue
                if schema.get("type") == "object":
                    assert {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(schema), where
                elif schema.get("type") == "array":
                    assert "items" in schema, where
                else:
                    assert "type" in schema or schema.get("x-kubernetes-int-or-string"), where


def _schemas(schema: Manifest, where: str) -> Iterator[tuple[str, Manifest]]:
    yield where, schema
    for name, child in schema.get("properties", {}).items():
        yield from _schemas(child, f"{where}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from _schemas(schema[key], f"{where}.{key}")


def _permissions(rules: list[Manifest]) -> set[tuple[str, str, str]]:
    """Return (API group, resource, verb) of rules that are not limited to names."""
    return {
        (group, resource, verb)
        for rule in rules
        if not rule.get("resourceNames")
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
