"""Read files that come from others: each file is checked against limits before memory is allocated for its content."""
