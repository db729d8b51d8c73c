"""Refunds by members of the merchant: their list, one refund, and the form that requests one."""
