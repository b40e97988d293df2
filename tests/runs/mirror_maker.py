"""MirrorMaker 2, from one cluster to another."""

from tests.harness.checker import check_produced
from tests.harness.maven import Library
from tests.harness.waiting import until
from tests.runs.place import Figures, Place, hints, move_under_load, numbers
from tests.runs.program import STARTS_S, VERSION, running, write

#: What comes of the source's topics in the target (DefaultReplicationPolicy).
_SOURCE, _TARGET = "source", "target"


def mirror(place: Place, target: Place) -> Figures:
    """Copy a topic through the proxies of both clusters: the target has each record."""
    topic = place.make_topic("mirrored")
    copy = f"{_SOURCE}.{topic}"
    classpath = Library("connect-mirror", VERSION).fetch().classpath
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    settings = place.folder / "mirror-maker.properties"
    settings.write_text(_properties(place, target, topic))
    log = place.folder / "mirror-maker.log"
    with place.proxies() as fleet, target.proxies() as others:
        producer = write(place, topic)
        with running(classpath, main, [str(settings)], log):
            until(lambda: target.stored(copy), "the first records are copied", STARTS_S)
            for _ in range(place.moves):
                move_under_load(place, producer, [topic])
                target.move(copy)
            check_produced(place.admin, producer.stop())
            sent = numbers(producer.acked).keys()
            until(lambda: target.stored(copy).keys() >= sent, f"all {len(sent)} are copied")
        copied = target.stored(copy)
        assert copied.keys() == sent, f"never sent: {copied.keys() - sent}"
        return {
            "records": len(sent),
            "copied twice": copied.total() - len(copied),
            **hints(fleet),
            **{f"{name} at the target": count for name, count in hints(others).items()},
        }


def _properties(place: Place, target: Place, topic: str) -> str:
    way = f"{_SOURCE}->{_TARGET}"
    factors = (
        "",
        *("checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic."),
        *("offset.storage.", "status.storage.", "config.storage."),
    )
    settings = {
        "clusters": f"{_SOURCE}, {_TARGET}",
        f"{_SOURCE}.bootstrap.servers": place.bootstrap,
        f"{_TARGET}.bootstrap.servers": target.bootstrap,
        # Else a record may be copied twice when a leader moves.
        f"{_TARGET}.producer.enable.idempotence": "true",
        f"{way}.enabled": "true",
        f"{_TARGET}->{_SOURCE}.enabled": "false",
        f"{way}.topics": topic,
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "5",
        "offset.flush.interval.ms": "1000",
        **{f"{name}replication.factor": "3" for name in factors},
    }
    return "".join(f"{name} = {value}\n" for name, value in settings.items())
