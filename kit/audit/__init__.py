"""Authors' acts, their proof, and requests for a second pair of eyes."""
