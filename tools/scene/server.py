"""`mam serve` on a scene, in a process of its own, and a browser that is logged in."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType

from playwright.sync_api import Browser, BrowserContext, Playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--font-render-hinting=none")  # fmt: skip


def start_browser(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))


class SceneServer:
    """`with SceneServer(directory) as server:` answers on loopback until the end."""

    def __init__(self, directory: str, *arguments: str, port: int = 0) -> None:
        self._directory = directory
        self._arguments = arguments
        self._port = port
        self.url = self.login = ""

    def __enter__(self) -> SceneServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *arguments: str) -> None:
        """`arguments` are added for this start."""
        store = f"sqlite://{self._directory}/mam.sqlite"
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "mam",
                "serve",
                "--store",
                store,
                "--port",
                str(self._port),
                *self._arguments,
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
            cwd=self._directory,
        )
        assert self._process.stdout is not None
        self.login = self._process.stdout.readline().strip()
        if not self.login:
            assert self._process.stderr is not None
            raise RuntimeError(f"mam serve did not start: {self._process.stderr.read()}")
        self.url = self.login.partition("/login#")[0]
        self._port = int(self.url.rpartition(":")[2].partition("/")[0])

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)

    def _environment(self) -> dict[str, str]:
        """A user of its own, so that no setting and no session of this machine is read."""
        home = os.path.join(self._directory, "home")
        os.makedirs(home, mode=0o700, exist_ok=True)
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": home,
            "DELEGATE_JOB_LOGS_DIR": os.path.join(self._directory, "logs"),
            "TMUX_TMPDIR": home,
        }

    def log_in(self, context: BrowserContext) -> None:
        """The printed address carries a code that works once, so further browsers get the cookie of the first."""
        page = context.new_page()
        page.goto(self.login)
        page.wait_for_url(f"{self.url}/")
        page.close()
