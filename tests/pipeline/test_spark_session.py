from typing import Any

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from leader_hints_report.spark_session import remember_classes, settings_of

_PARTS = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize(
    ("master", "parts"), [("local", "2"), ("local[4]", "8"), ("local[3,2]", "6")]
)
def test_on_one_machine_a_shuffle_has_as_many_parts_as_its_cores_need(
    master: str, parts: str
) -> None:
    assert settings_of(master, {})[_PARTS] == parts
    assert settings_of(master, {_PARTS: "7"})[_PARTS] == "7"


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2,1,1024]"])
def test_a_cluster_s_own_settings_stand(master: str) -> None:
    settings = settings_of(master, {})
    assert not {_PARTS, "spark.driver.memory", "spark.driver.extraJavaOptions"} & settings.keys()


def test_packages_are_fetched_unless_the_user_names_jars() -> None:
    assert settings_of("yarn", {}, ("a:b:1", "c:d:2"))["spark.jars.packages"] == "a:b:1,c:d:2"
    assert "spark.jars.packages" not in settings_of("yarn", {"spark.jars": "x.jar"}, ("a:b:1",))


def test_java_is_asked_once_where_a_function_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark asks at each call, and Java looks into all jars."""
    asked: list[str] = []
    send = ClientServerConnection.send_command

    def telling(self: ClientServerConnection, command: str, *more: Any) -> Any:
        # What Python has let go is told to Java at times of the collector's choice.
        if not command.startswith("m\n"):
            asked.append(command)
        return send(self, command, *more)

    monkeypatch.setattr(ClientServerConnection, "send_command", telling)
    F.coalesce("a", F.lit(1))
    asked.clear()
    F.coalesce("b", F.lit(2))
    # A column, a literal, a list and its items, and the call.
    assert not [command for command in asked if command.startswith("r\n")]
    assert any("coalesce" in command for command in asked)


def test_a_later_session_of_the_process_finds_classes_remembered(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    functions = jvm.functions
    remember_classes(spark)
    assert jvm.functions is functions
