"""Charts as files for papers and slides: SVG, PNG, PDF and interactive HTML."""
