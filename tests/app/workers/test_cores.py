import os
from pathlib import Path

import pytest

from leader_hints.app.workers.cores import usable_cores, worker_count
from tests.settings.samples import settings_of


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max 100000\n", 1000),
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("what is this\n", 1000),
        ("", 1000),
    ],
)
def test_a_containers_limit_counts(tmp_path: Path, text: str, most: int) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(text)
    assert usable_cores(quota) == min(len(os.sched_getaffinity(0)), most)


def test_without_a_limit_it_is_what_the_system_allows(tmp_path: Path) -> None:
    assert usable_cores(tmp_path / "none") == len(os.sched_getaffinity(0))


def test_settings_say_how_many_or_leave_it_to_the_machine() -> None:
    assert worker_count(settings_of()) == 1
    assert worker_count(settings_of(workers=3)) == 3
    assert worker_count(settings_of(workers="auto")) == usable_cores()
