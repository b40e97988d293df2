"""When brokers learn of a batch of moves: who refuses, who serves, whose Metadata shows it.

Times are milliseconds after the controller began with the batch.
"""

from typing import NamedTuple

import numpy as np

from leader_hints_report.simulation.arrays import Floats, Ints, Random
from leader_hints_report.simulation.fleet import Cluster
from leader_hints_report.simulation.layout import Layout
from leader_hints_report.simulation.moves import Batch
from leader_hints_report.simulation.parameters import Parameters


class Propagation(NamedTuple):
    """``stops``: when each former leader stops; ``refuses``: until when requests wait for its
    refusal; ``serves``: when each new one serves, to clients
    whose records need no followers. ``follows``: from when on followers have what the new leader
    has. ``leaves``: when the first follower left the former one, which from then on shows no new
    record to consumers. ``commits``: when the leaders of what a lost broker followed wait for it no
    longer. ``shows``: when the Metadata of each broker has the moves.
    ``update_bytes``: of all UpdateMetadata.
    """

    stops: Floats
    refuses: Floats
    serves: Floats
    follows: Floats
    leaves: Floats
    commits: Floats
    shows: Floats
    update_bytes: float


def propagate(
    cluster: Cluster, where: Layout, batch: Batch, table: Parameters, random: Random
) -> Propagation:
    """Draw one course of a batch."""
    zookeeper = cluster.mode == "zookeeper"
    replicas = where.replicas[batch.partitions]
    held = np.bincount(replicas[replicas >= 0], minlength=where.brokers)
    work: Floats = (held * table.become_ms).astype(np.float64)
    if batch.started >= 0:
        work[batch.started] *= table.started_factor
    if zookeeper:
        hears, shows = _zookeeper(where.brokers, len(batch.partitions), work, table, random)
        bytes_sent = table.update_bytes * len(batch.partitions) * where.brokers
    else:
        hears, shows = _kraft(cluster, where.brokers, len(batch.partitions), table, random)
        bytes_sent = 0.0
    if table.late_metadata_ms:
        shows = shows + random.exponential(table.late_metadata_ms, where.brokers)
    acts = hears + work
    # One partition after the other. A broker's order is nearly the same as another's.
    place = random.random(len(batch.partitions))
    serves = hears[batch.new] + place * work[batch.new]
    if batch.alive:
        stops = hears[batch.old] + place * work[batch.old]
        waits = _lognormal(random, table.refuse_ms, table.refuse_spread, where.brokers)
        refuses = stops + waits[batch.old]
    else:
        stops = refuses = np.full(len(serves), batch.lost_at - batch.at)
    follows, leaves = _followers(where, batch, replicas, acts, serves, table, random)
    # The controller takes it out of their in-sync replicas with the same decision.
    leader = where.replicas[batch.followed, 0]
    commits = hears[leader] + random.random(len(leader)) * work[leader]
    return Propagation(stops, refuses, serves, follows, leaves, commits, shows, bytes_sent)


def _lognormal(random: Random, median: float, spread: float, count: int) -> Floats:
    return median * np.exp(spread * random.standard_normal(count))


def _zookeeper(
    brokers: int, moves: int, work: Floats, table: Parameters, random: Random
) -> tuple[Floats, Floats]:
    """LeaderAndIsr of the whole batch goes out when all leaders are written, and UpdateMetadata
    behind it in each broker's queue (ControllerChannelManager)."""
    sent = moves * table.elect_ms
    hears = sent + _lognormal(random, table.act_ms, table.act_spread, brokers)
    sending = table.update_bytes * moves * brokers / (table.update_mb_per_s * 1000)
    shows = hears + work + _lognormal(random, table.publish_ms, table.publish_spread, brokers)
    return hears, shows + sending * random.random(brokers)


def _kraft(
    cluster: Cluster, brokers: int, moves: int, table: Parameters, random: Random
) -> tuple[Floats, Floats]:
    """All brokers but the active controller's hear that the records are committed with the next
    record: at the same time, and up to half a second later. Metadata is set before replicas
    (BrokerMetadataPublisher)."""
    heard = random.uniform(table.kraft_wait_low_ms, table.kraft_wait_high_ms)
    shows = moves * table.kraft_elect_ms + _lognormal(random, table.kraft_apply_ms, 0.5, brokers)
    later = np.full(brokers, heard)
    if cluster.controllers == "brokers":
        later[random.integers(min(brokers, 3))] = 0.0
    shows = shows + later
    return shows + _lognormal(random, table.kraft_apply_ms, 0.5, brokers), shows


def _followers(
    where: Layout,
    batch: Batch,
    replicas: Ints,
    acts: Floats,
    serves: Floats,
    table: Parameters,
    random: Random,
) -> tuple[Floats, Floats]:
    """Followers ask the new leader as soon as they know of it; if it is not there yet, they come
    back after their back-off. Their fetcher may be in a long poll meanwhile."""
    is_follower = (replicas >= 0) & (replicas != batch.new[:, None])
    if not batch.alive:
        is_follower &= replicas != batch.old[:, None]
    asks = np.where(is_follower, acts[np.maximum(replicas, 0)], -np.inf) + table.rtt_ms / 2
    early = is_follower & (asks < serves[:, None])
    early &= random.random(early.shape) < table.refused_share
    asks = np.where(early, asks + table.replica_backoff_ms, asks)
    follows = np.maximum(asks.max(axis=1), serves)
    # Their fetch of what else that leader has ends with the next record, or with the long poll.
    poll = random.uniform(0, table.replica_wait_ms, len(follows))
    per_broker = max(where.records_per_ms / where.brokers, 1e-9)
    follows = follows + np.minimum(poll, random.exponential(1 / per_broker, len(follows)))
    moved = np.where(
        is_follower | (replicas == batch.new[:, None]), acts[np.maximum(replicas, 0)], np.inf
    )
    return follows + table.rtt_ms, moved.min(axis=1)
