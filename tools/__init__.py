"""duly.tools: the command line. It needs the extra `cli`; `entry` is what starts it and says so."""

if __name__ != "duly.tools":
    raise ImportError(f"this is the package duly.tools, not {__name__}: import duly.tools")
