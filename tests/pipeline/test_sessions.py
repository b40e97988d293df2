import pytest

from pipeline.sessions import settings_of

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
