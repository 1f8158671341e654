"""The order of the steps of an entry, with a low peak of live bytes."""
