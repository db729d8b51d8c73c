"""Sign-in, invitation, factors, step-up and own sessions, for both surfaces."""
