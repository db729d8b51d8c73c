"""One public function per RPC, one for the poller: `offers` for merchants, `entries` and `rates` for operators."""
