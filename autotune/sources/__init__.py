"""One reader of kernel sources: the text of a file in, a description of it out."""
