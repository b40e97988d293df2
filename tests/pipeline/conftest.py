"""One Spark session for all tests of the pipeline."""

import shutil
from collections.abc import Iterator
from os import environ

import pytest
from pyspark.sql import SparkSession

from leader_hints_report.spark_session import begin
from tests.pipeline.commands_apart import SMALL
from tests.pipeline.fleets import Made, make

#: Machines are shared, and a timeout in the middle of a call breaks the session for all others.
_TEST_TIMEOUT_S = 900
#: A zone that is far from UTC and has summer time: no answer may depend on it.
ZONE = "America/St_Johns"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give them time."""
    item.add_marker(pytest.mark.timeout(_TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session, made for small data, that splits it all the same."""
    if shutil.which("java") is None:
        if environ.get("CI"):
            pytest.fail("Java 17 is needed for the tests of the pipeline")
        pytest.skip("Java 17 is needed for the tests of the pipeline")
    session = begin(
        "local[2]",
        {
            **SMALL,
            "spark.sql.session.timeZone": ZONE,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A small fleet's journals and tables; tests that use it change nothing."""
    return make(spark, tmp_path_factory.mktemp("fleet"))
