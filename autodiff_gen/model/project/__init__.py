"""`export`: a project in a folder that compiles as it is: the generated C, the kernels that it calls, the runtime, and
the files of one build system. Nothing in it refers to this tree."""
