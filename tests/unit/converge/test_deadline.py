# Copyright: (c) 2026, gpufleet.dra contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Bounded phases: what is given up, and that nothing is begun after that."""
from __future__ import annotations

import threading
import time

import pytest
from ansible_collections.gpufleet.dra.plugins.module_utils.converge.deadline import CREATE, DESTROY, Overrun, PhaseClock, run_bounded

LIMIT_S = 0.2


def test_results_and_errors_come_through() -> None:
    assert run_bounded(lambda: 7, PhaseClock(60)) == 7
    with pytest.raises(ZeroDivisionError):
        run_bounded(lambda: 1 // 0, PhaseClock(60))


def test_a_call_that_hangs_is_given_up_and_named() -> None:
    clock, release, after = PhaseClock(LIMIT_S), threading.Event(), []

    def work() -> None:
        clock.enter(DESTROY, "GPU 0")
        clock.check("destroy it")
        release.wait(60)
        try:
            clock.check("destroy the next one")
        except Overrun as overrun:
            after.append(overrun)

    began = time.monotonic()
    with pytest.raises(Overrun) as caught:
        run_bounded(work, clock)
    assert time.monotonic() - began < 30
    assert (caught.value.phase, caught.value.subject, caught.value.act, caught.value.limit_s) == (DESTROY, "GPU 0", "destroy it", LIMIT_S)
    release.set()
    next(thread for thread in threading.enumerate() if thread.name == "mig-engine").join(60)
    assert len(after) == 1, "the call came back, and nothing more was begun"


def test_a_call_that_comes_back_late_counts_before_the_next_begins() -> None:
    clock = PhaseClock(LIMIT_S)
    clock.enter(CREATE, "GPU 0")
    clock.check("create it")
    time.sleep(1.5 * LIMIT_S)
    with pytest.raises(Overrun, match="create it"):
        clock.enter(DESTROY, "GPU 1")
    with pytest.raises(Overrun):
        clock.check("anything else")


def test_each_phase_has_its_own_time_and_waiting_on_purpose_does_not_count() -> None:
    clock = PhaseClock(4 * LIMIT_S)
    for number in range(4):
        clock.enter(DESTROY, f"GPU {number}")
        time.sleep(1.5 * LIMIT_S)
    for _number in range(4):
        time.sleep(1.5 * LIMIT_S)
        clock.restart()
    clock.check()
    assert 0 < clock.left_s() <= 4 * LIMIT_S
