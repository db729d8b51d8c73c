"""The gateway's own addresses, as the outside world reaches them."""

from urllib.parse import urlsplit


class Links:
    """Makes the gateway's addresses from PUBLIC_URL. That may have a path: a proxy may serve the gateway under a
    prefix.
    """

    def __init__(self, public_url: str) -> None:
        parts = urlsplit(public_url)
        self._public_url = public_url
        self.prefix = parts.path
        self.origin = f"{parts.scheme}://{parts.netloc}".lower()

    def payment_link(self, invoice_id: str) -> str:
        """Returns the absolute `payment_link`, for the customer."""
        return f"{self._public_url}/pay/{invoice_id}"

    def invoice(self, invoice_id: str) -> str:
        """Returns the path of the invoice, for `Location`."""
        return f"{self.prefix}/api/v1/invoices/{invoice_id}"

    def page(self, invoice_id: str) -> str:
        """Returns the path of the customer's page."""
        return f"{self.prefix}/pay/{invoice_id}"

    def link_page(self, link_id: str) -> str:
        """Returns the path of a payment link's page."""
        return f"{self.prefix}/pay/links/{link_id}"

    def merchant_logo(self, logo: str) -> str:
        """Returns a path."""
        return f"{self.prefix}/pay-logo/merchants/{logo}"

    def method_logo(self, logo: str) -> str:
        """Returns a path."""
        return f"{self.prefix}/pay-logo/methods/{logo}"

    def public_method_logo(self, logo: str) -> str:
        """Returns the absolute `logo_url`, for merchants' own pages."""
        return f"{self._public_url}/pay-logo/methods/{logo}"

    def static(self, name: str) -> str:
        """Returns the path of a file of the customer's page."""
        return f"{self.prefix}/pay-static/{name}"
