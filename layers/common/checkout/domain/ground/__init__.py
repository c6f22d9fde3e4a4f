"""What all rooms of the domain stand on: errors, ids, money, texts and their grammar."""
