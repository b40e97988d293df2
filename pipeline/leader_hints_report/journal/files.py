"""Files and folders wherever Hadoop's file systems reach: local, HDFS, object stores.

Tested in ``tests/pipeline/store/test_folder.py``.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from leader_hints_report.errors import PipelineError


class File(NamedTuple):
    """``path``: whole, with scheme. ``size`` in bytes."""

    path: str
    size: int


#: Lists files in Java, which Spark's own compiler compiles: to ask from here for each of 300,000
#: takes minutes. Their paths have any character but the one that ends each value. Not by listFiles:
#: for each local file it starts a process that says what its permissions are.
_LIST: Final = """
import java.util.*;
import org.apache.hadoop.fs.*;

LinkedList left = new LinkedList();
FileStatus[] matches = system.globStatus(pattern);
if (matches != null) {
    left.addAll(Arrays.asList((Object[]) matches));
}
StringBuilder listed = new StringBuilder();
while (!left.isEmpty()) {
    FileStatus file = (FileStatus) left.removeFirst();
    if (below && file.isDirectory()) {
        left.addAll(Arrays.asList((Object[]) system.listStatus(file.getPath())));
    } else {
        listed.append(file.getPath()).append('\\0').append(file.getLen()).append('\\0');
    }
}
return listed.toString();
"""


class Files:
    """Looks at, reads, writes and removes files by the session's file systems."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        self._lister = _lister(jvm, session.sparkContext._gateway)
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
        self.require(path)
        return self._listed(path, below=True)

    def require(self, path: str) -> None:
        """See that there is such a file or folder, or any that a pattern names.

        :raises PipelineError: there is nothing.
        """
        at, system = self._at(path)
        try:
            matches = system.globStatus(at)
        except Py4JJavaError as error:
            raise PipelineError(f"{path} cannot be read: {_reason(error)}") from None
        if not matches:
            raise PipelineError(f"{path}: there is no such file or folder")

    def matching(self, pattern: str) -> list[File]:
        """The files and folders that a pattern names, and not what is in them."""
        return self._listed(pattern, below=False)

    def _listed(self, pattern: str, *, below: bool) -> list[File]:
        at, system = self._at(pattern)
        found = str(self._lister(system, at, below)).split("\0")[:-1]
        return sorted(map(File, found[::2], map(int, found[1::2])))

    def read(self, path: str) -> str:
        """The text of a small file."""
        at, system = self._at(path)
        stream = system.open(at)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Put a small file there: readers see all of it, or none.

        :raises PipelineError: it cannot be written.
        """
        new = path + ".new"
        self.overwrite(new, text)
        self.remove(path)
        self.rename(new, path)

    def overwrite(self, path: str, text: str) -> None:
        """Put a small file there, so that there is one at any time; readers may see half of it."""
        at, system = self._at(path)
        stream = system.create(at, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def rename(self, path: str, to: str) -> None:
        """Give a file another name.

        :raises PipelineError: it cannot be renamed.
        """
        at, system = self._at(path)
        if not system.rename(at, self._at(to)[0]):
            raise PipelineError(f"{to} cannot be written")

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


@lru_cache(maxsize=1)
def _lister(jvm: Any, gateway: Any) -> Callable[..., str]:
    """Compile :data:`_LIST`, once for each Java."""
    takes = {
        "system": "org.apache.hadoop.fs.FileSystem",
        "pattern": "org.apache.hadoop.fs.Path",
        "below": "java.lang.Boolean",
    }

    def array(of: Any, values: Collection[Any]) -> Any:
        made = gateway.new_array(of, len(values))
        for number, value in enumerate(values):
            made[number] = value
        return made

    def classes(*names: str) -> Any:
        found = [jvm.org.apache.spark.util.Utils.classForName(name, True, False) for name in names]
        return array(jvm.java.lang.Class, found)

    script = jvm.org.codehaus.janino.ScriptEvaluator()
    script.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    script.setParameters(array(jvm.java.lang.String, [*takes]), classes(*takes.values()))
    script.setReturnType(classes("java.lang.String")[0])
    script.setThrownExceptions(classes("java.io.IOException"))
    script.cook(_LIST)
    return lambda *values: script.evaluate(array(jvm.java.lang.Object, values))


def _reason(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage()).splitlines()[0]
