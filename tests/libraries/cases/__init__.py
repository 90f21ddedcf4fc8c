"""One module a library; importing it registers its cases."""
