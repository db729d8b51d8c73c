"""Addresses are checked as their network does."""

import base64
import binascii
import string

import base58
import pytest

from services.withdrawals.addresses import NETWORKS, is_address_of

# From EIP-55 itself.
EIP_55 = [
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
]
TRON = ["TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", base58.b58encode_check(b"\x41" + bytes(range(20))).decode()]
# Not bounceable, bounceable, and in the older alphabet.
TON = [
    "UQAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH0Bm",
    "EQAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHx2j",
    "EQD7//v/+//7//v/+//7//v/+//7//v/+//7//v/+//7/5Zy",
]
EVM_NETWORKS = ["ERC20", "BEP20", "POLYGON"]


def ton(tag: int, workchain: int, account: bytes) -> str:
    """The user-friendly form, written without the library that reads it."""
    body = bytes([tag, workchain]) + account
    return base64.urlsafe_b64encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "big")).decode()


def test_every_network_is_spoken_of_here() -> None:
    assert {"TRC20", "TON", *EVM_NETWORKS} == NETWORKS


@pytest.mark.parametrize("address", TRON)
def test_a_tron_address_is_taken(address: str) -> None:
    assert is_address_of("TRC20", address)


@pytest.mark.parametrize("network", EVM_NETWORKS)
@pytest.mark.parametrize("address", [*EIP_55, EIP_55[0].lower()])
def test_an_ethereum_address_is_taken(network: str, address: str) -> None:
    assert is_address_of(network, address)


@pytest.mark.parametrize("address", TON)
def test_a_ton_address_is_taken(address: str) -> None:
    assert is_address_of("TON", address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "T",
        TRON[0][:-1],
        TRON[0][:-1] + "9",
        TRON[0] + " ",
        TRON[0].lower(),
        "0" + TRON[0][1:],
        "Ж" * 34,
        "\x00",
        base58.b58encode_check(b"\x00" + bytes(range(20))).decode(),  # Bitcoin's
        base58.b58encode_check(b"\x41" + bytes(range(21))).decode(),
        base58.b58encode_check(b"\x41" + bytes(20)).decode(),  # the zero address
        "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",  # USDT itself
        EIP_55[0],
        TON[0],
    ],
)
def test_what_is_no_tron_address_is_refused(address: str) -> None:
    assert not is_address_of("TRC20", address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "0x",
        EIP_55[0][2:],
        EIP_55[0].upper(),
        EIP_55[0] + "0",
        EIP_55[0][:-1],
        EIP_55[0] + "\n",
        EIP_55[0].replace("a", "A", 1),  # one letter's case: the checksum is wrong
        "0x" + "g" * 40,
        "0x" + "0" * 40,
        "0xdAC17F958D2ee523a2206206994597C13D831ec7",  # USDT itself
        "0xdac17f958d2ee523a2206206994597c13d831ec7",
        TRON[0],
        TON[0],
    ],
)
def test_what_is_no_ethereum_address_is_refused(address: str) -> None:
    assert not is_address_of("ERC20", address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        TON[0][:-1],
        TON[0] + "A",
        TON[0] + "\n",
        TON[0][:-1] + "n",
        TON[2].replace("/", "_", 1),  # of both alphabets
        "0:" + bytes(range(32)).hex(),  # raw: has no checksum
        "0:" + bytes(range(32)).hex().upper(),
        "-1:" + bytes(range(32)).hex(),
        "0:" + "1f" * 23,  # raw, as long as the user-friendly form
        ton(0x11, 0xFF, bytes(range(32))),  # of the masterchain
        ton(0x11, 1, bytes(range(32))),  # of a workchain that isn't there
        ton(0x91, 0, bytes(range(32))),  # of the test network
        ton(0xD1, 0, bytes(range(32))),
        ton(0x31, 0, bytes(range(32))),  # of no tag there is
        ton(0, 0, bytes(range(32))),
        ton(0x11, 0, bytes(range(29))),  # other lengths, each with its right checksum
        ton(0x11, 0, bytes(range(35))),
        ton(0x51, 0, bytes(32)),  # the zero address
        "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",  # USDT itself
        "====" * 12,
        TRON[0],
        EIP_55[0],
    ],
)
def test_what_is_no_ton_address_is_refused(address: str) -> None:
    assert not is_address_of("TON", address)


def test_a_ton_address_is_taken_in_either_alphabet() -> None:
    plain = TON[2]
    assert is_address_of("TON", plain)
    assert is_address_of("TON", plain.replace("+", "-").replace("/", "_"))


def test_every_slip_of_one_character_in_a_ton_address_is_caught() -> None:
    right = TON[0]
    alphabet = string.ascii_letters + string.digits + "-_"
    slips = {right[:at] + each + right[at + 1 :] for at in range(len(right)) for each in alphabet}
    swaps = {right[:at] + right[at + 1] + right[at] + right[at + 2 :] for at in range(len(right) - 1)}
    assert [each for each in slips | swaps if is_address_of("TON", each)] == [right]
