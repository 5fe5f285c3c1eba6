"""Results as tables for people: terminal, Markdown, LaTeX, spreadsheets."""
