"""Drop-in replacements for the limits of other libraries."""
