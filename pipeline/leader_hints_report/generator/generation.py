"""From a fleet to its journals and answers."""

from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError
from leader_hints_report.generator import lines
from leader_hints_report.generator.answers import write_answers
from leader_hints_report.generator.episodes import made_episodes
from leader_hints_report.generator.fleet import BROKERS, HINTS, Fleet
from leader_hints_report.generator.journals import numbered, write_journals
from leader_hints_report.generator.moves import made_moves
from leader_hints_report.generator.reads import made_reads, reads, replicas


def generate(session: SparkSession, fleet: Fleet, out: str) -> None:
    """Write journals to ``out``/journal and answers to ``out``/answers/NAME, Parquet.

    :raises PipelineError: the fleet cannot be made.
    """
    if fleet.sidecars < BROKERS or fleet.sidecars % BROKERS:
        raise PipelineError(f"--sidecars: a multiple of {BROKERS} is needed, one for each broker")
    if fleet.hints not in HINTS:
        raise PipelineError(f"--hints: one of {', '.join(HINTS)} is needed")
    if fleet.hours < 1:
        raise PipelineError("--hours: at least 1 is needed")
    moves = made_moves(session, fleet).persist()
    episodes = made_episodes(moves, fleet).persist()
    read = made_reads(session, fleet).persist()
    few = [
        lines.starts(session, fleet),
        lines.clients(session, fleet),
        lines.asks(session, fleet),
        lines.sights(moves, fleet),
        lines.errors(episodes),
        lines.successes(episodes),
        reads(read),
        replicas(read),
    ]
    known = sum(frame.count() for frame in few)
    few.append(lines.latencies(session, fleet, max(0, fleet.events - known)))
    rows = few[0]
    for frame in few[1:]:
        rows = rows.unionByName(frame, allowMissingColumns=True)
    write_journals(session, numbered(rows), f"{out}/journal")
    write_answers(moves, episodes, read, fleet, out)
    for frame in (moves, episodes, read):
        frame.unpersist()
