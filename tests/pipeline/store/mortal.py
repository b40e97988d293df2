"""Files of a run that is killed at a point of its choice."""

from pyspark.sql import SparkSession

from leader_hints_report.journal.files import Files


class Killed(BaseException):
    """Stands for the end of the process: nothing of the run handles it."""


class MortalFiles(Files):
    """Ends the run before it changes anything for the time after ``left`` changes."""

    def __init__(self, session: SparkSession, left: int) -> None:
        super().__init__(session)
        self._left = left

    def _change(self) -> None:
        if not self._left:
            raise Killed
        self._left -= 1

    def overwrite(self, path: str, text: str) -> None:
        """Write a file, or half of it and end."""
        if not self._left:
            super().overwrite(path, text[: len(text) // 2])
        self._change()
        super().overwrite(path, text)

    def rename(self, path: str, to: str) -> None:
        """Rename a file, or end."""
        self._change()
        super().rename(path, to)

    def remove(self, path: str) -> None:
        """Remove a file or folder, or end."""
        self._change()
        super().remove(path)
