"""What tests share: real servers, the whole stack, a webhook receiver. No mocks of our own code."""
