"""Each request in numbers (`counting`) and in traces (`spans`)."""
