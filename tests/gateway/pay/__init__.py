"""Tests of the customer's page. A package, so that one browser serves all of them; none of them runs asyncio."""
