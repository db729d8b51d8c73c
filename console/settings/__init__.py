"""The settings that a merchant's own people change, and the customer's page as it would look with them."""
