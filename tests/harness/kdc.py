"""A real KDC (MIT's krb5kdc) as a child process, with a realm and configuration of its own."""

import contextlib
import importlib.util
import shutil
import socket
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.harness import processes
from tests.harness.maven import in_ci
from tests.harness.ports import free_ports
from tests.harness.waiting import until

REALM: Final = "TEST.EXAMPLE"
#: Debian puts the KDC where not every user's PATH leads.
_PATH: Final = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"
_TOOLS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


def missing_tools() -> str | None:
    """Say which programs of MIT Kerberos this machine lacks; None if it has them all."""
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]
    if missing:
        return f"a KDC needs {', '.join(missing)} (Debian: krb5-kdc, krb5-admin-server, krb5-user)"
    if importlib.util.find_spec("gssapi") is None:
        return "python-gssapi is not installed; make kerberos installs it"
    return None


def need_kerberos() -> None:
    """Skip what needs a KDC where there is none; in CI a missing one is a failure."""
    missing = missing_tools()
    if missing is not None:
        if in_ci():
            pytest.fail(missing)
        pytest.skip(missing)


class Kdc:
    """A realm's KDC, as a context manager. It touches nothing outside ``folder``.

    ``environment`` is what programs of MIT Kerberos need to find it, ``config`` their krb5.conf,
    which Java reads too.
    """

    def __init__(self, folder: Path, *, life: str = "1h", settings: str = "") -> None:
        """``life``: of tickets, at most. ``settings``: further lines of libdefaults."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._log = folder / "kdc.log"
        (self.port,) = free_ports(1)
        self.config = folder / "krb5.conf"
        self.config.write_text(
            f"""[libdefaults]
  default_realm = {REALM}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  default_ccache_name = FILE:{folder}/default-cache
{settings}
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{self.port}
  }}
[domain_realm]
  localhost = {REALM}
"""
        )
        profile = folder / "kdc.conf"
        profile.write_text(
            f"""[realms]
  {REALM} = {{
    database_name = {folder}/principals
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
    kdc_listen = 127.0.0.1:{self.port}
    kdc_tcp_listen = 127.0.0.1:{self.port}
    max_life = {life}
  }}
[dbmodules]
  {REALM} = {{
    db_library = db2
    disable_last_success = true
  }}
[logging]
  kdc = FILE:{folder}/kdc-requests.log
"""
        )
        self.environment = {"KRB5_CONFIG": str(self.config), "PATH": _PATH}
        self._own = self.environment | {"KRB5_KDC_PROFILE": str(profile)}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        try:
            self._run("kdb5_util", "create", "-s", "-W", "-r", REALM, "-P", "of-the-database")
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            processes.end(self._process)
            self._process = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # It stays in the foreground (-n), as a child.
        self._process = processes.start(
            [_tool("krb5kdc"), "-n", "-r", REALM], output=self._log, environment=self._own
        )
        until(self._listens, "the KDC listens")

    def frozen(self) -> "contextlib.AbstractContextManager[None]":
        """Have it answer nothing meanwhile."""
        assert self._process is not None
        return processes.frozen(self._process)

    def add(self, *principals: str) -> None:
        """Add principals with random keys."""
        self._kadmin(f"add_principal -randkey {name}" for name in principals)

    def change_keys(self, *principals: str) -> None:
        """Give principals new keys; those in keytabs are wrong from now on."""
        self._kadmin(f"change_password -randkey {name}" for name in principals)

    def remove(self, *principals: str) -> None:
        """Remove principals."""
        self._kadmin(f"delete_principal -force {name}" for name in principals)

    def keytab(self, name: str, *principals: str) -> Path:
        """Write the present keys of principals into a file; return its path."""
        file = self._folder / f"{name}.keytab"
        self._kadmin(f"ktadd -norandkey -k {file} {principal}" for principal in principals)
        return file

    def ticket(self, principal: str, keytab: Path, name: str, life: str = "1h") -> Path:
        """Get a ticket as users do, by kinit; return the path of its cache."""
        cache = self._folder / name
        self._run("kinit", "-l", life, "-k", "-t", str(keytab), "-c", f"FILE:{cache}", principal)
        return cache

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the KDC ended:\n{self._log.read_text()}"
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0

    def _kadmin(self, commands: Iterable[str]) -> None:
        done = self._run(
            "kadmin.local", "-r", REALM, input="".join(f"{line}\n" for line in commands)
        )
        assert "while" not in done, done

    def _run(self, tool: str, *arguments: str, input: str = "") -> str:
        done = subprocess.run(
            [_tool(tool), *arguments],
            input=input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._own,
            check=False,
        )
        assert done.returncode == 0, f"{tool} {arguments}:\n{done.stdout}"
        return done.stdout


def _tool(name: str) -> str:
    path = shutil.which(name, path=_PATH)
    assert path is not None, name
    return path
