"""Model servers, spoken to over HTTP."""
