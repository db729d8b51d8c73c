"""The smallest process on `kit.web`: a page with a form, and a stylesheet."""
