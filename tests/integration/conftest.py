# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One sandbox for all integration tests: the demo's fleet, converged by site.yml once.

GPUFLEET_TEST_SANDBOX names a running sandbox to use instead; it is then left running.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import Cluster, Done

NAME = "test"


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Cluster]:
    """A running cluster without anything of ours on it."""
    given = os.environ.get("GPUFLEET_TEST_SANDBOX")
    cluster = Cluster(given or NAME)
    if not given:
        cluster.sandbox("down")
        cluster.sandbox("up")
    yield cluster
    if not given:
        cluster.sandbox("down")


@pytest.fixture(scope="session")
def first_run(sandbox: Cluster) -> Done:
    """The first site run of the session."""
    return sandbox.playbook("site")


@pytest.fixture(scope="session")
def cluster(sandbox: Cluster, first_run: Done) -> Cluster:
    """The cluster as site.yml leaves it."""
    assert first_run.status == 0
    return sandbox


@pytest.fixture
def restored(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster for a test that damages it: site.yml makes it right again afterwards."""
    yield cluster
    cluster.playbook("site")


@pytest.fixture
def relaid(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster for a test that changes layouts or leaves a node out of service: mig.yml makes that right again."""
    yield cluster
    cluster.playbook("mig")
