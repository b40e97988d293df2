"""Files and folders wherever Hadoop's file systems reach: local, HDFS, object stores.

Tested in ``tests/pipeline/test_store.py``.
"""

from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError


class File(NamedTuple):
    """``path``: whole, with scheme. ``size`` in bytes; ``changed``: milliseconds since 1970."""

    path: str
    size: int
    changed: int


class Files:
    """Looks at, reads, writes and removes files by the session's file systems."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        # Looked up once: Java looks into all jars for each part of the name.
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._conf: Any = session._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        at, system = self._at(path)
        return bool(system.exists(at))

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        at, system = self._at(path)
        return bool(system.exists(at)) and bool(system.getFileStatus(at).isDirectory())

    def whole(self, path: str) -> str:
        """The path with its scheme and from the root on."""
        at, system = self._at(path)
        return str(system.makeQualified(at).toString())

    def found(self, path: str) -> list[File]:
        """The files that are meant: a file, all in a folder and below, or those of a pattern.

        :raises PipelineError: there is nothing.
        """
        at, system = self._at(path)
        try:
            matches = system.globStatus(at)
        except Py4JJavaError as error:
            raise PipelineError(f"{path} cannot be read: {_reason(error)}") from None
        if not matches:
            raise PipelineError(f"{path}: there is no such file or folder")
        files = []
        for match in matches:
            below = system.listFiles(match.getPath(), True)
            while below.hasNext():
                file = below.next()
                files.append(
                    File(file.getPath().toString(), file.getLen(), file.getModificationTime())
                )
        return sorted(files)

    def folders(self, pattern: str) -> list[str]:
        """The paths of all folders of a pattern, without scheme."""
        at, system = self._at(pattern)
        matches = system.globStatus(at) or []
        return sorted(match.getPath().toUri().getPath() for match in matches if match.isDirectory())

    def read(self, path: str) -> str:
        """The text of a small file."""
        at, system = self._at(path)
        stream = system.open(at)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Put a small file there: readers see all of it, or none."""
        at, system = self._at(path)
        new, _ = self._at(path + ".new")
        self.overwrite(path + ".new", text)
        system.delete(at, False)
        if not system.rename(new, at):
            raise PipelineError(f"{path} cannot be written")

    def overwrite(self, path: str, text: str) -> None:
        """Put a small file there, so that there is one at any time; readers may see half of it."""
        at, system = self._at(path)
        stream = system.create(at, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def rename(self, path: str, to: str) -> None:
        """Give a file another name."""
        at, system = self._at(path)
        system.rename(at, self._at(to)[0])

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with all in it, if it is there."""
        at, system = self._at(path)
        system.delete(at, True)

    def _at(self, path: str) -> tuple[Any, Any]:
        at = self._path(path)
        try:
            return at, at.getFileSystem(self._conf)
        except Py4JJavaError as error:
            raise PipelineError(f"{path}: {_reason(error)}") from None


def _reason(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage()).splitlines()[0]
