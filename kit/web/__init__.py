"""The parts that every process with an HTTP server shares: server, requests, pages, forms, files, walls."""
