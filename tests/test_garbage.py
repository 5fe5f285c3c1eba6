import gc
import threading

import pytest

from whyscore.garbage import collect_rarely, gc_paused


def test_thresholds_come_back_when_the_last_of_overlapping_blocks_ends() -> None:
    before = gc.get_threshold()
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with collect_rarely():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=work)
    with collect_rarely():
        thread.start()
        entered.wait()
    assert gc.get_threshold()[0] > before[0]
    leave.set()
    thread.join()
    assert gc.get_threshold() == before


def test_thresholds_come_back_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), collect_rarely(), collect_rarely():
        {}["missing"]
    assert gc.get_threshold() == before


def test_a_pause_inside_a_pause_goes_on() -> None:
    with gc_paused():
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
