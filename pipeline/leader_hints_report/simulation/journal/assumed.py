"""What a journal does not say about a fleet, from a file: laid over what was taken from it.

The file has the keys of a fleet's file, but for those that the journal tells.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from leader_hints_report.errors import PipelineError
from leader_hints_report.simulation.fleet import Clients, Cluster, make_fleet, read_document

#: What may be given for each part, and what the journal has already.
_GIVEN: Final = {
    "cluster": {"racks", "version", "mode", "controllers"},
    "topics": {"name", "replication"},
    "clients": {
        *("name", "records_per_second", "acks", "idempotent", "linger_ms", "retry_backoff_ms"),
    },
}
_TOLD: Final = {
    "cluster": {"brokers"},
    "topics": {"partitions", "count"},
    "clients": {"role", "software", "version", "topics", "count"},
    "parameters": {"late_metadata_ms"},
}
_WHOLE: Final = ("event", "parameters", "duration_s")
_OF_PRODUCERS: Final = {"records_per_second", "acks", "idempotent", "linger_ms"}
#: A fleet on which what is given is tried before a journal is read.
_BROKERS: Final = 10_000
_ANY: Final = "any"


class Assumptions:
    """What is ``given`` in place of what would be assumed; ``where`` it stands.

    :raises PipelineError: something in it is wrong, or it is nothing that may be given.
    """

    def __init__(self, given: object = None, where: str = "--assume") -> None:
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise PipelineError(
                f"{where}: it has none of {', '.join([*_GIVEN, *_WHOLE])}; docs/simulation.md has "
                "an example"
            )
        self._where = where
        self._given: dict[str, Any] = {key: of for key, of in given.items() if of is not None}
        for part, of in self._given.items():
            if part not in (*_GIVEN, *_WHOLE):
                raise PipelineError(f"{where}: {part}: there is no such setting")
            self._check(part, of)
        self._try()

    def _check(self, part: str, of: object) -> None:
        several = part in ("topics", "clients")
        if not isinstance(of, list if several else Mapping) and part != "duration_s":
            kind = "a list of settings" if several else "settings"
            raise PipelineError(f"{self._where}: {part}: it is to be {kind}")
        for one in of if isinstance(of, list) else [of] if isinstance(of, Mapping) else []:
            if not isinstance(one, Mapping):
                raise PipelineError(f"{self._where}: {part}: {one!r} is no setting")
            if "name" in one and not isinstance(one["name"], str):
                raise PipelineError(f"{self._where}: {part}.name: it is to be a text")
            for key in one:
                if key in _TOLD.get(part, ()):
                    raise PipelineError(
                        f"{self._where}: {part}.{key}: the journal tells it; leave it out"
                    )
                if part in _GIVEN and key not in _GIVEN[part]:
                    raise PipelineError(f"{self._where}: {part}.{key}: there is no such setting")

    def _try(self) -> None:
        """Refuse values that no fleet may have: to read a journal takes long."""
        topics = dict.fromkeys([_ANY, *self._names("topics")])
        clients = dict.fromkeys([_ANY, *self._names("clients")])
        document: dict[str, Any] = {
            "cluster": {"brokers": _BROKERS},
            "topics": [{"name": name, "partitions": _BROKERS} for name in topics],
            "clients": [
                {"name": name, "role": "producer", "topics": [_ANY], "records_per_second": 1}
                for name in clients
            ],
        }
        make_fleet(self.with_event(self.over(document)), self._where)

    def _names(self, part: str) -> Sequence[Any]:
        return [one["name"] for one in self._given.get(part, ()) if "name" in one]

    def over(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a fleet's document with all but the event laid over it.

        :raises PipelineError: there is no topic, or no client, of a name.
        """
        cluster = {**document["cluster"], **self._given.get("cluster", {})}
        parameters = {**document.get("parameters", {}), **self._given.get("parameters", {})}
        lists = {part: self._laid(part, document[part]) for part in ("topics", "clients")}
        return {**document, "cluster": cluster, "parameters": parameters, **lists}

    def with_event(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a document with the event that is given, and for how long figures are."""
        whole = ("event", "duration_s")
        return document | {key: self._given[key] for key in whole if key in self._given}

    @property
    def has_event(self) -> bool:
        """Whether an event is given in place of the journal's moves."""
        return "event" in self._given

    def _laid(self, part: str, known: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Lay each entry over all of its name, or all there are. What is named goes last."""
        laid = {one["name"]: dict(one) for one in known}
        for entry in sorted(self._given.get(part, ()), key=lambda entry: "name" in entry):
            name = entry.get("name")
            if name is not None and name not in laid:
                raise PipelineError(
                    f"{self._where}: {part}: there is no {name!r}; the journal has "
                    f"{', '.join(map(str, laid))}"
                )
            for one in laid.values() if name is None else [laid[name]]:
                is_reader = one.get("role") == "consumer" and name is None
                one |= {
                    key: of for key, of in entry.items() if not (is_reader and key in _OF_PRODUCERS)
                }
        return [*laid.values()]

    def left(self, replicas: int) -> str:
        """Say what is assumed, since neither a journal nor this tells it."""
        cluster = self._given.get("cluster", {})
        fields = Cluster.model_fields
        kraft = cluster.get("mode") == "kraft"
        keys = ["mode", "version", "racks", *(["controllers"] if kraft else [])]
        said = [f"cluster.{key} {fields[key].default}" for key in keys if key not in cluster]
        if not self._is_for_all("topics", "replication"):
            said.append(f"topics.replication {replicas}")
        said += [
            f"clients.{key} {Clients.model_fields[key].default}"
            for key in ("acks", "linger_ms")
            if not self._is_for_all("clients", key)
        ]
        if not self._is_for_all("clients", "idempotent"):
            said.append("clients.idempotent as the client's software has it")
        if not self._is_for_all("clients", "retry_backoff_ms"):
            said.append("clients.retry_backoff_ms the client's own")
        if not self._is_for_all("clients", "records_per_second"):
            said.append("clients.records_per_second by the share of moves that had errors")
        return ", ".join(said)

    def _is_for_all(self, part: str, key: str) -> bool:
        return any(key in one and "name" not in one for one in self._given.get(part, ()))


def read_assumptions(file: Path | None) -> Assumptions:
    """Read what a journal cannot tell; no file: nothing is given.

    :raises PipelineError: the file cannot be read, or something in it is wrong.
    """
    return Assumptions() if file is None else Assumptions(read_document(file), str(file))
