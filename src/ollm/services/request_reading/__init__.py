"""What a request asks for, read from its words by rule: files to show, steps that are left, how an answer begins."""
