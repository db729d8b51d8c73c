"""The webhook receiver of the tests records to the byte and answers as told."""

from __future__ import annotations

import requests

from tests.support.receiver import Answer, Receiver


def test_it_records_the_raw_body_and_answers_as_told(receiver: Receiver) -> None:
    receiver.answer(Answer(status=503, body=b"down"))
    receiver.answer_next(Answer(status=204))
    answers = [
        requests.post(receiver.url(), data=b'{"a" : 1}', headers={"X-Signature": "s"}, timeout=5).status_code
        for _ in range(2)
    ]
    assert answers == [204, 503]
    first, _ = receiver.wait_for(2)
    assert first.body == b'{"a" : 1}'
    assert first.headers["x-signature"] == "s"


def test_each_path_is_an_endpoint_of_its_own(receiver: Receiver) -> None:
    requests.post(receiver.url("one"), data=b"1", timeout=5)
    assert [request.body for request in receiver.received("one")] == [b"1"]
    assert receiver.received("two") == []
