"""What the supervision of the stack does besides starting processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from deploy.local import child
from deploy.local.home import Home
from deploy.local.supervision import last_exit, trim_logs


def test_a_log_that_grew_too_large_is_moved_aside_and_goes_on(tmp_path: Path) -> None:
    log, other = tmp_path / "one.log", tmp_path / "other.log"
    other.write_text("small\n")
    with log.open("ab") as process:
        process.write(b"x" * (10 * 1024 * 1024 + 1))
        process.flush()
        trim_logs(tmp_path)
        process.write(b"goes on\n")
    assert log.read_bytes() == b"goes on\n"
    assert (tmp_path / "one.log.1").stat().st_size > 10 * 1024 * 1024
    assert other.read_text() == "small\n"


def test_a_program_ended_with_what_this_supervisord_wrote_last(tmp_path: Path) -> None:
    """The exit of an earlier `make run` was taken for one of this."""
    home = Home(tmp_path)
    home.logs.mkdir()
    log = home.logs / "supervisord.log"
    log.write_text(
        "INFO supervisord started with pid 1\n"
        "WARN exited: webhooks (exit status 2; not expected)\n"
        "INFO supervisord started with pid 2\n"
        "WARN exited: catalog (exit status 1; not expected)\n"
    )
    assert last_exit(home, "webhooks") is None
    assert last_exit(home, "catalog") == 1
    with log.open("a") as file:
        file.write("WARN exited: catalog (terminated by SIGKILL; not expected)\n")
    assert last_exit(home, "catalog") is None


def test_a_child_ends_at_ctrl_c_also_when_a_script_has_put_it_into_the_background() -> None:
    command = child.command(sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()")
    ignoring = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command]
    with subprocess.Popen(
        ignoring, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in said
