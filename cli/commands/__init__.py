"""One file per word after `fiatgate`."""
