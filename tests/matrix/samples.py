"""A cell as it might have been found."""

from tests.matrix.brokers import BROKERS
from tests.matrix.features import Feature
from tests.matrix.results import Cell
from tests.matrix.roster import CLIENTS

BROKER, CLIENT = next(iter(BROKERS)), next(iter(CLIENTS))


def found(**features: str) -> Cell:
    """The cell of the first broker and client; features by name with what went wrong."""
    named = {Feature[name]: error for name, error in features.items()}
    return Cell(
        broker=BROKER,
        client=CLIENT,
        features={feature: named.get(feature, "") for feature in Feature},
        versions={"Produce": ["10 as 9"], "Fetch": []},
        moves=3,
        records=10,
        given=7,
        missed={"budget": 2},
        waited={"settled": 1, "budget": 1},
        used="produce",
        refused_offsets={},
        passed_raw={},
        seconds=1.0,
    )
