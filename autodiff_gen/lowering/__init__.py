"""From a graph to loop nests and kernel calls: kernel selection, schedule and buffer assignment."""
