# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The run before this step changed nothing: it has executed few modules on each host, for both roles where there is a container runtime."""
from __future__ import annotations

import json

from driver_host import SCRATCH, DriverHost

MOST_EXECUTIONS = 12
WITH_RUNTIME = "debian12"


def test_a_run_that_changes_nothing_executes_few_modules(driver: DriverHost) -> None:
    executions = [row for row in json.loads((SCRATCH / "executions.json").read_text())["executions"] if row["host"] == driver.name]
    assert 0 < len(executions) <= MOST_EXECUTIONS, [f"{row['task']}: {row['module']}" for row in executions]
    roles = {"driver_info"} | ({"cdi_runtime_info"} if driver.name == WITH_RUNTIME else set())
    assert roles <= {row["module"].rpartition(".")[2] for row in executions}
