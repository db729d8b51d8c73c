"""What the supervision of the stack does besides starting processes."""

from __future__ import annotations

from pathlib import Path

from deploy.local.supervision import trim_logs


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
