"""Checks that an address belongs to its network: money sent to a wrong one is lost.

The checksum catches typing errors, so a form with a checksum is required where wallets use one. A library reads each
family of addresses; the forms accepted here are narrower than the libraries'.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import base58
from eth_utils.address import is_checksum_address, is_checksum_formatted_address, to_canonical_address
from pytoniq_core.boc.address import Address, AddressError

_TRON_FORM = re.compile(r"T[1-9A-HJ-NP-Za-km-z]{33}").fullmatch
_TRON_PREFIX: Final = b"\x41"
_TRON_BYTES: Final = 21

_EVM_FORM = re.compile(r"0x[0-9a-fA-F]{40}").fullmatch

_TON_FORM = re.compile(r"[A-Za-z0-9+/]{48}|[A-Za-z0-9_-]{48}").fullmatch
_TON_BASECHAIN: Final = 0

# USDT's own contracts: tokens sent to their own contract are lost, and this is the most common such mistake.
_TOKEN_CONTRACTS: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        "TRC20": bytes.fromhex("a614f803b6fd780986a42c78ec9c7f77e6ded13c"),
        "ERC20": bytes.fromhex("dac17f958d2ee523a2206206994597c13d831ec7"),
        "BEP20": bytes.fromhex("55d398326f99059ff775485246999027b3197955"),
        "POLYGON": bytes.fromhex("c2132d05d31c914a87c6611c10748aeb04b58e8f"),
        "TON": bytes.fromhex("b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"),
    }
)


def is_address_of(network: str, address: str) -> bool:
    """Returns whether USDT can be sent to `address` on `network`, one of `NETWORKS` (KeyError otherwise).

    Well-formed, with a right checksum where the form has one, of the main network; neither the zero address nor
    the USDT contract itself.
    """
    account = _ACCOUNT_OF[network](address)
    return account is not None and any(account) and account != _TOKEN_CONTRACTS[network]


def fails_in_test_mode(network: str, address: str) -> bool:
    """Returns whether withdrawals to the address fail in test mode: its account is fa11 again and again."""
    account = _ACCOUNT_OF[network](address)
    return account is not None and account == b"\xfa\x11" * (len(account) // 2)


def _tron_account(address: str) -> bytes | None:
    if not _TRON_FORM(address):  # base58 ignores a space at the end
        return None
    try:
        decoded = base58.b58decode_check(address)
    except ValueError:
        return None
    return decoded[1:] if len(decoded) == _TRON_BYTES and decoded.startswith(_TRON_PREFIX) else None


def _evm_account(address: str) -> bytes | None:
    if not _EVM_FORM(address):
        return None
    # In mixed case the case is the checksum (EIP-55); in a single case, as some wallets write, there is no checksum.
    if is_checksum_formatted_address(address) and not is_checksum_address(address):
        return None
    return to_canonical_address(address)


def _ton_account(address: str) -> bytes | None:
    if not _TON_FORM(address):  # pytoniq accepts any length, and the raw form, which has no checksum
        return None
    url_safe = address.replace("+", "-").replace("/", "_")
    try:
        read = Address(url_safe)
    except AddressError:
        return None
    # pytoniq ignores an unknown tag and accepts the test network's. Neither comes back equal when it is written again.
    main_network = read.to_str(is_bounceable=read.is_bounceable) == url_safe
    return read.hash_part if main_network and read.wc == _TON_BASECHAIN else None


_ACCOUNT_OF: Final[Mapping[str, Callable[[str], bytes | None]]] = MappingProxyType(
    {
        "TRC20": _tron_account,
        "ERC20": _evm_account,
        "BEP20": _evm_account,
        "POLYGON": _evm_account,
        "TON": _ton_account,
    }
)
NETWORKS: Final = frozenset(_ACCOUNT_OF)
