"""The words that pages and commands share: steps of a deal, acts, timelines. Nothing of a page is here."""
