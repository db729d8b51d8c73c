"""The desk's deals: the queue, the evidence of each deal, its decision, and the pictures that customers sent."""
