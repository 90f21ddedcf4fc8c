"""One module per library; importing it registers its cases."""
