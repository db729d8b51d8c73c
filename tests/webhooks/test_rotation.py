"""A merchant changes keys as docs/operations/keys.md says, and no webhook is lost or unsigned at any step."""

from uuid import UUID

from services.webhooks.domain import NO_KEY_ERROR
from tests.support.receiver import Answer, Receiver
from tests.webhooks.house import House, signed_by


def test_at_each_step_of_a_rotation_the_receiver_knows_the_secret_that_signed(
    house: House, receiver: Receiver
) -> None:
    """`accepted` is what the receiver verifies with after each documented step."""
    first_key, accepted = house.key_id, [house.secret]
    receiver.answer(Answer(status=503), path="waiting")
    with house.engine():
        # An invoice of before, whose webhook is retried over all steps.
        waiting = house.queue(receiver.url("waiting"))
        house.wait_for_attempts(waiting, 1)
        _delivered(house, receiver, accepted, key_id=first_key)

        second_key, second_secret = house.merchants.key(house.merchant_id)  # 1
        _delivered(house, receiver, accepted, key_id=first_key)
        _retried(house, receiver, waiting, accepted, seconds=32)

        accepted.append(second_secret)  # 2
        _retried(house, receiver, waiting, accepted, seconds=62)

        _delivered(house, receiver, [second_secret], key_id=second_key)  # 3
        _delivered(house, receiver, accepted, key_id=first_key)
        _retried(house, receiver, waiting, accepted, seconds=122)

        house.merchants.deactivate(first_key)  # 4
        _delivered(house, receiver, [second_secret], key_id=first_key)
        _retried(house, receiver, waiting, accepted, seconds=242)

        accepted.remove(house.secret)  # 5
        receiver.answer(Answer(), path="waiting")
        _retried(house, receiver, waiting, accepted, seconds=482)
        house.wait_for_status(waiting, "success")
    assert house.resend(waiting).outcome.succeeded
    requests = receiver.received("waiting")
    assert signed_by(requests[-1], second_secret)
    assert len({request.body for request in requests}) == 1


def _delivered(house: House, receiver: Receiver, accepted: list[str], *, key_id: UUID) -> None:
    """An invoice made with this key ends now; its webhook verifies."""
    house.wait_for_status(house.queue(receiver.url(), key_id=key_id), "success")
    assert any(signed_by(receiver.received()[-1], secret) for secret in accepted)


def _retried(
    house: House, receiver: Receiver, invoice_id: UUID, accepted: list[str], *, seconds: int
) -> None:
    """The next retry comes, and verifies."""
    attempts = len(house.attempts(invoice_id))
    house.advance(seconds=seconds)
    house.wait_for_attempts(invoice_id, attempts + 1)
    assert any(signed_by(receiver.received("waiting")[-1], secret) for secret in accepted)


def test_an_attempt_under_way_when_its_key_is_deactivated_counts(house: House, receiver: Receiver) -> None:
    receiver.answer(Answer(delay_seconds=0.3))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        [request] = receiver.wait_for(1)
        house.merchants.key(house.merchant_id)
        house.merchants.deactivate(house.key_id)
        house.wait_for_status(invoice_id, "success")
    assert signed_by(request, house.secret)
    assert house.event(invoice_id).auto_attempts == 1


def test_rotation_with_retries_in_flight_signs_each_attempt_with_the_key_that_is_active_then(
    house: House, receiver: Receiver
) -> None:
    receiver.answer(Answer(status=500))
    with house.engine():
        invoice_id = house.queue(receiver.url())
        house.wait_for_attempts(invoice_id, 1)
        second_key, second_secret = house.merchants.key(house.merchant_id)
        house.advance(seconds=32)  # two active keys: the one that created the invoice goes on signing
        house.wait_for_attempts(invoice_id, 2)
        house.merchants.deactivate(house.key_id)
        house.advance(seconds=62)
        house.wait_for_attempts(invoice_id, 3)
        house.merchants.deactivate(second_key)
        house.advance(seconds=122)
        attempts = house.wait_for_attempts(invoice_id, 4)
        _, third_secret = house.merchants.key(house.merchant_id)
        house.advance(seconds=242)
        house.wait_for_attempts(invoice_id, 5)
    first, second, third, fifth = receiver.received()
    assert signed_by(first, house.secret)
    assert signed_by(second, house.secret)
    assert signed_by(third, second_secret)
    assert attempts[3].error_message == NO_KEY_ERROR
    assert attempts[3].status == "failure"
    assert signed_by(fifth, third_secret)
    assert len({request.body for request in (first, second, third, fifth)}) == 1
