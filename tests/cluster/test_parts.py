"""The parts of `make cluster` that need no cluster: what it asks kubectl to make, when it refuses, and that its verdict
can fail.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
import yaml

from deploy.local.waiting import wait_until
from tests.cluster import __main__ as command
from tests.cluster import overlay, verdicts
from tests.cluster.kube import Kubectl, missing_images
from tests.cluster.load import Operator
from tests.cluster.overlay import MARK, Overlay
from tests.k8s.manifests import ROOT, SERVICES, needs_kubectl

FINE: Final[dict[str, Any]] = {
    "requests": 400,
    "asked_seconds": 20,
    "failed": 0,
    "failures": {},
    "when": [],
    "p50_ms": 5,
    "p99_ms": 9,
    "gap_seconds": 0.3,
    "unreadable": 0,
}


# -- the verdict


def test_a_load_that_was_answered_is_kept() -> None:
    assert verdicts.of_load(FINE, nothing_fails=True, gap_seconds=15) == []


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"failed": 1, "failures": {"read: 503": 1}, "when": [3.2]}, "1 failed, read: 503"),
        ({"gap_seconds": 15.1}, "no answer for 15.1 s"),
        ({"unreadable": 2}, "2 invoices that had been answered"),
        ({"requests": 3}, "only 3 requests"),
    ],
    ids=["a failure", "silence", "a lost invoice", "no load"],
)
def test_a_load_is_broken_by(what: dict[str, Any], said: str) -> None:
    wrong = verdicts.of_load(FINE | what, nothing_fails=True, gap_seconds=15)
    assert said in wrong[0]


def test_while_a_part_is_killed_requests_may_fail_and_no_answer_may_be_lost() -> None:
    failing = FINE | {"failed": 1, "failures": {"read: 503": 1}, "when": [3.2]}
    assert verdicts.of_load(failing, nothing_fails=False, gap_seconds=15) == []
    assert verdicts.of_load(failing | {"unreadable": 1}, nothing_fails=False, gap_seconds=15)


@pytest.mark.parametrize(
    ("reached", "wrong", "told"),
    [
        ({"gateway:80": True, "nats:4222": False, "invoices:50051": False}, 0, ""),
        ({"gateway:80": True, "nats:4222": True, "invoices:50051": True}, 0, "not enforced"),
        ({"gateway:80": True, "nats:4222": True, "invoices:50051": False}, 1, ""),
        ({"gateway:80": False, "nats:4222": False, "invoices:50051": False}, 1, ""),
    ],
    ids=["enforced", "none enforced", "one open", "shut to all"],
)
def test_policies(reached: dict[str, bool], wrong: int, told: str) -> None:
    found, said = verdicts.of_policies(reached, ["gateway:80"])
    assert (len(found), said) == (wrong, told)


@pytest.mark.parametrize(
    ("wrong", "told", "verdict"),
    [((), "", "kept"), ((), "not enforced", "not enforced"), (("1 failed",), "not enforced", "broken")],
    ids=["nothing", "told", "wrong"],
)
def test_the_verdict_of_a_step(wrong: tuple[str, ...], told: str, verdict: str) -> None:
    assert verdicts.Row(step="purchases", seen="", seconds=1, wrong=wrong, told=told).verdict == verdict


@pytest.mark.soak
def test_a_step_that_kubectl_fails_is_broken_and_the_rest_is_deleted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By a kubectl that does not apply."""
    nothing = {"kind": "List", "items": []}
    kubectl(
        tmp_path / "bin", {"version": {}, "namespaces": nothing, "persistentvolumes": nothing, "delete": {}}
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert command.main([]) == 1
    assert "broken" in capsys.readouterr().out
    assert "delete namespace fiatgate-trial" in (tmp_path / "bin" / "asked").read_text()


# -- purchases


def test_what_a_failed_command_has_confirmed_is_watched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first command confirms two of three deals and then fails; the second confirms the third and has no answer."""
    folder, path = tmp_path / "bin", os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{folder}:{path}")
    deals = [{"deal_id": each, "external_id": f"order {each}"} for each in ("a", "b", "c")]
    operator = Operator(Kubectl("somewhere"))
    for waiting, watched in ((deals, set()), (deals[2:], {"order a", "order b"})):
        kubectl(folder, {"list": waiting})
        assert not operator.confirm()
        assert operator.orders == watched
        assert "no answer" in operator.last_failure
    kubectl(folder, {"list": []})
    assert operator.confirm()
    assert operator.orders == {"order a", "order b", "order c"}


def test_a_webhook_that_comes_after_the_last_look_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, path = tmp_path / "bin", os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{folder}:{path}")
    whole = {"orders": ["another", "one"]}
    kubectl(folder, {"list": [], "python": {"orders": ["one"]}}, then={"python": whole})
    operator = Operator(Kubectl("somewhere"))
    operator.orders |= {"one", "another"}
    assert operator.settled(seconds=0) == (2, ["no webhook of 1 orders, as another"])
    assert operator.settled(seconds=0) == (2, [])
    operator.orders.clear()
    assert operator.settled(seconds=0) == (0, ["no purchase at all"])


# -- refusals


def kubectl(
    folder: Path,
    answers: dict[str, Any],
    *,
    then: Mapping[str, Any] = MappingProxyType({}),
    kustomize: bool = False,
) -> None:
    """An executable `kubectl` there, which prints the answer to the first of these words among its arguments; without
    one it fails. It notes its arguments in `asked`; `apply` never ends. then: the answers from the second time on;
    kustomize: by the real one.
    """
    folder.mkdir(exist_ok=True)
    program = folder / "kubectl"
    real = shutil.which("kubectl") if kustomize else None
    known, later = (
        json.dumps({word: json.dumps(answer) for word, answer in each.items()}) for each in (answers, then)
    )
    program.write_text(
        "#!/usr/bin/env python3\n"
        "import json, os, signal, sys\n"
        f"open({str(folder / 'asked')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"if {real!r} and 'kustomize' in sys.argv: os.execv({real!r}, sys.argv)\n"
        "signal.pause() if 'apply' in sys.argv else None\n"
        f"known, later = json.loads({known!r}), json.loads({later!r})\n"
        f"asked = [line.split() for line in open({str(folder / 'asked')!r})]\n"
        "known |= {word: each for word, each in later.items() if sum(word in line for line in asked) > 1}\n"
        "found = [answer for word, answer in known.items() if word in sys.argv]\n"
        "sys.exit('no answer') if not found else sys.stdout.write(found[0])\n"
    )
    program.chmod(0o755)


def test_without_kubectl_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main([]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert "kubectl is not here" in line


def test_without_a_cluster_one_line_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    kubectl(tmp_path / "bin", {})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert command.main([]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert "kind create cluster" in line


def test_a_namespace_of_somebody_else_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    theirs = {"kind": "List", "items": [{"metadata": {"name": "fiatgate-trial", "labels": {"a": "b"}}}]}
    kubectl(tmp_path / "bin", {"version": {}, "namespaces": theirs})
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert command.main([]) == 2
    (line,) = capsys.readouterr().out.splitlines()
    assert "fiatgate-trial is there and not of a trial" in line
    asked = (tmp_path / "bin" / "asked").read_text()
    assert "delete" not in asked
    assert "apply" not in asked


@pytest.mark.soak
@pytest.mark.parametrize(
    ("told", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
@needs_kubectl
def test_told_to_stop_it_deletes_what_it_made(told: signal.Signals, code: int, tmp_path: Path) -> None:
    nothing = {"kind": "List", "items": []}
    answers = {"version": {}, "namespaces": nothing, "persistentvolumes": nothing, "delete": {}}
    kubectl(tmp_path / "bin", answers, kustomize=True)
    asked = tmp_path / "bin" / "asked"
    # A shell's background jobs ignore Ctrl-C, and so does all that they start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    trial = subprocess.Popen(
        [sys.executable, "-m", "tests.cluster"],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
    )
    signal.signal(signal.SIGINT, before)
    try:
        wait_until(lambda: asked.exists() and " apply " in asked.read_text(), "apply", timeout_seconds=60)
        trial.send_signal(told)
        assert trial.wait(60) == code
    finally:
        trial.kill()
        trial.wait()
    assert "delete namespace fiatgate-trial" in asked.read_text()


def test_an_image_that_the_cluster_does_not_have_is_named() -> None:
    waiting = {"image": "fiatgate:9", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}
    starting = {"image": "nats:2", "state": {"waiting": {"reason": "ContainerCreating"}}}
    assert list(missing_images([{"status": {"containerStatuses": [waiting, starting]}}, {}])) == [
        "fiatgate:9"
    ]


# -- what is applied


@needs_kubectl
def test_all_of_it_goes_with_its_namespace() -> None:
    whole = Overlay("somewhere", "registry.example.com:5000/fiatgate:7").rendered()
    assert overlay.beyond_the_namespace(whole) == []
    assert {each["metadata"].get("namespace") for each in whole if each["kind"] != "Namespace"} == {
        "somewhere"
    }
    (namespace,) = [each for each in whole if each["kind"] == "Namespace"]
    assert namespace["metadata"]["name"] == "somewhere"
    assert MARK.items() <= namespace["metadata"]["labels"].items()
    images = {
        container["image"]
        for each in whole
        if each["kind"] in ("Deployment", "Job", "Pod")
        for container in each.get("spec", {}).get("template", each)["spec"]["containers"]
    }
    assert images == {"registry.example.com:5000/fiatgate:7"}


@needs_kubectl
def test_each_certificate_that_a_pod_mounts_is_made_where_cert_manager_is_not() -> None:
    whole = Overlay("somewhere", "fiatgate@sha256:" + 64 * "a").rendered(mtls=True)
    mounted = {
        volume["secret"]["secretName"]
        for each in whole
        if each["kind"] == "Deployment"
        for volume in each["spec"]["template"]["spec"].get("volumes", ())
        if volume["name"] == "tls"
    }
    made = {each["metadata"]["name"]: each["data"].keys() for each in overlay.certificates()}
    assert mounted == made.keys()
    assert len(mounted) > len(SERVICES)
    assert all(keys == {"ca.crt", "tls.crt", "tls.key"} for keys in made.values())
    assert any(overlay.is_of_cert_manager(each) for each in whole)


def test_the_shops_program_is_text_that_a_config_map_can_hold() -> None:
    program = overlay.SHOP_PROGRAM.read_text()
    assert len(yaml.safe_dump({"shop.py": program})) < 1_000_000
    compile(program, "shop.py", "exec")
