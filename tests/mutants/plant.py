"""The command ``python -m tests.mutants.plant NAME MODULE ARGUMENTS``: runs a module with a mutant.

``MODULE`` is pytest, tests.world or any other. No file is changed.
"""

import importlib
import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tests.mutants.table import MUTANTS, Mutant


class _Loader(SourceFileLoader):
    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.module, str(mutant.path))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        """Return the mutant's code; nothing is cached."""
        return compile(self._mutant.source(), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Finds the mutated module in place of the real one."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See :class:`importlib.abc.MetaPathFinder`."""
        if fullname != self._mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None:
            spec.loader = _Loader(self._mutant)
        return spec


def plant(mutant: Mutant) -> None:
    """Import the mutated module, for all that import it later.

    :raises RuntimeError: the real one was imported before.
    """
    if mutant.module in sys.modules:
        raise RuntimeError(f"{mutant.module} was imported before the mutant")
    finder = _Finder(mutant)
    sys.meta_path.insert(0, finder)
    # Now, since pytest finds modules before anybody else.
    importlib.import_module(mutant.module)
    sys.meta_path.remove(finder)


def main() -> None:
    """Run the module; its exit code is that of the command."""
    name, module, *arguments = sys.argv[1:]
    plant(MUTANTS[name])
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
