"""Questions to any output folder, which Spark reads.

Tested in ``tests/pipeline/query/test_queries.py``.
"""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from leader_hints_report.errors import PipelineError
from leader_hints_report.query.answer import Answer
from leader_hints_report.store.folder import Store, require_folder
from leader_hints_report.tables.columns import TABLES


def ask(session: SparkSession, folder: str, sql: str) -> Answer:
    """Answer a question.

    :raises PipelineError: there is no such folder, the question has a mistake, or a file cannot be
        read.
    """
    require_folder(session, folder)
    store = Store(session, folder)
    store.events().createOrReplaceTempView("events")
    store.quarantine().createOrReplaceTempView("quarantine")
    for name in TABLES:
        store.table(name).createOrReplaceTempView(name)
    java: Any = session._jsparkSession
    try:
        # Refuses what is no question.
        java.sessionState().sqlParser().parseQuery(sql)
        found = session.sql(sql)
        names = found.columns
        # By place: names may come twice.
        found = found.toDF(*map(str, range(len(names))))
        types = [of.dataType for of in found.schema.fields]
        instants = {at for at, of in enumerate(types) if isinstance(of, TimestampType)}
        rows = found.select(
            *(F.unix_micros(str(at)) if at in instants else str(at) for at in range(len(names)))
        ).collect()
    except PySparkException as error:
        raise PipelineError(str(error).strip().splitlines()[0]) from None
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).strip().splitlines()[0]
        raise PipelineError(f"--tables {folder} cannot be read: {reason}") from None
    return Answer.of(names, instants, rows)
