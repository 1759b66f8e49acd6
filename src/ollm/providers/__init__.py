"""Model servers, reached over HTTP."""
