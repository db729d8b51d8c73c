"""The look of all pages: layout, macros, stylesheet, scripts, tables as CSV."""
