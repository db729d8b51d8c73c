"""HTTP itself: the server and its connections, one request on its way (`edge`, `exchange`, `bodies`), health."""
