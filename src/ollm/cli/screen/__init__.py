"""The chat screen: inline, so that the terminal's own scroll-back stays. It sends text and answers and reads events."""
