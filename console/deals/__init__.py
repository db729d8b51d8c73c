"""The desk's deals: the queue, the evidence of each, its decision, pictures of customers, the switch of new deals."""
