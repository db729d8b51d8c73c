"""Late money for members: the list, a case with its thread, and the answer whether to credit or return the money."""
