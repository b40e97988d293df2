"""``python -m bench memory``: memory of the proxy, written to docs/benchmarks.md."""

import click

from bench import memory
from bench.memory import Memory
from bench.report import finish, target_table
from bench.samples import Samples, from_samples_option
from leader_hints.settings.limits import LimitSettings
from tests.harness import maven

_PAGE = maven.ROOT / "docs" / "benchmarks.md"
_KB, _MB = 1024, 1024 * 1024
_MOST_IDLE, _MOST_POLLS, _MOST_ABOVE_BUDGET = 16 * _KB, 25 * _MB, 10 * _MB


@click.command("memory")
@from_samples_option
@click.option("--write/--no-write", default=True, help="Write page and samples.")
def main(from_samples: bool, write: bool) -> None:
    """Measure what idle links, long polls and slow readers take. Ends with 1 on a missed target."""
    samples = Samples.read("memory") if from_samples else _measured()
    taken = samples.get(Memory, "memory", "proxy")
    budget = LimitSettings().process_buffer_bytes
    verdicts = [
        (
            "each idle link beyond the first",
            f"{taken.idle_link / _KB:.1f} KB",
            f"at most {_MOST_IDLE // _KB} KB",
            taken.idle_link <= _MOST_IDLE,
        ),
        (
            "1000 links in a long poll above one",
            f"{taken.long_polls / _MB:.1f} MB",
            f"at most {_MOST_POLLS // _MB} MB",
            taken.long_polls <= _MOST_POLLS,
        ),
        (
            "50 consumers of large responses, half of them slow",
            f"{taken.growth / _MB:.1f} MB",
            f"at most {(budget + _MOST_ABOVE_BUDGET) // _MB} MB",
            taken.growth <= budget + _MOST_ABOVE_BUDGET,
        ),
    ]
    text = target_table(verdicts, "memory of the process")
    finish(_PAGE, "memory", text, samples, verdicts, write=write)


def _measured() -> Samples:
    samples = Samples()
    samples.add("memory", "proxy", memory.measure())
    return samples
