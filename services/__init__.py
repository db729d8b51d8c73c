"""The five services: each a package of the same rooms (DESIGN section 2), none imports another."""
