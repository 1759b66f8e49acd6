"""Tool calls: parsed, judged, confirmed, run and recorded."""
