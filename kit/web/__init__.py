"""What every process with an HTTP server shares: the server, one request on its way, pages, forms and files, walls."""
