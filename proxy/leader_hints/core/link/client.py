"""Who the client of a link is, and which hints it can use."""

from contextlib import suppress

from leader_hints.apis.api_versions import ClientSoftware
from leader_hints.apis.fetch_request import read_rack
from leader_hints.apis.header import read_request_header
from leader_hints.apis.produce import has_producer_id
from leader_hints.core.cluster.unknown_ids import Client
from leader_hints.core.versions.asked_versions import Origin
from leader_hints.core.versions.client_capabilities import (
    BUILT_IN,
    KIP_951,
    NO_HINTS,
    OWN_NAME,
    ClientTable,
    HintForms,
)
from leader_hints.wire.errors import Truncated, WireError

#: Letters of what a client may say of itself. Brokers take any number (KIP-511).
LONGEST_TEXT = 255
#: Fetch requests in which the rack is looked for. The first one of a session names all its topics,
#: which may be too many to look through; later ones name few.
_LOOKED_FOR_RACK = 10


class LinkClient:
    """What a link's client has said of itself so far.

    ``clients``: which clients use hints. ``address``: where it comes from, "" if not known;
    ``principal``: the subject of its certificate, "" where the proxy has seen none.
    ``id``: its client id, ``None`` before its first request that is read. ``software``: as
    name/version, "" while it has said nothing. ``hint_forms``: the hints that it can use; before
    ApiVersions it is taken for one that was offered raised versions on another link, if it uses
    them. ``is_proxy``: it is a proxy like this one. ``rack``: in which it is, by its first Fetch
    request that could be read; ``None`` before that, "" where it names none, or is a replica.
    ``numbers_records``: so far all its Produce requests were of a producer with an id, of which the
    broker keeps the order; ``None`` before the first that could be read.
    ``sent_away``: its last Fetch response named a replica, from which it comes back: so its next
    request need not wait here for records, which it would not get. ``asks_for_all``: it is to ask
    for all partitions of its fetch session once more.
    """

    __slots__ = (
        "_clients",
        "_looked_for_rack",
        "address",
        "asks_for_all",
        "hint_forms",
        "id",
        "is_proxy",
        "numbers_records",
        "principal",
        "rack",
        "sent_away",
        "software",
    )

    def __init__(
        self, address: str = "", clients: ClientTable = BUILT_IN, principal: str = ""
    ) -> None:
        self._clients = clients
        self.address = address
        self.principal = principal
        self.id: str | None = None
        self.software = ""
        self.hint_forms = KIP_951
        self.is_proxy = False
        self.rack: str | None = None
        self.numbers_records: bool | None = None
        self._looked_for_rack = 0
        self.sent_away = False
        self.asks_for_all = False

    @property
    def known_as(self) -> Client:
        """Host and client id: what distinguishes it from others on its later links."""
        return self._host, (self.id or "")[:LONGEST_TEXT]

    @property
    def origin(self) -> Origin:
        """Where it comes from, without its port: that is another one on each link."""
        return Origin(self._host.strip("[]"), self.principal)

    @property
    def _host(self) -> str:
        return self.address.rpartition(":")[0]

    def meet(self, frame: memoryview) -> None:
        """Take the client id from a request, of which the beginning may be there alone.

        It is kept as long as the link lasts, so of a long one no more than tells that it is long.
        """
        try:
            self.id = (read_request_header(frame).client_id or "")[: LONGEST_TEXT + 1]
        except Truncated:
            return
        except WireError:
            self.id = ""

    def locate(self, frame: memoryview) -> None:
        """Take the rack from a whole Fetch request of v11 or above; each of a client has it."""
        try:
            rack = read_rack(frame)
        except WireError:
            self._looked_for_rack += 1
            if self._looked_for_rack < _LOOKED_FOR_RACK:
                return
            rack = ""
        # No broker has one that is longer.
        self.rack = rack if len(rack) <= LONGEST_TEXT else ""

    def produce(self, frame: memoryview) -> None:
        """Take from a Produce request, of which the beginning may be there alone, whether its
        records are numbered. One that cannot be read, or not yet, says nothing.
        """
        with suppress(WireError):
            self.numbers_records = has_producer_id(frame)

    def asked_without_name(self) -> bool:
        """Note that it asked for versions without naming itself; returns whether that is new.

        A client that named itself on this link stays known: a broker refused its newer request.
        """
        forms = self._clients.forms(None)
        if self.software or self.hint_forms == forms:
            return False
        self.hint_forms = forms
        return True

    def introduce(self, software: ClientSoftware) -> HintForms | None:
        """Take what the client says of itself in ApiVersions.

        Returns the hints that such clients are known to use, ``None`` if nothing is known of them.
        It is cut first: anybody may send megabytes, and a version is read number by number.
        """
        software = ClientSoftware(software.name[:LONGEST_TEXT], software.version[:LONGEST_TEXT])
        known = self._clients.known_forms(software)
        self.hint_forms = known or NO_HINTS
        self.is_proxy = software.name == OWN_NAME
        self.software = f"{software.name}/{software.version}"
        return known
