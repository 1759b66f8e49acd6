"""The chat screen, inline to keep the terminal's scrollback. It sends text and answers and reads events."""
