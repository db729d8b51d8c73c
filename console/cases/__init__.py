"""The desk's late money: customers' reports that money was sent after the invoice had ended, and their answers."""
