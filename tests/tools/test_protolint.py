"""The linter of the contracts finds each kind of breach, and none in ours."""

from pathlib import Path

import pytest

from tools.protolint import PROTOS, breaches, compile_protos

GOOD = """
syntax = "proto3";
package shop.orders.v1;
import "google/protobuf/timestamp.proto";
// Orders.
service OrdersService {
  // Places it.
  rpc PlaceOrder(PlaceOrderRequest) returns (PlaceOrderResponse);
}
enum OrderStatus { ORDER_STATUS_UNSPECIFIED = 0; ORDER_STATUS_PLACED = 1; }
message PlaceOrderRequest { string amount = 1; google.protobuf.Timestamp placed_at = 2; }
message PlaceOrderResponse { OrderStatus status = 1; }
"""


def lint(folder: Path, text: str) -> list[str]:
    file = folder / "shop" / "orders" / "v1" / "orders.proto"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return list(breaches(compile_protos(folder)))


def test_our_contracts_break_no_rule() -> None:
    assert list(breaches(compile_protos(PROTOS))) == []


def test_a_file_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    assert lint(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("right", "wrong", "complaint"),
    [
        ("package shop.orders.v1", "package shop.v1", "is not its folder"),
        ("// Orders.\n", "", "a service has a comment"),
        ("  // Places it.\n", "", "a method has a comment"),
        ("service OrdersService", "service Orders", "services end with Service"),
        ("rpc PlaceOrder(", "rpc UpdateOrder(", "not an Update"),
        ("(PlaceOrderRequest) returns", "(PlaceOrderResponse) returns", "to grow on its own"),
        ("ORDER_STATUS_UNSPECIFIED", "ORDER_STATUS_NONE", "must be ORDER_STATUS_UNSPECIFIED"),
        ("ORDER_STATUS_PLACED", "PLACED", "prefix them"),
        ("string amount", "double amount", "lose cents"),
        ("string amount", "string Amount", "snake_case"),
        ("google.protobuf.Timestamp placed_at", "int64 placed_at", "a moment is"),
    ],
)
def test_each_breach_is_told(tmp_path: Path, right: str, wrong: str, complaint: str) -> None:
    assert right in GOOD
    found = lint(tmp_path, GOOD.replace(right, wrong))
    assert any(complaint in line for line in found), found
