"""The Spark session of the commands, and the flags for where it runs."""

import functools
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from leader_hints_report.errors import PipelineError
from leader_hints_report.spark_messages import kept_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What is set where the user sets nothing else.
_DEFAULTS: Final = {
    # Sums and percentiles are the same in each zone, and what is printed is in UTC as the days are.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Zstandard is as small as gzip and nearly as quick as snappy.
    "spark.sql.parquet.compression.codec": "zstd",
    # INT96, Spark's default, is larger, has no statistics, and Parquet has given it up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Events are written by part and day: a file is open for each, in place of sorting by them.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # All tables have more classes made for them than the 100 that are kept else: each refresh
    # compiled them again.
    "spark.sql.codegen.cache.maxEntries": "10000",
    # Grouped by client there are more than 128 of them: falling back to sorting is slower.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    # Else each Column that is made asks the driver several times where it was made.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
}
#: Where Spark runs on one machine. Nobody else should be able to reach the driver.
_LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    # Else a job lists more than 32 folders, by a task for each: that is for clusters.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
#: Of Java there. Nobody waits for it, so the collector is the one that takes the least time in all.
_COLLECTOR: Final = "-XX:+UseParallelGC"
#: Spark generates long methods for each stage, and most of them run for some seconds only: to put
#: less of what they call into them saves Java's optimizing compiler a third of its work.
_MUCH_WORK: Final = (
    f"{_COLLECTOR} -XX:MaxInlineLevel=4 -XX:FreqInlineSize=60 -XX:InlineSmallCode=700"
)
#: For little work, most of which would be the optimizing compiler's. Without that one Java has room
#: for a fifth of the code unless told otherwise.
_LITTLE_WORK: Final = f"{_COLLECTOR} -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
#: Java's classes that plans are built with, by the names that PySpark asks for them.
_BUILD_PLANS: Final = ("functions", "org.apache.spark.sql.functions", "PythonUtils")
#: local, local[N] or local[N,FAILURES]
_LOCAL_CORES: Final = re.compile(r"local(?:\[(\d+|\*).*\])?")
#: The oldest Java that Spark 4 runs on.
_JAVA: Final = 17
#: Parts of a shuffle for each core. Spark's 200 are for clusters: each task costs some 20 ms.
_PARTS_A_CORE: Final = 2


def _settings(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not (name and equals):
            # What stands there may be a secret.
            raise click.BadParameter("it is no NAME=VALUE")
        settings[name] = value
    return settings


#: Gives a command ``kafka``, properties of Kafka's client.
takes_kafka: Final = click.option(
    "--kafka",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="A property of Kafka's Java client, such as security.protocol. May be given many times.",
)
#: Gives a command ``conf``, settings of Spark's.
takes_conf: Final = click.option(
    "--conf",
    "conf",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_settings,
    help="A setting of Spark's. May be given many times.",
)
_OPTIONS: Final = (
    click.option("--master", default="local[*]", show_default=True, help="Where Spark runs."),
    takes_conf,
)


def takes_session(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a session, and pass it ``session``, a function that begins it.

    It takes ``packages`` and ``little`` as :func:`begin` does, and ``ours``: settings that the
    user's win over.
    """

    @functools.wraps(command)
    def with_session(master: str, conf: dict[str, str], **flags: Any) -> None:
        def session(
            packages: tuple[str, ...] = (),
            ours: dict[str, str] | None = None,
            *,
            little: bool = False,
        ) -> "SparkSession":
            return begin(master, {**(ours or {}), **conf}, packages, little=little)

        command(session=session, **flags)

    for option in reversed(_OPTIONS):
        with_session = option(with_session)
    return with_session


def begin(
    master: str, conf: dict[str, str], packages: tuple[str, ...] = (), *, little: bool = False
) -> "SparkSession":
    """Begin a session. ``packages``: Maven coordinates, where the user names none himself;
    ``little``: it has little to do, see :mod:`leader_hints_report.little_work`.

    :raises PipelineError: Java is missing, or does not start.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    java = _java()
    # Workers of Spark's own Python code, should a user's session start any, are of this version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("leader-hints-report")
    for name, value in settings_of(master, conf, packages, little=little).items():
        builder = builder.config(name, value)
    try:
        with kept_back() as messages:
            session = builder.getOrCreate()
            # Settings of SQL are read only now.
            session.conf.get("spark.sql.session.timeZone")
    except PySparkException as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            reason = messages.reason().rstrip(".")
            raise PipelineError(
                f"Spark does not start with {java}: {reason}; it needs Java {_JAVA} or newer, and "
                "working --master and --conf"
            ) from None
        raise PipelineError(_refused(error, getattr(error, "_origin", None))) from None
    except Py4JJavaError as error:
        raise PipelineError(_refused(error, error.java_exception)) from None
    session.sparkContext.setLogLevel("ERROR")
    remember_classes(session)
    return session


def _refused(error: Exception, of_java: Any) -> str:
    """Say in a line that Java's first cause is what Spark does not start for."""
    while of_java is not None and of_java.getCause() is not None:
        of_java = of_java.getCause()
    reason = str(of_java.getMessage() if of_java is not None else error)
    (first, *_) = reason.strip().splitlines() or [""]
    return f"Spark does not start: {first}; see --master and --conf"


def _java() -> str:
    """Find Java where Spark's own scripts look for it."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java") if home else "java")
    if java is None:
        missing = f"JAVA_HOME is {home}, and has no bin/java" if home else "no java on the PATH"
        raise PipelineError(f"{missing}; install Java {_JAVA} or newer, or set JAVA_HOME")
    return java


class _Remembered:
    """A class of Java's whose members are looked up once each."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._of, name)
        setattr(self, name, member)
        return member


def remember_classes(session: "SparkSession") -> None:
    """Have Java asked once where what builds plans is: PySpark asks for the class, by looking into
    all jars, and for its function again each time that a column is made. Sessions of one process
    share Java, so a later one finds it done."""
    jvm: Any = session._jvm
    for name in _BUILD_PLANS:
        if name not in vars(jvm):
            setattr(jvm, name, _Remembered(getattr(jvm, name)))


def settings_of(
    master: str, conf: Mapping[str, str], packages: tuple[str, ...] = (), *, little: bool = False
) -> dict[str, str]:
    """All settings of a session; ``conf``, the user's, win. Arguments: see :func:`begin`."""
    settings = {**_DEFAULTS, **_of_one_machine(master, little=little)}
    if packages and "spark.jars" not in conf:
        settings["spark.jars.packages"] = ",".join(packages)
    return {**settings, **conf}


def _of_one_machine(master: str, *, little: bool) -> dict[str, str]:
    """What is set besides where Spark runs on this machine alone."""
    local = _LOCAL_CORES.fullmatch(master)
    if local is None:
        return {}
    given = local[1] or "1"
    cores = (os.cpu_count() or 1) if given == "*" else int(given)
    return {
        **_LOCAL_DEFAULTS,
        "spark.driver.extraJavaOptions": _LITTLE_WORK if little else _MUCH_WORK,
        "spark.sql.shuffle.partitions": str(_PARTS_A_CORE * cores),
    }
