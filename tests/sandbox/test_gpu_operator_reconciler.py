# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs the Go tests of the operator stand-in in the module graph and with the flags that its binary is built with."""
from __future__ import annotations

import re

from sandbox.artifacts import QUIET, Settings
from sandbox.artifacts.golang import toolchain
from sandbox.artifacts.settings import KUBERNETES_GRAPH


def test_go_tests_pass() -> None:
    settings = Settings.from_environment()
    command = ["test", "-trimpath", "-vet=all", "-v", "gpufleet.dra/sandbox/gpu-operator/..."]
    output = toolchain(settings, QUIET).run("the tests of the operator stand-in fail", command, KUBERNETES_GRAPH, settings)
    passed = set(re.findall(r"^--- PASS: (\w+)", output, re.MULTILINE))
    assert {"TestPatch", "TestSetStatus", "TestPluginPod", "TestDeletionDrainsClaimHoldersFirst", "TestFind"} <= passed
