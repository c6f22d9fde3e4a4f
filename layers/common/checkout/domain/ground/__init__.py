"""What the whole domain uses: errors, ids, money, texts and their grammar."""
